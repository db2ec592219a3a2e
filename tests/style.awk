# SPDX-License-Identifier: Apache-2.0
# The style checker: reads sources, prints "rule file:line: text" for each line that breaks a rule.
# style.sh runs it over the tree and shows, rule by rule, that it can fail.

function finding(rule, what) {
  print rule " " FILENAME ":" FNR ": " what
}

function ends_in(suffix) {
  return substr(FILENAME, length(FILENAME) - length(suffix) + 1) == suffix
}

# Splits a line of C: `code` is what is neither comment nor literal, `words` is code and comments.
function split_c(line,    i, c, two, quote) {
  code = words = ""
  for (i = 1; i <= length(line); i++) {
    c = substr(line, i, 1)
    two = substr(line, i, 2)
    if (in_comment) {
      if (two == "*/") { in_comment = 0; i++ } else words = words c
    } else if (quote != "") {
      if (c == "\\") i++
      else if (c == quote) { quote = ""; code = code c; words = words c }
    } else if (two == "/*") {
      in_comment = 1; i++
    } else if (two == "//") {
      words = words substr(line, i); return
    } else {
      if (c == "\"" || c == "'") quote = c
      code = code c; words = words c
    }
  }
}

function is_word_in(pattern, text) {
  return (" " text " ") ~ ("[^A-Za-z0-9_](" pattern ")[^A-Za-z0-9_]")
}

# An assert may be left out (NDEBUG), and so must change nothing.  It may take several lines.
function check_asserts(line,    i, c) {
  while (line != "") {
    if (!assert_depth) {
      if (!match(line, /(^|[^A-Za-z0-9_])assert *[(]/)) return
      line = substr(line, RSTART + RLENGTH)
      assert_depth = 1
      asserted = ""
    }
    for (i = 1; i <= length(line) && assert_depth > 0; i++) {
      c = substr(line, i, 1)
      assert_depth += (c == "(") - (c == ")")
      asserted = asserted c
    }
    line = substr(line, i)
    if (!assert_depth) check_asserted(asserted)
  }
}

function check_asserted(what) {
  gsub(/<<=|>>=/, "++", what)
  gsub(/[=!<>]=/, "", what)
  if (what ~ /=|[+][+]|--/) finding("assert", "an assert that changes something")
}

# What others copy is free of conditions: the public headers, the examples, the smallest provider.
function check_licence_line(    want) {
  want = "Apache-2.0"
  if (FILENAME ~ /(^|\/)(core\/include|examples)\/|tests\/abi\/tiny\.c$/) want = "0BSD"
  if ($0 !~ ("SPDX-License-Identifier: " want "( |$)"))
    finding("spdx", "expected the line SPDX-License-Identifier: " want)
}

# The text of a failure is for people, and no product decides by it; tests may read it.  Looked at
# are it, what a file takes from it (x = failure->text), and `why`, as which it is handed on.  Who
# only makes other words of it has a remark in the line.
function check_decision(    words, compared) {
  if (FILENAME ~ /(^|\/)test-[^\/]*$|\/testing\// || \
      FILENAME !~ /(^|\/)(core|runner|providers|examples)\//)
    return
  if (match(code, /[A-Za-z_]+ = .*failure(\([^;]*\))?->text/)) {
    split(substr(code, RSTART, RLENGTH), words, " ")
    of_failure = of_failure "|" words[1]
  }
  if (!match(code " ", "(^|[^A-Za-z0-9_])(" comparing ") *[(]") || \
      /\/\* words \*\//) return
  compared = substr(code, RSTART)
  gsub(/[a-z_]+->(sqlstate|operation)/, "", compared)
  if (is_word_in("dk_caller_failure|failure|why" of_failure, compared))
    finding("decision", "a decision by the text of a failure")
}

BEGIN {
  comparing = "strcmp|strncmp|strcasecmp|strncasecmp|strstr|strcasestr|strchr|memmem|memcmp"
  forbidden = "sleep|usleep|nanosleep|clock_nanosleep|strcpy|stpcpy|strcat|sprintf|vsprintf|gets"
  machine = "/" "(work|root|home)/|/tmp/" "dk/"
  unfinished = "TO" "DO|FIX" "ME|XX" "X"
  unfinished_note = "TO" "DO[(:]|FIX" "ME|XX" "X"
}

FNR == 1 {
  in_comment = assert_depth = 0
  of_failure = ""
  is_c = ends_in(".c") || ends_in(".h") || ends_in(".cc")
  is_make = ends_in(".mk") || ends_in("Makefile.am") || ends_in("Makefile")
  is_text = ends_in(".md") || ends_in("NEWS") || ends_in("TODO")
  is_data = ends_in(".def")
  licence_line = /^#!/ ? 2 : 1
  if (is_text) licence_line = 0
}

FNR == licence_line { check_licence_line() }

/\t/ && !is_make { finding("tab", "a tab") }
/[ \t\r]$/ { finding("space", "white space at the end of the line") }
$0 ~ machine { finding("path", "a path of one machine") }

!is_text {
  width = $0
  gsub(/[\200-\277]/, "", width)
  if (length(width) > 100) finding("width", length(width) " columns, at most 100")
}

is_c {
  split_c($0)
  if (is_word_in(forbidden, code) && match(code " ", "(^|[^A-Za-z0-9_])(" forbidden ") *[(]"))
    finding("call", "a call that is not used here: " substr(code, RSTART, RLENGTH - 1))
  check_decision()
  check_asserts(code)
  if (FNR == 701) finding("length", "more than 700 lines")
}

# In C the words of code and comments count, elsewhere all; outside of C a colon must follow.
!is_text {
  said = is_c ? words : $0
  gsub("# " "TO" "DO( |$)", "", said) # the directive of TAP
  if (is_word_in(is_c ? unfinished : unfinished_note, said))
    finding("unfinished", "a note of something not done")
}
