# SPDX-License-Identifier: Apache-2.0
# Reads the rows of a table ("folder: folders it may use"), then sources.  Prints every row that
# names what has no row above it, and every #include that the table does not allow.  Included names
# are looked up as the compiler does: beside the file, in core/include, in the top folder.  Names
# that belong to no folder of ours are the system's.

# The row of a file: its own, or that of the longest folder of the table that it lies in.  kind: ""
# or "tests of ".
function row_of(file, kind,    best, row) {
  best = ""
  for (row in may_use)
    if (index(kind file "/", row "/") == 1 && length(row) > length(best)) best = row
  return best
}

# Whether a row above, or the row itself, is for this folder or file, or for a part of it.
function is_above(granted, row,    above) {
  if (index(granted "/", row "/") == 1 || index(row "/", granted "/") == 1) return 1
  for (above in may_use)
    if (index(granted "/", above "/") == 1 || index(above "/", granted "/") == 1) return 1
  return 0
}

function exists(file,    line) {
  if (!(file in is_there)) is_there[file] = (file in is_ours)
  return is_there[file]
}

# Removes "folder/../" and "./".
function plain(path) {
  while (sub(/(^|\/)\.\//, "/", path)) sub(/^\//, "", path)
  while (sub(/[^\/.][^\/]*\/\.\.\//, "", path)) continue
  return path
}

function place_of(name, file,    beside, folder) {
  folder = file
  sub(/[^\/]*$/, "", folder)
  beside = plain(folder name)
  if (exists(beside)) return beside
  if (exists("core/include/" name)) return "core/include/" name
  if (exists(name)) return name
  return ""
}

function is_allowed(from, to,    n, i, list) {
  n = split(may_use[from], list, " ")
  for (i = 1; i <= n; i++)
    if (to == list[i] || index(to, list[i] "/") == 1) return 1
  return 0
}

function is_test(file) {
  return file ~ /(^|\/)test-[^\/]*$/
}

FILENAME == table {
  if ($0 !~ /:/) next
  row = substr($0, 1, index($0, ":") - 1)
  n = split(substr($0, index($0, ":") + 1), granted, " ")
  for (i = 1; i <= n; i++)
    if (row !~ /^tests of / && !is_above(granted[i], row))
      print row " may use " granted[i] ", which has no row above it"
  may_use[row] = substr($0, index($0, ":") + 1)
  next
}

FILENAME == list { is_ours[$0] = 1; next }

/^[ \t]*#[ \t]*include[ \t]*[<"]/ {
  name = $0
  sub(/^[^<"]*[<"]/, "", name)
  sub(/[>"].*/, "", name)
  target = place_of(name, FILENAME)
  from = row_of(FILENAME, "")
  if (from == "") {
    print FILENAME ":" FNR ": its folder has no row in the table"
  } else if (target == "") {
    if (/"/ && name != "config.h")
      print FILENAME ":" FNR ": \"" name "\" is not found"
    else if (from == "core/include" && !index(" " standard " ", " " name " "))
      print FILENAME ":" FNR ": <" name "> is no C standard header that it may use"
  } else if (!is_allowed(from, target) &&
             !(is_test(FILENAME) && is_allowed(row_of(FILENAME, "tests of "), target))) {
    print FILENAME ":" FNR ": " from " must not include " target
  }
}
