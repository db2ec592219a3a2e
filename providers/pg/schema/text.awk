# SPDX-License-Identifier: Apache-2.0
# Makes one text of C, a `const char` array by the name in `name`, of files in SQL.  Lines that are
# nothing but a comment are left out: the server has no use for them.  With -v drops=1 the text is
# what removes all that the files make, each by its name and nothing else; for this their CREATE
# stands at the beginning of a line, and no function has the name of another.
#
# Headers of C come first.  From them it takes the numbers of enums (NAME = 1), and puts them where
# the SQL says @NAME@.

# No gsub: how many backslashes it wants differs between awks.
function escaped(line,    i, c, said) {
  said = ""
  for (i = 1; i <= length(line); i++) {
    c = substr(line, i, 1)
    if (c == "\\" || c == "\"") said = said "\\"
    said = said c
  }
  return said
}

function take_numbers(line,    words) {
  while (match(line, /[A-Z][A-Z0-9_]+ = [0-9]+/)) {
    split(substr(line, RSTART, RLENGTH), words, " = ")
    numbers[words[1]] = words[2]
    line = substr(line, RSTART + RLENGTH)
  }
}

function with_numbers(line,    name) {
  while (match(line, /@[A-Z][A-Z0-9_]*@/)) {
    name = substr(line, RSTART + 1, RLENGTH - 2)
    if (!(name in numbers)) {
      print FILENAME ":" FNR ": no header has a number for " name > "/dev/stderr"
      failed = 1
      exit 1
    }
    line = substr(line, 1, RSTART - 1) numbers[name] substr(line, RSTART + RLENGTH)
  }
  return line
}

function put(line) {
  print "  \"" escaped(with_numbers(line)) "\\n\""
}

# What uses others goes first.  Nobody's of ours is used by what is not ours: RESTRICT.
function put_drop(kind) {
  if (kind in names) put("DROP " kind " IF EXISTS " names[kind] " RESTRICT;")
}

NR == 1 {
  print "/* Made by schema/text.awk from schema/. */"
  print "extern const char " name "[];"
  print "const char " name "[] ="
}

FILENAME ~ /\.h$/ {
  take_numbers($0)
  next
}

drops {
  sub(/^CREATE UNLOGGED /, "CREATE ")
  if (match($0, /^CREATE (TABLE|VIEW|FUNCTION|SEQUENCE|TYPE) @schema@\.[a-z0-9_]+/)) {
    split(substr($0, RSTART, RLENGTH), words, " ")
    before = (words[2] in names) ? names[words[2]] ", " : ""
    names[words[2]] = before words[3]
  }
  next
}

/^[ \t]*(--.*)?$/ { next }
{ put($0) }

END {
  if (failed) exit 1
  if (drops) {
    put_drop("VIEW")
    put_drop("FUNCTION")
    put_drop("TABLE")
    put_drop("SEQUENCE")
    put_drop("TYPE")
  }
  print "  \"\";"
}
