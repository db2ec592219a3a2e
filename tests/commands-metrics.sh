#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# durakit stats --metrics: what runtimes have counted and saved, added up; as Prometheus' text, for
# people and in JSON; and files that are refused before the store is looked at.

. "${top_srcdir:-$(dirname "$0")/..}/tests/tap.sh"
[ -x "$DURAKIT" ] && [ -f "$MODEL" ] || skip_all 'the command or the model is not built'
[ ! -w /dev/shm ] || TMPDIR=/dev/shm
scratch
. "$top_srcdir/tests/operate/store.sh"
on_store "$MODEL" "store=$scratch/model.store"

# ---- a reader of its own -------------------------------------------------------------------------

# Reads what is printed as strictly as the format is described, and as what Prometheus keeps of it.
cat > reads.py <<'PYTHON'
import re, sys
from fractions import Fraction

LINE = re.compile(r'([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\d+(?:\.\d+)?)\Z', re.A)
LABEL = re.compile(r'([a-zA-Z_]\w*)="((?:[^"\\]|\\[\\"n])*)"(,|\Z)', re.A)

def wrong(n, why):
    sys.exit("line %d: %s" % (n, why))

def labels_of(n, text):
    labels, at = {}, 0
    while at < len(text):
        match = LABEL.match(text, at)
        if not match or match[1] in labels or (match[3] == "," and match.end() == len(text)):
            wrong(n, "labels")
        labels[match[1]], at = match[2], match.end()
    return labels

data = open(sys.argv[1], "rb").read()
text = data.decode()
if not text.endswith("\n"):
    wrong(0, "no end")
if any(ord(c) < 32 and c != "\n" or ord(c) == 127 for c in text):
    wrong(0, "a control character")
families, series, buckets, current = {}, {}, {}, None
for n, line in enumerate(text.split("\n")[:-1], 1):
    comment = re.match(r"# (HELP|TYPE) ([a-zA-Z_:][\w:]*) (.*)\Z", line, re.A)
    if comment:
        word, name, rest = comment.groups()
        if name != current:
            if name in families:
                wrong(n, name + " stands in two places")
            families[name], current = {}, name
        if word in families[name]:
            wrong(n, "a second " + word)
        if word == "TYPE" and rest not in ("counter", "gauge", "histogram"):
            wrong(n, "type")
        if re.sub(r"\\[\\n]", "", rest).count("\\"):
            wrong(n, "escape")
        families[name][word] = rest
        continue
    match = LINE.match(line)
    if not match:
        wrong(n, "no sample")
    name, labels, number = match[1], labels_of(n, match[2] or ""), Fraction(match[3])
    suffix = name[len(current):] if name.startswith(current) else None
    is_histogram = families[current].get("TYPE") == "histogram"
    if len(families[current]) != 2 or suffix not in (("_bucket", "_sum", "_count")
                                                     if is_histogram else ("",)):
        wrong(n, "belongs to no metric")
    key = (name, tuple(sorted(labels.items())))
    if key in series:
        wrong(n, "twice")
    series[key] = number
    if suffix == "_bucket":
        group = (current, tuple(sorted(kv for kv in labels.items() if kv[0] != "le")))
        buckets.setdefault(group, []).append((labels["le"], number))
for (name, labels), found in buckets.items():
    bounds = [float(le) for le, number in found]
    numbers = [number for le, number in found]
    if bounds != sorted(set(bounds)) or bounds[-1] != float("inf") or numbers != sorted(numbers):
        wrong(0, "buckets of " + name)
    if (name + "_sum", labels) not in series:
        wrong(0, "sum of " + name)
    if series.get((name + "_count", labels)) != numbers[-1]:
        wrong(0, "count of " + name)
if any(len(family) != 2 for family in families.values()):
    wrong(0, "HELP or TYPE")
print("families %d" % len(families))
PYTHON
# reads FILE: how many families there are, or what is wrong.
reads() { python3 reads.py "$1" 2>&1; }

