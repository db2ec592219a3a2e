#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# Reads the structs, types, function types and constants of C headers and writes, for the compiler
# to fill in, a program that prints the layout: `layout.pl HEADER... > list.c`, compiled and run,
# makes golden.def.
# Written for provider.h and admin.h, and for nothing else: one declaration a statement, no nested
# structs.

use strict;
use warnings;

local $/;
my $text = join '', <>;
$text =~ s{/\*.*?\*/}{ }gs;
$text =~ s{^\s*#.*?(?:\\\n.*?)*$}{}gm;
$text =~ s{\s+}{ }g;

my (@structs, @types, @functions, @constants);

# "*name" or "(*name)(arguments)": the type is what is left without the name.
sub member {
  my ($declaration) = @_;
  if ($declaration =~ /^(.*)\(\*(\w+)\)\s*(\(.*\))$/) {
    return ($2, "$1(*)" . parameters($3));
  }
  $declaration =~ /^(.*?)(\w+)$/ or die "layout.pl: cannot read the member: $declaration\n";
  return ($2, $1);
}

# A list of parameters without their names.
sub parameters {
  my ($list) = @_;
  $list =~ s/^\(\s*|\s*\)$//g;
  my @types = map { s/^\s+|\s+$//gr } split /,/, $list;
  s/(\*|\s)\w+$/$1/ for grep { /^(const )?struct \w+ .*\w$|\*\w+$|^\w+ \w+$/ } @types;
  return '(' . join(', ', map { s/\s+$//r } @types) . ')';
}

while ($text =~ /\bstruct (\w+) \{(.*?)\}\s*;/g) {
  my ($name, $body) = ($1, $2);
  my @members;
  for my $statement (grep { /\S/ } split /;/, $body) {
    $statement =~ s/^\s+|\s+$//g;
    if ($statement =~ /\(\*/) {
      push @members, [member($statement)];
      next;
    }
    my @declarators = split /\s*,\s*/, $statement;
    my ($first, $type) = member(shift @declarators);
    push @members, [$first, $type];
    my $base = $type =~ s/[\s*]*(\*\s*const\s*)*\*?\s*$//r;
    for (@declarators) {
      /^(\**)\s*(\w+)$/ or die "layout.pl: cannot read the declarator: $_\n";
      push @members, [$2, "$base $1"];
    }
  }
  push @structs, [$name, \@members];
}
while ($text =~ /\btypedef (\w+) (\w+);/g) {
  push @types, [$2, $1];
}
while ($text =~ /\btypedef ([^;{}]*?)\b(\w+_fn)(\([^;]*\));/g) {
  push @functions, [$2, $1 . parameters($3)];
}
while ($text =~ /\benum \{(.*?)\}/g) {
  push @constants, map { /(\w+)/ ? $1 : () } split /,/, $1;
}

print "#include <stdio.h>\n#include <durakit/admin.h>\nint main(void)\n{\n";
print "  printf(\"MINOR(%u)\\nDRAFT(%u)\\n\", (unsigned)DK_ABI_MINOR, (unsigned)DK_ABI_DRAFT);\n";
print "  printf(\"STAMP(0x%llx)\\n\", (unsigned long long)DK_STAMP);\n";
print "  printf(\"TYPE($$_[0], $$_[1])\\n\");\n" for @types;
print "  printf(\"CONSTANT($_, %lld)\\n\", (long long)$_);\n" for @constants;
print "  printf(\"FUNCTION($$_[0], $$_[1])\\n\");\n" for @functions;
for (@structs) {
  my ($name, $members) = @$_;
  my $kind = $$members[0][0] eq 'struct_size' || $name eq 'dk_provider' ? 'GROWS' : 'FROZEN';
  print "  printf(\"$kind($name, %zu)\\n\", sizeof(struct $name));\n";
  for (@$members) {
    my ($member, $type) = @$_;
    $type =~ s/^\s+|\s+$//g;
    print "  printf(\"MEMBER($name, $member, %zu, %zu, $type)\\n\",\n"
      . "         offsetof(struct $name, $member), sizeof(((struct $name *)0)->$member));\n";
  }
}
print "  return 0;\n}\n";
