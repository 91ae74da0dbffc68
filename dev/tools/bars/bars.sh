#!/bin/sh
# Bars asks of this machine, while it is quiet: how often are builds of the same code told apart, also where the linker laid them
# out in another order, and how often is a build found that was made slower on purpose, by about 20 and 10 %? A try takes about a
# minute: it measures two policies with buffers by one writer, which the planted loop slows down most.
#
#	dev/tools/bars/bars.sh [TRIES [MORE LESS [BENCH [AGAINST]]]]
#
# MORE and LESS are turns of an empty loop in each Write: 26 are about 20 % of a cell with a buffer of 64 KiB here, 13 about 10 %.
# BENCH are the flags of the runs that are compared, AGAINST those of the ones that run two builds alternately. "" are
# the default runs, of all policies: then a try takes seven minutes.
#
# Results stay in the directory that it names. By its last lines:
#	against A2, L      no word          against B, C    a word: 95 % of 20
#	compare A A, A L   no word: 98 %    compare A B     a word: 95 % of 40 pairs; compare A C  85 %
set -eu
policies="--writers 1 --policy buffer=64KiB --policy buffer=4KiB"
tries=${1:-20} more=${2:-26} less=${3:-13} flags=${4-$policies --rounds 20} against=${5-$policies --rounds 20}
cd "$(dirname "$0")/../../.."
root=$PWD out=$(mktemp -d "${TMPDIR:-/var/tmp}/holdfast-bars-XXXXXX")
echo "in $out"
slower() { # NAME TURNS: a build with an empty loop in each Write
	awk -v turns="$2" '
		/^func \(w \*Writer\) Write\(/ { inside = 1 }
		inside && $0 == "\tw.mu.Lock()" { print "\tfor range " turns " {\n\t}"; inside = 0; planted = 1 }
		{ print }
		END { exit !planted }' writer.go >"$out/$1.go"
	printf '{"Replace":{"%s":"%s"}}\n' "$root/writer.go" "$out/$1.go" >"$out/$1.json"
	go build -C cmd -overlay "$out/$1.json" -ldflags="-randlayout=$3" -o "$out/$1" ./holdfast
}
go build -C cmd -o "$out/A" ./holdfast
cp "$out/A" "$out/A2"
go build -C cmd -ldflags=-randlayout=39 -o "$out/L" ./holdfast
slower B "$more" 40
slower C "$less" 41
code=0; HOLDFAST_QUIET=1 go -C cmd test -count=1 -v -run '^TestWhereTheLinkerPutsItIsNoDifference$' ./holdfast >"$out/layout.txt" 2>&1 || code=$?
echo "two layouts: exit $code, $(grep -oE '^--- [A-Z]+' "$out/layout.txt" | head -1)"
cd "$out"
said() { # NAME FILE CODE: a line for each comparison, with its words
	words=$(awk -F, 'NR > 1 && $(NF-1) != "not proven" && $(NF-1) != "same" { print $(NF-1) " " $(NF-5) }' "$2" | tr '\n' ';')
	echo "$1 exit $3: ${words:-nothing}" | tee -a said
}
try=0
while [ "$try" -lt "$tries" ]; do
	try=$((try + 1))
	for b in A2 L B C; do
		# shellcheck disable=SC2086
		code=0; "./$b" bench --against ./A $against --export csv -o "against-$b-$try.jsonl" >"against-$b-$try.csv" 2>"against-$b-$try.err" || code=$?
		said "against $b $try" "against-$b-$try.csv" "$code"
	done
	for b in A L B C; do
		# shellcheck disable=SC2086
		"./$b" bench $flags -o "run-$b-$try.jsonl" >"run-$b-$try.txt" 2>&1 || :
	done
	earlier=1
	while [ "$earlier" -le "$try" ]; do
		for b in A L B C; do
			[ "$b$earlier" = "A$try" ] && continue
			code=0; ./A compare "run-A-$earlier.jsonl" "run-$b-$try.jsonl" --export csv >"compare-$b-$earlier-$try.csv" 2>/dev/null || code=$?
			said "compare A$earlier $b$try" "compare-$b-$earlier-$try.csv" "$code"
		done
		earlier=$((earlier + 1))
	done
done
for what in "against A2" "against L" "against B" "against C" "compare A[0-9]* A" "compare A[0-9]* L" "compare A[0-9]* B" "compare A[0-9]* C"; do
	all=$(grep -c "^$what" said || :)
	told=$(grep "^$what" said | grep -vc ': nothing$' || :)
	slower=$(grep "^$what" said | grep -c 'slower' || :)
	exits=$(grep "^$what" said | grep -c 'exit 1' || :)
	echo "$what: $all comparisons, $told with a word, $slower with slower, $exits with exit code 1"
done
