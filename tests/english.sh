#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Documents, messages, comments and names of test points are in plain English: this test refuses
# phrases that an international engineer has to read twice.  To check more files, name them in
# texts or sources; to refuse another phrase, add one line.

. "${top_srcdir:-$(dirname "$0")/..}/tests/tap.sh"
scratch
cd "$top_srcdir" || exit 99

# docs/contract.md is made from the tables of the contract.  Of the public headers the comments are
# judged, which are the manual.
texts() {
  ls -- *.md NEWS TODO docs/*.md tests/README.md core/include/durakit/*.h |
    grep -v -x docs/coverage.md
}

# Comments and strings are judged of what is C, and whole scripts and SQL, except this script.
sources() {
  find core providers conformance runner examples tests \( -path '*/include/durakit' -prune \) -o \
    \( -name '*.[ch]' -o -name '*.def' -o -name '*.py' -o -name '*.sh' -o -name '*.sql' \) -print |
    grep -v -x tests/english.sh | sort
}

# One phrase a line: an extended regular expression, =, what to say instead, =, a sample.
cat > "$scratch/phrases" <<'PHRASES'
call(s|ed|ing)? (it |them )?back=cancel=A fetch that waits is called back.
(is|are|was|were|has|have) gone=was deleted, has ended=The row is gone.
(is|are|was|were|stays?|stayed) away=is unreachable=The store is away.
(is|are|was|were|not|it|be) over=has ended, has expired=What is not over stays.
may not=must not, might not=It may not block.
who(so)?ever=an operator, a client that=Whoever writes a provider reads this.
(for|to|by|from|of) who=if it, a client that=Skipped for who does not declare it.
[.:;,(|] who (does|has|is|may|reads|comes|needs|wants)=a client that, if you=Who comes late waits.
(some|no|any|every)body=a worker, no worker, all processes=Nobody waits for it.
(put|puts|putting) off=delayed=A turn is put off.
(parked|stalled)=delayed=The instance is stalled.
(is|are|was|were|be|been) told=is notified, is reported=The worker is told.
also (if|when|where|while)=even if=It is removed, also if the provider crashes.
goes nowhere=has no effect=What it returns goes nowhere.
left to itself=abandoned=The thread is left to itself.
not come back=not return=One that does not come back is left alone.
PHRASES

# FILE=TEXT: names that have to stay.
cat > "$scratch/allowed" <<'ALLOWED'
docs/runtime.md=committed, dropped, stalled, lost
core/runtime/shared/metrics.c=" stalled
core/runtime/shared/test-metrics.c=stalled
core/runtime/turn/test-turn-metrics.c=stalled
ALLOWED

# Prints FILE:LINE: PHRASE for each paragraph that has one.  Code is not judged: blocks, indented
# lines and text between backquotes; nor is quoted output, in italics.
cat > "$scratch/english.awk" <<'AWK'
function judge(    i, words) {
  words = " ." tolower(text) " "
  for (i = 1; i <= n_allowed; i++)
    while (at[i] == file && (here = index(words, allowed[i])))
      words = substr(words, 1, here - 1) substr(words, here + length(allowed[i]))
  gsub(/`[^`]*`/, "`", words)
  gsub(/[a-z0-9]+(-[a-z0-9]+)+/, "`", words) # ids of checks and mutants
  gsub(/[*][*]/, "", words)
  gsub(/[*][^* ][^*]*[^* ][*]/, "*", words)
  for (i = 1; i <= n; i++)
    if (words ~ ("[^a-z_]" phrase[i] "[^a-z_]"))
      print file ":" first ": " phrase[i] " (say: " instead[i] ")"
  text = ""
}
FILENAME == ARGV[1] {
  split($0, part, "=")
  at[++n_allowed] = part[1]
  allowed[n_allowed] = part[2]
  next
}
FILENAME == ARGV[2] { split($0, part, "="); phrase[++n] = part[1]; instead[n] = part[2]; next }
/^```/ { judge(); fence = !fence; next }
fence || /^    / || /^$/ { judge(); next }
/^[|#]/ { judge() }
{
  if (text == "") first = FNR
  line = $0
  if (FILENAME ~ /[.]h$/) sub(/^ *(\/?[*]+|[*])/, "", line)
  sub(/^ *([-*]|[0-9]+[.]) /, ". ", line) # an item begins a sentence
  text = text " " line
  file = name ? name : FILENAME
}
END { judge() }
AWK
# C as text: code is left out, a string ends with a quotation mark; lines stay where they are.
cat > "$scratch/c-text.awk" <<'AWK'
{
  out = ""
  for (i = 1; i <= length($0); i++) {
    char = substr($0, i, 1)
    two = substr($0, i, 2)
    if (within == "/*" && two == "*/") { within = ""; i++ }
    else if (within == "\"" && char == "\\") i++
    else if (within == "\"" && char == "\"") within = "between"
    else if (within == "/*" || within == "\"") out = out char
    else if (two == "/*") { within = two; i++; out = out " \" " }
    else if (two == "//") { out = out substr($0, i + 2); break }
    else if (char == "\"") { if (within != "between") out = out " \" "; within = char }
    else if (char == "'") { i += substr($0, i + 1, 1) == "\\" ? 3 : 2 }
    else if (char !~ /[ \t]/) within = ""
  }
  gsub(/[*`]/, " ", out)
  sub(/^ +/, "", out)
  print out ~ /^ *$/ ? "" : " " out
}
AWK
check_source() {
  case $1 in
    *.[ch] | *.def) ${AWK:-awk} -f "$scratch/c-text.awk" "$1" ;;
    *) sed 's/`//g; s/^    */ /' "$1" ;;
  esac > "$scratch/text"
  check "$scratch/text" "$1"
}
# check FILE [NAME]: as if the file had this name
check() {
  ${AWK:-awk} -v name="${2:-}" -f "$scratch/english.awk" "$scratch/allowed" "$scratch/phrases" "$1"
}

[ "$(texts | wc -l)" -ge 13 ]
ok $? 'the documents are there'
for file in $(texts); do
  is "$(check "$file")" '' "$file is in plain English"
done

for file in $(sources); do
  check_source "$file"
done > "$scratch/found"
is "$(cat "$scratch/found")" '' 'comments, messages and names of test points are in plain English'

# Each phrase is found, even across a line; and code is left alone.
while IFS== read -r phrase instead sample; do
  printf '%s\n' "$sample" | tr ' ' '\n' > "$scratch/sample"
  is "$(check "$scratch/sample" | sed 's/^[^:]*:1: //')" "$phrase (say: $instead)" "found: $sample"
done < "$scratch/phrases"
printf '%s\n' 'It prints `is gone` and *it is gone*.' '' '    it is over' '```' 'may not' '```' \
  > "$scratch/sample"
is "$(check "$scratch/sample")" '' 'code and quoted output are left alone'

done_testing
