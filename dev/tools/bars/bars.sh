#!/bin/sh
# Bars asks two questions of this machine: how often are builds of the same code told apart, and how often is one found that
# was made slower on purpose? It takes about 4 minutes for each try.
#
#	tools/bars/bars.sh [TRIES [TURNS]]    TURNS of an empty loop in each Write: 20 are 9 to 17 % here, 26 are 16 to 25 %
#
# Results stay in the directory that it names.
set -eu
tries=${1:-20} turns=${2:-20}
cd "$(dirname "$0")/../.."
root=$PWD out=$(mktemp -d "${TMPDIR:-/var/tmp}/holdfast-bars-XXXXXX")
echo "in $out"
awk -v turns="$turns" '
	/^func \(w \*Writer\) Write\(/ { inside = 1 }
	inside && $0 == "\tw.mu.Lock()" { print "\tfor range " turns " {\n\t}"; inside = 0; planted = 1 }
	{ print }
	END { exit !planted }' writer.go >"$out/writer.go"
printf '{"Replace":{"%s":"%s"}}\n' "$root/writer.go" "$out/writer.go" >"$out/overlay.json"
go build -o "$out/A" ./cmd/holdfast
go build -overlay "$out/overlay.json" -o "$out/B" ./cmd/holdfast
cp "$out/A" "$out/A2"
cd "$out"
said() { # NAME FILE CODE: a line for each comparison, with its words
	words=$(awk -F, 'NR > 1 && $(NF-1) != "not proven" && $(NF-1) != "same" { print $(NF-1) " " $(NF-5) }' "$2" | tr '\n' ';')
	echo "$1 exit $3: ${words:-nothing}" | tee -a said
}
try=0
while [ "$try" -lt "$tries" ]; do
	try=$((try + 1))
	for b in B A2; do
		code=0; "./$b" bench --against ./A --export csv >"against-$b-$try.csv" 2>"against-$b-$try.err" || code=$?
		said "against $b $try" "against-$b-$try.csv" "$code"
	done
	for b in A B; do
		"./$b" bench -o "run-$b-$try.jsonl" >"run-$b-$try.txt" 2>&1 || :
	done
	earlier=1
	while [ "$earlier" -le "$try" ]; do
		for b in A B; do
			[ "$b$earlier" = "A$try" ] && continue
			code=0; ./A compare "run-A-$earlier.jsonl" "run-$b-$try.jsonl" --export csv >"compare-$b-$earlier-$try.csv" 2>/dev/null || code=$?
			said "compare A$earlier $b$try" "compare-$b-$earlier-$try.csv" "$code"
		done
		earlier=$((earlier + 1))
	done
done
for what in "against B" "against A2" "compare A[0-9]* B" "compare A[0-9]* A"; do
	all=$(grep -c "^$what" said || :) 
	told=$(grep "^$what" said | grep -vc ': nothing$' || :)
	exits=$(grep "^$what" said | grep -c 'exit 1' || :)
	echo "$what: $all comparisons, $told with a word, $exits with exit code 1"
done
