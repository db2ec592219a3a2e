/* SPDX-License-Identifier: Apache-2.0 */
/* Reads an author's file of suppressions.  Each entry has its reason in the line above it.  No
 * entry can hide the provider's own findings: finding-owner.c sees to that.  An entry is refused
 * here if its first frame that is not the allocator's plainly is the provider's, or matches
 * anything, because its author believes that it works. */
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runner/memory/suppressions.h"
#include "runner/memory/symbols.h"
#include "runner/setup/run-setup.h"

struct reading {
  struct run *run;
  const char *path;
  FILE *file;
  char *real;              /* the plugin, behind all links; NULL: unknown */
  unsigned line;           /* of `text` */
  char *text;              /* without blanks around it */
  size_t room;
  bool reason;             /* the line before it was a comment with words */
};

static int
refuse_suppression(const struct reading *reading, unsigned line, const char *what,
                   const char *expected,
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

/* ---- the first frame ------------------------------------------------------------------------- */

/* The top frames of each leak, for all owners of blocks. */
static bool
may_be_allocator(const char *frame)
{
  static const char *const names[] = {
    "malloc", "calloc", "realloc", "reallocarray", "memalign", "posix_memalign", "aligned_alloc",
    "valloc", "free", "strdup", "strndup", "operator new(unsigned long)", "operator delete(void*)",
    "operator new[](unsigned long)", "operator delete[](void*)", "_Znwm", "_Znam", "_ZdlPv",
    "_ZdaPv"};

  for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
    if (strncmp(frame, "fun:", 4) == 0 && suppression_glob(frame + 4, names[i]))
      return true;
  }
  return false;
}

