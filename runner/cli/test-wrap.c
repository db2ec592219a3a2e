/* SPDX-License-Identifier: Apache-2.0 */
/* Lines are broken at blanks and continue below their text; short lines stay whole. */
#include "runner/cli/wrap.h"

#include <string.h>
#include <unistd.h>

#include "conformance/tap/tap.h"

static void
wraps(const char *text, const char *expected, const char *name)
{
  struct dk_text out = DK_TEXT_EMPTY;

  wrap_text(&out, text, strlen(text), 20);
  is(dk_text_str(&out), expected, "%s", name);
  dk_text_done(&out);
}

static void
stream(void)
{
  int ends[2];
  char read_back[64] = "";

  FILE *file = pipe(ends) == 0 ? wrap_stream(ends[1], 20) : NULL;
  ok(file != NULL, "a stream");
  if (!file)
    return;
  fprintf(file, "one two ");
  fflush(file);
  fprintf(file, "three four five\nsix");
  ok(fclose(file) == 0, "and its end");
  ok(read(ends[0], read_back, sizeof(read_back) - 1) > 0, "something was written");
  is(read_back, "one two three four\nfive\nsix", "a line that comes in pieces is one line");
  close(ends[0]);
}

int
main(void)
{
  struct dk_text out = DK_TEXT_EMPTY;

  plan(NO_PLAN);
  wraps("", "", "nothing");
  wraps("short\n", "short\n", "a short line");
  wraps("exactly twenty wide.\n", "exactly twenty wide.\n", "a line of the width");
  wraps("exactly twenty wider.\n", "exactly twenty\nwider.\n", "a longer one");
  wraps("  two before, and more\n", "  two before, and\n  more\n", "blanks before it");
  wraps("label    text that goes on\n", "label    text that\n         goes on\n",
        "below the text after a label");
  wraps("         goes on and on\n", "         goes on and\n         on\n", "and below that again");
  wraps("One.  Two sentences here\n", "One.  Two sentences\nhere\n", "a sentence is no label");
  wraps("averyveryverylongwordindeed x\n", "averyveryverylongwordindeed\nx\n",
        "a word stays whole");
  wraps("label    averyveryverylongword x\n", "label    averyveryverylongword\n         x\n",
        "even after a label");
  wraps("label    aword-of-fifteen x\n", "label\n    aword-of-fifteen\n    x\n",
        "a word that fits in a line of its own gets one");
  wraps("a  label    aword-of-fifteen\n", "a  label\n   aword-of-fifteen\n",
        "below the text before it, if it fits there");
  wraps("label    aword-of-nineteen-c\n", "label\naword-of-nineteen-c\n",
        "without any blank, if necessary");
  wraps("label    some text-of-twelve\n", "label    some\n    text-of-twelve\n",
        "a word in the middle moves what follows");
  wraps("one two three four five\n\nsix\n", "one two three four\nfive\n\nsix\n", "an empty line");
  wraps("\303\244\303\244\303\244\303\244\303\244\303\244 \303\244\303\244\303\244 xxxxxxxxx\n",
        "\303\244\303\244\303\244\303\244\303\244\303\244 \303\244\303\244\303\244 xxxxxxxxx\n",
        "a character is one column");
  wraps("\033[31mred\033[0m but twenty wide\n", "\033[31mred\033[0m but twenty wide\n",
        "a colour takes no column");
  wraps("no end of the line here", "no end of the line\nhere", "a line without its end");

  wrap_text(&out, "a line that is left as it is\n", 29, 0);
  is(dk_text_str(&out), "a line that is left as it is\n", "without a width no line is broken");
  dk_text_done(&out);
  stream();
  return done_testing();
}
