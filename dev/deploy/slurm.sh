#!/usr/bin/env bash
# Measures the disk of each node of a Slurm cluster: an array job, a task a node.
#
#   sinfo -hN -o %N | sort -u > nodes.txt
#   sbatch --array=1-"$(wc -l < nodes.txt)" slurm.sh /scratch
#   holdfast fleet holdfast-results --expect nodes.txt
#
# The first argument is a directory on the disk to measure, the second a directory for the results
# that all nodes share. Further ones are flags of holdfast bench. HOLDFAST names the program.
#
# Each task has a node of its own as long as all run at once. Where a node is free again before
# the last task begins, it may get a second one: --expect then lists the nodes that have none.
# On a busy cluster pin them: while read -r n; do sbatch -w "$n" slurm.sh /scratch; done < nodes.txt
#SBATCH --job-name=holdfast
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --exclusive
#SBATCH --time=00:10:00
#SBATCH --output=holdfast-%A_%a.out
set -eu
dir=${1:?name a directory on the disk to measure}
results=${2:-holdfast-results}
shift $(($# < 2 ? $# : 2))
[ $# -gt 0 ] || set -- --quick

mkdir -p "$results"
exec "${HOLDFAST:-holdfast}" bench "$@" --dir "$dir" -o "$results/$(uname -n)-$SLURM_JOB_ID.jsonl"
