#!/bin/sh
# Bars asks of this machine, while it is quiet: how often are builds of the same code told apart, also where the linker laid them
# out in another order; how often is a build found that was made slower on purpose, by about 20 and 10 %; and does advise say the
# same each time? A try measures two policies with buffers by one writer, which the planted loop slows down most.
#
#	dev/tools/bars/bars.sh [-b] [-d DIR] [-n TRIES] [-t MINUTES]
#
#	-b  only make the builds: that disturbs, the rest must not be disturbed
#	-d  where builds and results stay; what is there already is not done again, so that tries may be spread over hours
#	-n  tries in all, 20; there are two pairs of runs of each kind a try, and every second try asks advise
#	-t  begin no further try after so many minutes, 25
#
# MORE and LESS in the environment are turns of an empty loop in each Write: 34 are about 20 % of the two cells here, 18 about 10 %.
# What they are to this machine, --against says: see the last lines.
set -eu
dir='' tries=20 minutes=25 builds=''
while getopts bd:n:t: flag; do
	case $flag in
	b) builds=only ;;
	d) dir=$OPTARG ;;
	n) tries=$OPTARG ;;
	t) minutes=$OPTARG ;;
	*) exit 2 ;;
	esac
done
more=${MORE:-34} less=${LESS:-18} begun=$(date +%s)
flags="--writers 1 --policy buffer=64KiB --policy buffer=4KiB"
need='loss<=1s,rate>=50k/s,p99<10ms'
cd "$(dirname "$0")/../../.."
root=$PWD
[ -n "$dir" ] || dir=$(mktemp -d "${TMPDIR:-/var/tmp}/holdfast-bars-XXXXXX")
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)
echo "in $dir"

