/* SPDX-License-Identifier: Apache-2.0 */
/* Reads an author's file of suppressions.  Each entry has its reason in the line above it, and none
 * may hide what the provider itself does: its first frame that is not the allocator's names another
 * object, and no function of the plugin. */
#include "runner/suppressions.h"

#include <ctype.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runner/symbols.h"

struct reading {
  struct run *run;
  const char *path;
  FILE *file;
  unsigned line;           /* of `text` */
  char *text;              /* without blanks around it */
  size_t room;
  bool reason;             /* the line before it was a comment with words */
};

static int
refuse(const struct reading *reading, unsigned line, const char *what, const char *expected,
       const char *found)
{
  struct dk_text where = DK_TEXT_EMPTY;

  dk_text_printf(&where, "%s:%u", reading->path, line);
  int code = run_refuse(reading->run, EXIT_USAGE,
                        &(struct problem){dk_text_str(&where), what, expected, found, NULL});
  dk_text_done(&where);
  return code;
}

static bool
is_reason(const char *line)
{
  if (*line != '#')
    return false;
  for (; *line; line++) {
    if (isalnum((unsigned char)*line))
      return true;
  }
  return false;
}

/* false: there is no more. */
static bool
next_line(struct reading *reading)
{
  bool reason = reading->text && is_reason(reading->text);
  ssize_t n = getline(&reading->text, &reading->room, reading->file);

  if (n < 0)
    return false;
  reading->line++;
  reading->reason = reason;
  while (n > 0 && isspace((unsigned char)reading->text[n - 1]))
    reading->text[--n] = '\0';
  size_t blanks = strspn(reading->text, " \t");
  memmove(reading->text, reading->text + blanks, (size_t)n - blanks + 1);
  return true;
}

/* The next line of an entry; false: the file ends in it. */
static bool
next_of_entry(struct reading *reading)
{
  while (next_line(reading)) {
    if (reading->text[0] && reading->text[0] != '#')
      return true;
  }
  return false;
}

static bool
is_allocator(const char *frame)
{
  static const char *const names[] = {
    "malloc", "calloc", "realloc", "reallocarray", "memalign", "posix_memalign", "aligned_alloc",
    "valloc", "free", "strdup", "strndup", "_Znw*", "_Zna*", "_Zdl*", "_Zda*", "operator new*",
    "operator delete*"};

  if (strncmp(frame, "fun:", 4) != 0)
    return false;
  for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
    if (strcmp(frame + 4, names[i]) == 0 || fnmatch(names[i], frame + 4, 0) == 0)
      return true;
  }
  return false;
}

static bool
has_letters(const char *pattern)
{
  return pattern[strcspn(pattern, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_")] != '\0';
}

/* Why the first frame may not be this; NULL: it may. */
static const char *
fault_of_frame(const struct run *run, const char *frame)
{
  if (strncmp(frame, "obj:", 4) == 0 && has_letters(frame + 4))
    return fnmatch(frame + 4, run->plugin, 0) == 0 ? "its first frame is the provider" : NULL;
  if (strncmp(frame, "fun:", 4) == 0 && has_letters(frame + 4))
    return symbols_any(run->plugin, frame + 4) ? "its first frame is a function of the provider"
                                               : NULL;
  return "its first frame may be anything, the provider too";
}

/* From the line behind "{" on. */
static int
read_entry(struct reading *reading)
{
  unsigned begin = reading->line;
  unsigned number = 0;
  bool looked = false;

  while (next_of_entry(reading) && strcmp(reading->text, "}") != 0) {
    const char *line = reading->text;
    bool frame = strncmp(line, "fun:", 4) == 0 || strncmp(line, "obj:", 4) == 0
                 || strncmp(line, "src:", 4) == 0 || strcmp(line, "...") == 0;
    number++;
    if (number == 2 && strncmp(line, "Memcheck:", 9) != 0)
      return refuse(reading, reading->line, "is for no check that is run here", "Memcheck:...",
                    line);
    if (number <= 2 || !frame || looked || is_allocator(line))
      continue;
    const char *fault = fault_of_frame(reading->run, line);
    if (fault)
      return refuse(reading, reading->line, fault,
                    "the function or the library that does what is to be hidden, by its name",
                    line);
    looked = true;
  }
  if (strcmp(reading->text, "}") != 0)
    return refuse(reading, begin, "the entry does not end", "} on a line of its own", NULL);
  return looked ? EXIT_PASSED
                : refuse(reading, begin, "the entry names no frame, and would hide everything",
                         "fun: or obj: of what is to be hidden", NULL);
}

int
suppressions_check(struct run *run, const char *path)
{
  struct reading reading = {.run = run, .path = path, .file = fopen(path, "re")};
  int code = EXIT_PASSED;

  if (!reading.file)
    return run_refuse(run, EXIT_USAGE,
                      &(struct problem){path, "cannot be read", "a file of Valgrind's suppressions",
                                        strerror(errno), NULL});
  while (code == EXIT_PASSED && next_line(&reading)) {
    if (strcmp(reading.text, "{") != 0)
      continue;
    if (!reading.reason)
      code = refuse(&reading, reading.line, "this suppression has no reason",
                    "a line above it that begins with # and says why it is right", NULL);
    else
      code = read_entry(&reading);
  }
  free(reading.text);
  fclose(reading.file);
  return code;
}