# The reader sees what is wrong, or it would show nothing.
head='# HELP m It counts.\n# TYPE m counter\n'
sees() {
  # shellcheck disable=SC2059
  printf "$1" > sample
  like "$(reads sample)" "$2" "the reader: $2"
}
sees "${head}m{a=\"x\\\\\\\\\"} 1\nm 2\n" '^families 1$'
sees "${head}m 1" 'no end'
sees "${head}m 1\nm 2\n" 'twice'
sees "${head}m 1\n# TYPE m counter\n" 'a second TYPE'
sees "${head}m 1\n${head}m{a=\"x\"} 1\n" 'a second HELP'
sees "${head}n 1\n" 'belongs to no metric'
sees "${head}m{a=\"\\\\x\"} 1\n" 'labels'
sees "${head}m one\n" 'no sample'
sees "# HELP m x\n# TYPE m histogram\nm_bucket{le=\"1\"} 2\nm_bucket{le=\"+Inf\"} 1\nm_sum 1\n\
m_count 1\n" 'buckets of m'

# ---- one runtime, two ----------------------------------------------------------------------------

d start order-1 --name order --create > out.txt
serve_begin "$folder/one.prom"
hears '^order-1 works$'
d start order-2 --name order > out.txt
hears '^order-2 works$'
d cancel order-1 order-2 --wait 60s --reason enough > out.txt
hears 'must end: cancelled$' && hears 'must end: cancelled$'
serve_saves
ok $? 'a runtime saves what it has counted'
is "$(reads one.prom)" 'families 13' 'as it should be'

# value FILE SERIES
value() { sed -n "s/^$(printf '%s' "$2" | sed 's/[.*[]/\\&/g') //p" "$1"; }
cancelled='dk_activities_cancelled_total{code="terminal_cancelled",phase="locked",name="last"}'
requests='dk_cancel_requests_total{source="api",outcome="requested",name="order"}'
d stats --prometheus --metrics one.prom > out.prom 2> err.txt
is "$? $(cat err.txt)" '0 ' 'stats --prometheus --metrics'
is "$(reads out.prom)" 'families 20' 'is the text of 7 families of the store and of 13'
is "$(value out.prom "$cancelled") $(value out.prom "$requests")" '2 2' \
  'two activities were cancelled, as was asked for'
is "$(value out.prom 'dk_instances{status="cancelled"}')" 2 'beside what the store says'
d stats --prometheus > plain.txt
is "$(head -n "$(wc -l < plain.txt)" out.prom | grep -v '^dk_oldest' | diff - plain.txt |
  grep -v -e 'dk_oldest.*_seconds [0-9.]*$' -e '^[0-9,]*d[0-9]*$' -e '^[0-9,]*a[0-9]*$')" '' \
  'which stays as it is'
is "$(sed "1,$(wc -l < plain.txt)d" out.prom | diff one.prom -)" '' 'of one file all is as it was'

# Another one, of which nothing was cancelled, and a copy.
serve_end
serve_begin "$folder/two.prom"
d start quick-1 --name quick > out.txt
d wait quick-1 > out.txt
serve_saves
serve_end
is "$? $(tail -n 1 served.txt)" '0 serve: saved' 'a second one'
cp one.prom three.prom
d stats --prometheus --metrics one.prom --metrics two.prom --metrics three.prom > out.prom
is "$(reads out.prom)" 'families 20' 'three files: each family is there once'
is "$(value out.prom "$cancelled") $(value out.prom "$requests")" '4 4' 'and added up'
is "$(value out.prom 'dk_orchestrations_total{outcome="completed"}')" 1 'with what one of them has'
python3 - one.prom two.prom three.prom out.prom << 'PYTHON' > sums.txt
import sys
from fractions import Fraction
def read(name):
    lines = [line.rsplit(" ", 1) for line in open(name) if line[0] != "#"]
    return {series: Fraction(number) for series, number in lines}
inputs, output = [read(name) for name in sys.argv[1:-1]], read(sys.argv[-1])
wrong = [series for series in set().union(*inputs)
         if output.get(series) != sum(one.get(series, 0) for one in inputs)]
print(len(set().union(*inputs)) > 90, wrong)
PYTHON
is "$(cat sums.txt)" 'True []' 'every one of the series is the sum'

d stats --metrics one.prom --metrics two.prom > out.txt
is "$(sed -n '/^counted by/,$p' out.txt | head -n 1)" 'counted by runtimes, in 2 files' \
  'for people'