slower() { # NAME TURNS SEED: a build with an empty loop in each Write, laid out by the seed
	[ ! -x "$dir/$1" ] || return 0
	awk -v turns="$2" '
		/^func \(w \*Writer\) Write\(/ { inside = 1 }
		inside && $0 == "\tw.mu.Lock()" { print "\tfor range " turns " {\n\t}"; inside = 0; planted = 1 }
		{ print }
		END { exit !planted }' writer.go >"$dir/$1.go"
	printf '{"Replace":{"%s":"%s"}}\n' "$root/writer.go" "$dir/$1.go" >"$dir/$1.json"
	go build -C cmd -overlay "$dir/$1.json" -ldflags="-randlayout=$3" -o "$dir/$1" ./holdfast
}
[ -x "$dir/A" ] || go build -C cmd -o "$dir/A" ./holdfast
[ -x "$dir/A2" ] || cp "$dir/A" "$dir/A2"
[ -x "$dir/L" ] || go build -C cmd -ldflags=-randlayout=39 -o "$dir/L" ./holdfast
slower B "$more" 40
slower C "$less" 41
[ -z "$builds" ] || exit 0
cd "$dir"

said() { # NAME FILE: keep a line of what was said: the exit code, and the words with their ratios
	words=$(awk -F, 'NR > 1 && $(NF-1) != "not proven" && $(NF-1) != "same" { print $(NF-1) " " $(NF-5) }' "$2.csv" | tr '\n' ';')
	echo "exit $(cat "$2.exit"): ${words:-nothing}" >"$2.said"
	echo "$1 $(cat "$2.said")"
}
kept() { # FILE COMMAND: run it, and keep its output and its exit code
	name=$1 code=0
	shift
	"$@" >"$name.csv" 2>"$name.err" || code=$?
	[ "$code" != 130 ] || exit 130
	echo "$code" >"$name.exit"
}
compared() { # BUILD I J: the run of A in try I and that of the build in J
	name=compare-$1-$2-$3
	[ ! -e "$name.said" ] || return 0
	kept "$name" ./A compare "run-A-$2.jsonl" "run-$1-$3.jsonl" --export csv
	said "compare A$2 $1$3" "$name"
}
try=0
while [ "$try" -lt "$tries" ]; do
	try=$((try + 1))
	[ -e "done-$try" ] && continue
	if [ $(($(date +%s) - begun)) -ge $((minutes * 60)) ]; then
		echo "after $minutes minutes: $((try - 1)) of $tries tries; the same command with -d $dir goes on"
		break
	fi
	for b in A2 L B C; do
		[ ! -e "against-$b-$try.said" ] || continue
		rm -f "against-$b-$try.jsonl"
		# shellcheck disable=SC2086
		kept "against-$b-$try" "./$b" bench --against ./A $flags --rounds 20 --export csv -o "against-$b-$try.jsonl"
		said "against $b$try" "against-$b-$try"
	done
	for b in A L B C; do
		[ ! -e "run-$b-$try.exit" ] || continue
		rm -f "run-$b-$try.jsonl"
		# shellcheck disable=SC2086
		kept "run-$b-$try" "./$b" bench $flags --rounds 40 -o "run-$b-$try.jsonl"
	done
	for b in L B C; do
		compared "$b" "$try" "$try"
		[ "$try" -lt 2 ] || compared "$b" $((try - 1)) "$try"
	done
	[ "$try" -lt 2 ] || compared A $((try - 1)) "$try"
	[ "$try" -lt 3 ] || compared A $((try - 2)) "$try"
	if [ $((try % 2)) = 1 ] && [ ! -e "advise-$try.exit" ]; then
		kept "advise-$try" ./A advise --need "$need" --go
		echo "advise $try exit $(cat "advise-$try.exit"): $(cat "advise-$try.csv")"
	fi
	: >"done-$try"
done

count() { # PATTERN FILES: how many of the files have it
	pattern=$1
	shift
	[ -e "$1" ] || { echo 0 && return; }
	grep -lE "$pattern" "$@" | wc -l
}
row() { # WHAT FALSE|FOUND PERCENT FILES: of comparisons, those that were not disturbed count
	what=$1 kind=$2 percent=$3
	shift 3
	n=$# slower=$(count 'slower' "$@") faster=$(count 'faster' "$@") disturbed=$(count '^exit 4' "$@")
	[ -e "$1" ] || n=0
	told=$(count 'slower|faster' "$@") judged=$((n - disturbed)) bar=missed
	case $kind in
	FALSE) asked="a word in $percent % at most" && [ $((100 * told)) -gt $((percent * judged)) ] || bar=held ;;
	FOUND) asked="slower in $percent %" && [ $((100 * slower)) -lt $((percent * judged)) ] || bar=held ;;
	esac
	[ "$judged" -gt 0 ] || bar=-
	printf '%-28s %-22s %5d %8d %8d %10d %7d  %s\n' "$what" "$asked" "$judged" "$slower" "$faster" "$disturbed" "$(count '^exit 1' "$@")" "$bar"
}
echo
printf '%-28s %-22s %5s %8s %8s %10s %7s  %s\n' what asked pairs slower faster disturbed 'exit 1' bar
row "--against A, a copy of it" FALSE 2 against-A2-*.said
row "--against A, another layout" FALSE 2 against-L-*.said
row "--against A, $more turns" FOUND 95 against-B-*.said
row "--against A, $less turns" FOUND 95 against-C-*.said
row "compare A with A" FALSE 2 compare-A-*.said
row "compare A, another layout" FALSE 2 compare-L-*.said
row "compare A, $more turns" FOUND 95 compare-B-*.said
row "compare A, $less turns" FOUND 85 compare-C-*.said
if ls advise-*.csv >/dev/null 2>&1; then
	echo "advise --need '$need': $(ls advise-*.csv | wc -l) times, $(cat advise-*.csv | sort -u | wc -l) different answers"
	cat advise-*.csv | sort | uniq -c
fi
for b in B C; do # what the plant is: the cell in which it shows most, by each try's --against
	ratios=$(awk -F, 'FNR > 1 && $(NF-5) > most[FILENAME] { most[FILENAME] = $(NF-5) } END { for (f in most) print most[f] }' against-$b-*.csv 2>/dev/null | sort -n)
	[ -z "$ratios" ] || echo "build $b: --against sees $(echo "$ratios" | head -1) to $(echo "$ratios" | tail -1) in the cell where it shows most"
done
