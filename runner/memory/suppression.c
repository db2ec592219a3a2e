/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a finding matches one entry in Valgrind's format: by the kind, its parameter, and the
 * frames from the top of the first stack on, as Valgrind 3.19 compares them.  But names are those
 * of the XML, which has C++ names in demangled form. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runner/memory/findings.h"
#include "runner/memory/suppressions.h"

static const char *const kinds[] = {
  "Addr1", "Addr2", "Addr4", "Addr8", "Addr16", "Addr32", "Value0", "Value1", "Value2", "Value4",
  "Value8", "Value16", "Value32", "Cond", "Jump", "Free", "Overlap", "Param", "User", "CoreMem",
  "Mempool", "FishyValue", "Leak"};

/* The kinds of the XML with one kind of suppression each. */
static const struct {
  const char *found, *entry;
} simple[] = {{"UninitCondition", "Cond"}, {"UninitCondition", "Value0"},
              {"InvalidJump", "Jump"}, {"InvalidFree", "Free"}, {"MismatchedFree", "Free"},
              {"Overlap", "Overlap"}, {"ClientCheck", "User"}, {"CoreMemError", "CoreMem"},
              {"InvalidMemPool", "Mempool"}};

static const struct {
  const char *entry, *found;
} leaks[] = {{"definite", "Leak_DefinitelyLost"}, {"indirect", "Leak_IndirectlyLost"},
             {"possible", "Leak_PossiblyLost"}, {"reachable", "Leak_StillReachable"}};

bool
suppression_is_kind(const char *kind)
{
  for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
    if (strcmp(kinds[i], kind) == 0)
      return true;
  }
  return false;
}

unsigned
suppression_leak_bit(const char *name)
{
  for (unsigned i = 0; i < sizeof(leaks) / sizeof(leaks[0]); i++) {
    if (strcmp(leaks[i].entry, name) == 0 || strcmp(leaks[i].found, name) == 0)
      return 1u << i;
  }
  return 0;
}

bool
suppression_glob(const char *pattern, const char *text)
{
  const char *star = NULL; /* after the last star */
  const char *from = NULL; /* where its match ends */

  while (*text) {
    if (*pattern == '*') {
      star = ++pattern;
      from = text;
    } else if (*pattern == '?' || *pattern == *text) {
      pattern++;
      text++;
    } else if (star) {
      pattern = star;
      text = ++from;
    } else {
      return false;
    }
  }
  while (*pattern == '*')
    pattern++;
  return *pattern == '\0';
}

/* ---- the kind -------------------------------------------------------------------------------- */

/* "Addr4" of "Invalid read of size 4", "Value8" of "Use of uninitialised value of size 8". */
static bool
fits_size(const char *kind, const char *word, const char *what)
{
  static const char before[] = " of size ";
  const char *size = strstr(what, before);
  size_t length = strlen(word);

  return size && strncmp(kind, word, length) == 0
         && strtoul(kind + length, NULL, 10) == strtoul(size + strlen(before), NULL, 10);
}

static bool
begins(const char *text, const char *with)
{
  return strncmp(text, with, strlen(with)) == 0;
}

/* "Syscall param write(buf) points to uninitialised byte(s)" */
static bool
fits_param(const struct suppression *entry, const char *what)
{
  char words[256];

  snprintf(words, sizeof(words), "Syscall param %s ", entry->extra);
  return strcmp(entry->kind, "Param") == 0 && begins(what, words);
}

/* "Argument 'size' of function malloc has a fishy (possibly negative) value: -1" */
static bool
fits_argument(const struct suppression *entry, const char *what)
{
  char words[256];
  size_t function = strcspn(entry->extra, "(");
  const char *argument = entry->extra + function + (entry->extra[function] ? 1 : 0);

  snprintf(words, sizeof(words), "Argument '%.*s' of function %.*s has ",
           (int)strcspn(argument, ")"), argument, (int)function, entry->extra);
  return strcmp(entry->kind, "FishyValue") == 0 && begins(what, words);
}

static bool
fits_kind(const struct suppression *entry, const struct finding *finding)
{
  const char *kind = finding->kind;

  if (finding_is_leak(finding))
    return strcmp(entry->kind, "Leak") == 0 && (entry->leaks & suppression_leak_bit(kind)) != 0;
  if (strcmp(kind, "InvalidRead") == 0 || strcmp(kind, "InvalidWrite") == 0)
    return fits_size(entry->kind, "Addr", finding->what);
  if (strcmp(kind, "UninitValue") == 0)
    return fits_size(entry->kind, "Value", finding->what);
  if (strcmp(kind, "SyscallParam") == 0)
    return fits_param(entry, finding->what);
  if (strcmp(kind, "FishyValue") == 0)
    return fits_argument(entry, finding->what);
  for (size_t i = 0; i < sizeof(simple) / sizeof(simple[0]); i++) {
    if (strcmp(simple[i].found, kind) == 0 && strcmp(simple[i].entry, entry->kind) == 0)
      return true;
  }
  return false;
}

/* ---- the frames ------------------------------------------------------------------------------ */

/* "file.c" matches any line of it. */
static bool
fits_source(const char *pattern, const struct frame *frame)
{
  char place[160];

  if (!frame->file[0])
    return false;
  snprintf(place, sizeof(place), "%s:%u", frame->file, frame->line);
  return suppression_glob(pattern, frame->file) || suppression_glob(pattern, place);
}

/* Valgrind's name for what is unknown. */
static const char *
known_or(const char *text)
{
  return text[0] ? text : "???";
}

static bool
fits_frame(const char *pattern, const struct frame *frame)
{
  if (begins(pattern, "fun:"))
    return suppression_glob(pattern + 4, known_or(frame->function));
  if (begins(pattern, "obj:"))
    return suppression_glob(pattern + 4, known_or(frame->object));
  return fits_source(pattern + 4, frame);
}

/* Frames below the entry's last frame do not matter. */
static bool
fits_frames(const struct suppression *entry, const struct stack *stack)
{
  unsigned at = 0;      /* in the stack */
  unsigned n = 0;       /* in the entry */
  unsigned again = 0;   /* after the last "..." of the entry; 0: there was none */
  unsigned skipped = 0; /* where its match ends */

  while (n < entry->n_frames) {
    if (strcmp(entry->frames[n], "...") == 0) {
      again = ++n;
      skipped = at;
    } else if (at < stack->n && fits_frame(entry->frames[n], &stack->frames[at])) {
      n++;
      at++;
    } else if (again > 0 && skipped < stack->n) {
      n = again;
      at = ++skipped;
    } else {
      return false;
    }
  }
  return true;
}

bool
suppression_fits(const struct suppression *entry, const struct finding *finding)
{
  return finding->n_stacks > 0 && fits_kind(entry, finding)
         && fits_frames(entry, &finding->stacks[0]);
}

void
suppressions_done(struct suppressions *entries)
{
  for (size_t i = 0; i < entries->n; i++) {
    for (unsigned n = 0; n < entries->items[i].n_frames; n++)
      free((char *)entries->items[i].frames[n]);
  }
  free(entries->items);
  *entries = (struct suppressions){.n = 0};
}