is "$(sed '1,/^counted by/d' out.txt | grep -e cancelled -e requests | sed 's/_sum{\(.*\)}.*/\1/' |
  usual)" "             2  $requests
             2  $cancelled
             2  dk_orchestrations_total{outcome=\"cancelled\"}
             2  dk_activities_total{outcome=\"cancelled\"}" 'each with its number'
is "$(sed '1,/^counted by/d' out.txt | grep -c -e '^ *0  ' -e _bucket)" 0 \
  'without what is 0, and without buckets'
is "$(sed '/^counted by/,$d' out.txt | sed '/^oldest/,$d')" \
  "$(d stats | sed '/^oldest/,$d')" 'behind what the store says'

d stats --json --metrics one.prom --metrics three.prom > out.txt
has '[(m["labels"], m["value"]) for m in o["metrics"] if "activities_can" in m["name"]]' \
  "[({'code': 'terminal_cancelled', 'phase': 'locked', 'name': 'last'}, 4)]" 'in JSON'
has 'len(o["metrics"])' "$(grep -c -v '^#' one.prom)" 'all of them'
has 'o["instances"]["cancelled"]' 2 'beside what the store says'
d stats --json > out.txt
has '"metrics" in o' False 'and not without a file'

# ---- numbers and names ---------------------------------------------------------------------------

most=18446744073709551615
# given FILE LINE...: with the head of a counter.
given() {
  file=$1
  shift
  { printf '# HELP m It counts.\n# TYPE m counter\n'; printf '%s\n' "$@"; } > "$file"
}
given a 'm{x="1"} 18446744073709551614' 'm{x="2"} 0.000000001' 'm{x="3",y="4"} 7'
given b 'm{x="1"} 1' 'm{x="2"} 9007199254740993.999999999' 'm{y="4",x="3"} 8' 'm 9'
d stats --prometheus --metrics a --metrics b > out.prom
is "$(grep '^m' out.prom)" "m{x=\"1\"} $most
m{x=\"2\"} 9007199254740994.000000000
m{x=\"3\",y=\"4\"} 15
m 9" 'sums are exact, and labels have no order'
d stats --json --metrics a --metrics b > out.txt
has '[m["value"] for m in o["metrics"]]' '[1.8446744073709552e+19, 9007199254740994.0, 15, 9]' \
  'in JSON as near as its numbers go'
given a '' '# a comment' 'm{x="1"} 0'
d stats --metrics a > out.txt
is "$(tail -n 1 out.txt | sed 's/^ *//')" '0  all counts' 'nothing is counted yet'

crab=$(printf '\360\237\246\200')
escape=$(printf 'esc\033[2J\302\233\177\342\200\256 %s' "$crab")
given a "m{name=\"$escape \\\\ \\\" \\n\"} 3"
sed "s/It counts./It counts $escape./" a > b
for form in '' --prometheus --json; do
  # shellcheck disable=SC2086
  d stats $form --metrics b > out.txt
  LC_ALL=C tr -d '\n -~' < out.txt > rest.txt
  [ "$form" = --json ] && expected='' || expected=$crab
  is "$(cat rest.txt)" "$expected$([ "$form" != --prometheus ] || echo "$expected")" \
    "stats $form: nothing that moves a terminal"
done
has 'o["metrics"][0]["labels"]["name"].encode().hex()' \
  "$(printf '%s \\ " \n' "$escape" | od -An -tx1 -v | tr -d ' \n')" 'JSON gives back the name'
d stats --prometheus --metrics b > out.txt
is "$(reads out.txt)" 'families 8' 'and Prometheus has a text'
is "$(tail -n 1 out.txt | sed "s/$crab/CRAB/")" \
  'm{name="esc\\x1b[2J\\xc2\\x9b\\x7f\\xe2\\x80\\xae CRAB \\ \" \n"} 3' 'in which it can be seen'

# ---- what is refused -----------------------------------------------------------------------------

# Of a store that does not exist: if a file is wrong, the store is not opened.
on_store "$MODEL" "store=$scratch/gone/model.store"
cp "$scratch/store-1/one.prom" .
d stats --metrics one.prom > out.txt 2> err.txt
is $? 4 'a store that does not exist, and a valid file'
refuses 2 'a file that does not exist' stats --metrics one.prom --metrics none.prom <<'TEXT'
durakit: none.prom: the file of metrics cannot be read
  expected  a file that dk_runtime_save_metrics has written
  found     No such file or directory
  next      durakit stats --help shows examples
TEXT
mkdir a-folder
refuses 2 'a folder' stats --metrics a-folder <<'TEXT'
durakit: a-folder: the file of metrics cannot be read
  expected  a file that dk_runtime_save_metrics has written
  found     Is a directory
  next      durakit stats --help shows examples
TEXT
ln one.prom again.prom
refuses 2 'the same file twice' stats --prometheus --metrics one.prom --metrics again.prom <<'TEXT'
durakit: again.prom: the file of metrics is given twice
  expected  each file once
  found     its counts would be added twice
  next      durakit stats --help shows examples
TEXT
{ cat one.prom; head -c 16777216 /dev/zero | tr '\0' '\n'; } > large.prom
refuses 2 'one that is too large' stats --metrics large.prom <<'TEXT'
durakit: large.prom: the file of metrics is too large
  expected  a file that dk_runtime_save_metrics has written, of 16 MiB at most
  next      durakit stats --help shows examples
TEXT
head -c 16777216 large.prom > whole.prom
d stats --metrics whole.prom > out.txt 2> err.txt
is $? 4 'which 16 MiB are not'
refuses 2 'no name of a file' stats --metrics '' <<'TEXT'
durakit: --metrics: cannot be ""
  expected  a file
  next      durakit stats --help shows examples
TEXT
refuses 2 'another command' instances --metrics one.prom <<'TEXT'
durakit: --metrics: there is no such option of durakit instances
  next      durakit instances --help lists them; durakit stats takes --metrics
TEXT
given a "m{name=\"$escape\"} many"
refuses 2 'a line that is wrong, with text that would move a terminal' stats --metrics a <<TEXT
durakit: a:3: a runtime does not write such a number
  expected  a whole number up to $most, or one with up to 9 decimals
  found     m{name="esc\\x1b[2J\\xc2\\x9b\\x7f\\xe2\\x80\\xae $crab"} many
  next      give files that dk_runtime_save_metrics has written
TEXT
given a "m $most"
given b 'm 1'
refuses 2 'a sum that is too large' stats --metrics a --metrics b <<TEXT
durakit: b:3: the sum with the earlier files is too large
  expected  a sum up to $most
  found     m 1
  next      give files that dk_runtime_save_metrics has written
TEXT
if [ "$(id -u)" -ne 0 ]; then
  cp one.prom secret.prom && chmod 000 secret.prom
  d stats --metrics secret.prom > out.txt 2> err.txt
  is "$? $(sed -n 3p err.txt)" '2   found     Permission denied' 'no right to read it'
else
  skip 'no right to read it' 'root may read everything'
fi

# wrong LINE WHAT TEXT [BEFORE]: such a file is refused at that line; BEFORE is a file before it.
wrong() {
  # shellcheck disable=SC2059
  printf "$3" > a
  # shellcheck disable=SC2086
  d stats --prometheus ${4:+--metrics "$4"} --metrics a > out.txt 2> err.txt
  is "$? $(head -n 1 err.txt)$(cat out.txt)" "2 durakit: a:$1: $2" "refused: $2" &&
    [ "$(wc -l < err.txt)" -le 4 ] && grep -q '^  expected  .' err.txt || diag "$(cat err.txt)"
}
gauge='# HELP g It is.\n# TYPE g gauge\n'
long='# HELP h It lasts.\n# TYPE h histogram\n'
one='h_bucket{le="1"} 2\nh_bucket{le="+Inf"} 3\n'
wrong 1 'the file has no metrics' ''
wrong 3 'the file has no metrics' '\n# nothing\n'
wrong 3 'the last line has no end' "${head}m 1"
wrong 3 'this line is not text' "${head}m{a=\"\\377\"} 1\n"
wrong 3 'this line is not text' "${head}m 1\\000\n"
wrong 1 'this metric has no HELP and TYPE above' 'm 1\n'
wrong 2 'this metric has no HELP and TYPE above' '# TYPE m counter\nm 1\n'
wrong 2 'the metric above has no HELP and TYPE' "# HELP m x\n${gauge}g 1\n"
wrong 2 'the metric above has no HELP and TYPE' '# HELP m x\n'
wrong 1 'this line names no metric' '# HELP 0 x\n'
wrong 1 'this line names no metric' '# TYPE m\n'
wrong 1 'this escape is invalid' '# HELP m x\\t\n'
wrong 2 'this type cannot be added up' '# HELP m x\n# TYPE m summary\n'
wrong 3 'this metric has a second TYPE' "$head# TYPE m counter\n"
wrong 3 'this metric has a second HELP' "$head# HELP m x\n"
wrong 5 'this metric appears twice' "$head$gauge$head"
wrong 2 'this metric has another type in an earlier file' '# HELP m x\n# TYPE m gauge\n' b
wrong 1 'this is a metric of the store, which stats counts itself' '# HELP dk_instances x\n'
wrong 1 'this is a metric of the store, which stats counts itself' \
  '# HELP dk_oldest_activity_age_seconds x\n'
wrong 3 'this sample does not belong to the metric above' "${head}mm 1\n"
wrong 3 'this sample does not belong to the metric above' "${head}m_sum 1\n"
wrong 3 'this sample does not belong to the metric above' "${long}h 1\n"
wrong 3 'this line is not a sample' "${head}0 1\n"
wrong 3 'this line is not a sample' "${head}m\n"
wrong 3 'this line is not a sample' "${head}m{a=\"x\"}1\n"
wrong 3 'this is not a label' "${head}m{} 1\n"
wrong 3 'this is not a label' "${head}m{a=x} 1\n"
wrong 3 'this is not a label' "${head}m{a=\"x\",} 1\n"
wrong 3 'a label appears twice' "${head}m{a=\"x\",b=\"x\",a=\"y\"} 1\n"
wrong 3 'the labels have no end' "${head}m{a=\"x\" 1\n"
wrong 3 'the value of a label has no end, or an invalid escape' "${head}m{a=\"x} 1\n"
wrong 3 'the value of a label has no end, or an invalid escape' "${head}m{a=\"\\\\t\"} 1\n"
for number in '' -1 +1 1e3 NaN 0x1 1. .5 1.0000000001 18446744073709551616 '1 1' ' 1' '1 '; do
  wrong 3 'a runtime does not write such a number' "${head}m $number\n"
done
wrong 4 'this series appears twice' "${head}m{a=\"x\",b=\"y\"} 1\nm{b=\"y\",a=\"x\"} 1\n"
wrong 4 'this sample is not the next one of the histogram' "${long}h_bucket{le=\"1\"} 2\nh_sum 1\n"
wrong 3 'this sample is not the next one of the histogram' "${long}h_sum 1\n"
wrong 6 'the histogram above is incomplete' "$long${one}h_sum 1\n"
wrong 5 'the histogram above is incomplete' "$long$one$head"
wrong 3 'this is not a bucket' "${long}h_bucket 1\n"
wrong 3 'this is not a bucket' "${long}h_bucket{le=\"1\"} 1.5\n"
wrong 3 'this is not a bound of a bucket' "${long}h_bucket{le=\"one\"} 1\n"
wrong 4 'this bound is not above the previous one' \
  "${long}h_bucket{le=\"1\"} 1\nh_bucket{le=\"1.0\"} 1\n"
wrong 4 'this bucket counts less than the previous one' \
  "${long}h_bucket{le=\"1\"} 2\nh_bucket{le=\"+Inf\"} 1\n"
wrong 5 'this sample has other labels than its histogram' "$long${one}h_sum{a=\"x\"} 1\n"
wrong 6 'the count differs from that of the last bucket' "$long${one}h_sum 1\nh_count 4\n"
wrong 7 'earlier histograms of this metric do not have this bucket' \
  "$long${one}h_sum 1\nh_count 3\nh_bucket{a=\"x\",le=\"2\"} 1\n"
# shellcheck disable=SC2059
printf "$long${one}h_sum 1\nh_count 3\n" > histogram
wrong 3 'earlier histograms of this metric do not have this bucket' \
  "${long}h_bucket{le=\"+Inf\"} 3\n" histogram
wrong 1 'a histogram has samples of this name' '# HELP h_count x\n' histogram
printf '# HELP h_sum x\n# TYPE h_sum gauge\n' > sum
wrong 2 'another metric has the name of a sample of this one' "$long" sum
labels=$(for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17; do printf 'l%s="x",' $i; done)
wrong 3 'this sample has too many labels' "${head}m{${labels%,}} 1\n"

# A name that is hostile, or very many: it is not slow.
python3 -c 'print("# HELP m x\n# TYPE m counter")
for i in range(400000): print("m{a=\"%d\"} 1" % i)
for i in range(100000): print("# HELP m%d x\n# TYPE m%d counter" % (i, i))' > many
cd "$scratch/store-1" || exit 99
folder=$scratch/store-1
run_ok 'many series, and many metrics' timeout 120 \
  "$DURAKIT" stats --prometheus --metrics "$scratch/store-2/many" --provider "$MODEL" \
  --settings settings

done_testing