static bool
has_letters(const char *pattern)
{
  return pattern[strcspn(pattern, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_")] != '\0';
}

/* Why the first frame must not be this; NULL: it is allowed. */
static const char *
fault_of_frame(const struct reading *reading, const char *frame)
{
  const char *plugin = reading->run->plugin;

  if (strcmp(frame, "...") == 0 || !has_letters(frame + 4))
    return "its first frame matches anything, even the provider";
  if (strncmp(frame, "obj:", 4) == 0
      && (suppression_glob(frame + 4, plugin)
          || (reading->real && suppression_glob(frame + 4, reading->real))))
    return "its first frame matches the provider";
  if (strncmp(frame, "fun:", 4) == 0 && symbols_any(plugin, frame + 4))
    return "its first frame matches a function of the provider";
  return NULL;
}

/* Judges the first frame that is not the allocator's; EXIT_PASSED if it is allowed. */
static int
look_at_frame(const struct reading *reading, const char *frame, bool *looked)
{
  if (*looked || (has_letters(frame) && may_be_allocator(frame)))
    return EXIT_PASSED;
  const char *fault = fault_of_frame(reading, frame);
  *looked = true;
  return fault ? refuse_suppression(reading, reading->line, fault,
                                    "the name of the function or library whose findings it "
                                    "hides",
                                    frame)
               : EXIT_PASSED;
}

/* ---- an entry -------------------------------------------------------------------------------- */

static int
refuse_without_memory(const struct reading *reading)
{
  return run_refuse(reading->run, EXIT_ENVIRONMENT,
                    &(struct problem){reading->path, "cannot be kept", "memory", strerror(ENOMEM),
                                      NULL});
}

static int
ends_early(const struct reading *reading, unsigned begin)
{
  return refuse_suppression(reading, begin, "the entry does not end", "} on a line of its own",
                            NULL);
}

/* "Memcheck:Leak"; also for more tools than one: "Memcheck,Addrcheck:Leak". */
static int
read_kind(const struct reading *reading, struct suppression *entry)
{
  static const char tool[] = "Memcheck";
  const char *colon = strchr(reading->text, ':');
  bool ours = false;

  for (const char *at = reading->text; colon && at < colon; at += strspn(at, ",")) {
    size_t length = strcspn(at, ",:");
    ours = ours || (length == strlen(tool) && strncmp(at, tool, length) == 0);
    at += length;
    if (length == 0)
      break;
  }
  if (!ours)
    return refuse_suppression(reading, reading->line, "is not for Memcheck, the only tool in use",
                              "Memcheck:...",
                              reading->text);
  if (!suppression_is_kind(colon + 1))
    return refuse_suppression(reading, reading->line, "Memcheck has no findings of this kind",
                              "Addr1 to Addr32, Value1 to Value32, Cond, Jump, Free, Overlap, "
                              "Param, User, "
                              "CoreMem, Mempool, FishyValue, Leak", colon + 1);
  snprintf(entry->kind, sizeof(entry->kind), "%s", colon + 1);
  return EXIT_PASSED;
}

static const char leak_kinds[] = "match-leak-kinds:";

/* "match-leak-kinds: definite,possible", or all or none of them. */
static int
read_leak_kinds(const struct reading *reading, struct suppression *entry)
{
  char *at = reading->text + strlen(leak_kinds);
  char *next = NULL;

  entry->leaks = 0;
  at += strspn(at, " \t");
  if (strcmp(at, "none") == 0)
    return EXIT_PASSED;
  if (strcmp(at, "all") == 0) {
    entry->leaks = UINT_MAX;
    return EXIT_PASSED;
  }
  for (char *word = *at ? strtok_r(at, ",", &next) : at; word; word = strtok_r(NULL, ",", &next)) {
    unsigned bit = strncmp(word, "Leak_", 5) == 0 ? 0 : suppression_leak_bit(word);
    entry->leaks |= bit;
    if (bit == 0)
      return refuse_suppression(reading, reading->line, "there is no such kind of leak",
                                "definite, indirect, possible, reachable, separated by commas; or "
                                "all; or none", word);
  }
  return EXIT_PASSED;
}

static bool
is_frame(const char *line)
{
  return strcmp(line, "...") == 0
         || ((strncmp(line, "fun:", 4) == 0 || strncmp(line, "obj:", 4) == 0
              || strncmp(line, "src:", 4) == 0) && line[4]);
}

static int
read_frame(const struct reading *reading, struct suppression *entry)
{
  if (!is_frame(reading->text))
    return refuse_suppression(reading, reading->line, "this line is not a frame",
                              "fun:, obj: or src: and a name, or ...", reading->text);
  if (entry->n_frames == SUPPRESSION_FRAMES)
    return refuse_suppression(reading, reading->line, "the entry has too many frames", "at most 24",
                              reading->text);
  char *frame = strdup(reading->text);
  if (!frame)
    return refuse_without_memory(reading);
  entry->frames[entry->n_frames++] = frame;
  return EXIT_PASSED;
}

/* The lines between kind and frames: one that two kinds must have, and one that leaks may have. */
static int
read_extra(struct reading *reading, struct suppression *entry, unsigned begin)
{
  bool must = strcmp(entry->kind, "Param") == 0 || strcmp(entry->kind, "FishyValue") == 0;

  if (!next_of_entry(reading))
    return ends_early(reading, begin);
  entry->leaks = UINT_MAX;
  if (must) {
    if (is_frame(reading->text) || strcmp(reading->text, "}") == 0)
      return refuse_suppression(reading, reading->line,
                                "the entry does not name its parameter",
                                entry->kind[0] == 'P' ? "a line such as write(buf)"
                                                      : "a line such as malloc(size)",
                                reading->text);
    snprintf(entry->extra, sizeof(entry->extra), "%s", reading->text);
    return next_of_entry(reading) ? EXIT_PASSED : ends_early(reading, begin);
  }
  if (strcmp(entry->kind, "Leak") == 0
      && strncmp(reading->text, leak_kinds, strlen(leak_kinds)) == 0) {
    int code = read_leak_kinds(reading, entry);
    return code != EXIT_PASSED || next_of_entry(reading) ? code : ends_early(reading, begin);
  }
  return EXIT_PASSED;
}

/* From the line behind "{" to "}". */
static int
read_entry(struct reading *reading, struct suppression *entry)
{
  unsigned begin = reading->line;
  bool looked = false;
  int code;

  if (!next_of_entry(reading))
    return ends_early(reading, begin);
  if (strcmp(reading->text, "}") == 0 || is_frame(reading->text))
    return refuse_suppression(reading, reading->line, "the entry has no name",
                              "a line of its own for it",
                              reading->text);
  snprintf(entry->name, sizeof(entry->name), "%.127s", reading->text);
  if (!next_of_entry(reading))
    return ends_early(reading, begin);
  code = read_kind(reading, entry);
  if (code == EXIT_PASSED)
    code = read_extra(reading, entry, begin);
  while (code == EXIT_PASSED && strcmp(reading->text, "}") != 0) {
    code = read_frame(reading, entry);
    if (code == EXIT_PASSED)
      code = look_at_frame(reading, reading->text, &looked);
    if (code == EXIT_PASSED && !next_of_entry(reading))
      code = ends_early(reading, begin);
  }
  if (code == EXIT_PASSED && !looked)
    code = refuse_suppression(reading, begin, "the entry names no frame, and would hide everything",
                              "fun: or obj: with the name of a function or library", NULL);
  return code;
}

/* ---- a file ---------------------------------------------------------------------------------- */

static int
add_entry(struct reading *reading, struct suppressions *entries)
{
  struct suppression *grown = reallocarray(entries->items, entries->n + 1, sizeof(*grown));

  if (!grown)
    return refuse_without_memory(reading);
  entries->items = grown;
  entries->items[entries->n] = (struct suppression){.n_frames = 0};
  return read_entry(reading, &entries->items[entries->n++]);
}

/* A line outside the entries, or the one that begins an entry. */
static int
take_suppression_line(struct reading *reading, struct suppressions *entries)
{
  if (!reading->text[0] || reading->text[0] == '#')
    return EXIT_PASSED;
  if (strcmp(reading->text, "{") != 0)
    return refuse_suppression(reading, reading->line, "this line belongs to no entry",
                              "{ on a line of its own, or # before a comment",
                              reading->text);
  if (!reading->reason)
    return refuse_suppression(reading, reading->line, "this suppression has no reason",
                              "a line above it that begins with # and says why it is justified",
                              NULL);
  return add_entry(reading, entries);
}

int
run_read_suppressions(struct run *run, struct suppressions *entries, const char *path)
{
  struct reading reading = {.run = run, .path = path, .file = fopen(path, "re")};
  int code = EXIT_PASSED;
  bool more = true;

  if (reading.file)
    reading.real = realpath(run->plugin, NULL);
  while (reading.file && code == EXIT_PASSED && (more = next_line(&reading)))
    code = take_suppression_line(&reading, entries);
  if (!reading.file || (!more && ferror(reading.file)))
    code = run_refuse(run, EXIT_USAGE,
                      &(struct problem){path, "cannot be read",
                                        "a file of suppressions for Valgrind", strerror(errno),
                                        NULL});
  free(reading.text);
  free(reading.real);
  if (reading.file)
    fclose(reading.file);
  return code;
}
