# SPDX-License-Identifier: Apache-2.0
# Files of suppressions as one text in C.

BEGIN {
  print "/* SPDX-License-Identifier: Apache-2.0 */"
  print "/* Made from runner/memory/suppressions by runner/memory/suppressions.awk. */"
  print "#include \"runner/memory/suppressions.h\""
  print ""
  print "const char suppressions_own[] ="
}

{
  gsub(/\\/, "\\\\")
  gsub(/"/, "\\\"")
  print "  \"" $0 "\\n\""
}

END { print "  \"\";" }
