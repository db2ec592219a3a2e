/* SPDX-License-Identifier: Apache-2.0 */
/* Writes and compares the file "origin" in the folders of runs: texts that end in NUL, because a
 * value may contain any other byte.  Of a secret it has only the checksum; and only checksums of
 * all settings but the one that names the store: they name its server, perhaps with a password. */
#include "runner/setup/run-origin.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/checksum.h"
#include "runner/report/repro-command.h"
#include "runner/system/file.h"

enum { PLUGIN, NAME, KEY, VALUE, DIGEST, OTHERS, PARTS };
enum { MOST_BYTES = 4 << 20 };

static bool
is_hidden(const struct run *run)
{
  const struct given given = {.key = (char *)(uintptr_t)run->store_key};

  return run->store_key
         && (run_is_secret(run, &given)
             || secrets_are_in(&run->secrets, run->store_value, strlen(run->store_value)));
}

static int
compare_keys(const void *a, const void *b)
{
  return strcmp((*(const struct given *const *)a)->key, (*(const struct given *const *)b)->key);
}

/* All settings but the store's, in the order of their keys: "conninfo=0123456789abcdef ". */
static bool
add_others(const struct run *run, struct dk_text *text)
{
  size_t n = run->options->n_settings;
  const struct given **sorted = calloc(n + 1, sizeof(const struct given *));

  for (size_t i = 0; sorted && i < n; i++)
    sorted[i] = &run->options->settings[i];
  if (sorted)
    qsort(sorted, n, sizeof(const struct given *), compare_keys);
  for (size_t i = 0; sorted && i < n; i++) {
    const char *value = sorted[i]->value;
    if (!run->store_key || strcmp(sorted[i]->key, run->store_key) != 0)
      dk_text_printf(text, "%s=%016" PRIx64 " ", sorted[i]->key,
                     dk_fnv1a64(DK_FNV1A64_START, value, strlen(value)));
  }
  free(sorted);
  return sorted != NULL;
}

static bool
any_failed(const struct dk_text parts[PARTS])
{
  bool failed = false;

  for (int i = 0; i < PARTS; i++)
    failed = failed || dk_text_failed(&parts[i]);
  return failed;
}

/* The texts of a run's file; false: out of memory. */
static bool
describe_origin(const struct run *run, struct dk_text parts[PARTS])
{
  const char *value = run->store_value ? run->store_value : "";

  dk_text_puts(&parts[PLUGIN], run->plugin);
  dk_text_puts(&parts[NAME], run->described ? run->probe->name : "");
  dk_text_puts(&parts[KEY], run->store_key ? run->store_key : "");
  if (value[0] && is_hidden(run))
    dk_text_printf(&parts[DIGEST], "%016" PRIx64, dk_fnv1a64(0, value, strlen(value)));
  else
    dk_text_puts(&parts[VALUE], value);
  bool listed = add_others(run, &parts[OTHERS]);
  return listed && !any_failed(parts);
}

static void
parts_done(struct dk_text parts[PARTS])
{
  for (int i = 0; i < PARTS; i++)
    dk_text_done(&parts[i]);
}

static bool
put_parts(FILE *file, const struct dk_text parts[PARTS])
{
  bool written = true;

  for (int i = 0; i < PARTS; i++) {
    size_t size = parts[i].length + 1;
    written = written && fwrite(dk_text_str(&parts[i]), 1, size, file) == size;
  }
  return written;
}

bool
run_origin_note(const struct run *run)
{
  struct dk_text parts[PARTS] = {DK_TEXT_EMPTY};
  bool described = describe_origin(run, parts);
  int fd = described ? file_make(run->folder.fd, "origin", 0600) : -1;
  FILE *file = fd >= 0 ? fdopen(fd, "w") : NULL;
  bool written = file && put_parts(file, parts);
  int reason = described ? errno : ENOMEM;

  parts_done(parts);
  if (fd >= 0 && !file)
    close(fd);
  if (file && fclose(file) != 0 && written) {
    written = false;
    reason = errno;
  }
  errno = reason;
  return written;
}

/* The texts of a file; false: it has fewer. */
static bool
split(const struct dk_text *bytes, struct dk_text parts[PARTS])
{
  size_t at = 0;
  int part = 0;

  for (; part < PARTS && at < bytes->length; part++) {
    const char *text = dk_text_str(bytes) + at;
    const char *end = memchr(text, '\0', bytes->length - at);
    if (!end)
      break;
    dk_text_puts(&parts[part], text);
    at += strlen(text) + 1;
  }
  return part == PARTS;
}

static bool
same(const struct dk_text *a, const struct dk_text *b)
{
  return strcmp(dk_text_str(a), dk_text_str(b)) == 0;
}

/* A provider is identified by its name, which stays the same when its file is moved; if it has
 * none, by its file. */
static bool
same_plugin(const struct dk_text one[PARTS], const struct dk_text other[PARTS])
{
  bool named = one[NAME].length > 0 && other[NAME].length > 0;

  return named ? same(&one[NAME], &other[NAME]) : same(&one[PLUGIN], &other[PLUGIN]);
}

static void
say_parts(struct dk_text *text, const struct dk_text parts[PARTS])
{
  struct dk_text word = DK_TEXT_EMPTY;

  dk_text_puts(text, "its stores were made by ");
  dk_text_add_escaped(text, dk_text_str(&parts[PLUGIN]), parts[PLUGIN].length, DK_ESCAPE_VISIBLE);
  if (parts[VALUE].length > 0 || parts[DIGEST].length > 0) {
    dk_text_add_escaped(&word, dk_text_str(&parts[VALUE]), parts[VALUE].length,
                        DK_ESCAPE_VISIBLE);
    dk_text_printf(text, " --set %s=", dk_text_str(&parts[KEY]));
    if (parts[DIGEST].length > 0)
      dk_text_puts(text, "*** (another value)");
    else
      repro_quote(text, dk_text_str(&word));
  }
  if (dk_text_failed(&word))
    dk_text_fail(text);
  dk_text_done(&word);
}

/* The list has "pool=0123456789abcdef"; or it has "pool=", if `pair` ends there. */
static bool
has_setting(const struct dk_text *list, const char *pair, size_t length)
{
  const char *next = dk_text_str(list);

  while (*next) {
    if (strncmp(next, pair, length) == 0)
      return true;
    next += strcspn(next, " ");
    next += *next ? 1 : 0;
  }
  return false;
}

/* Adds the keys of `list` that `other` lacks; with `values` also those with another value there. */
static void
say_keys(struct dk_text *text, const char *how, const struct dk_text *list,
         const struct dk_text *other, bool values)
{
  const char *next = dk_text_str(list);

  while (*next) {
    size_t key = strcspn(next, "= ");
    size_t n = strcspn(next, " ");
    if (!has_setting(other, next, values ? n : key + 1)) {
      dk_text_puts(text, how);
      dk_text_add_escaped(text, next, key, DK_ESCAPE_VISIBLE);
    }
    next += n;
    next += *next ? 1 : 0;
  }
}

static enum run_origin
compare_origins(const struct dk_text theirs[PARTS], const struct dk_text ours[PARTS],
                struct dk_text *ret_how)
{
  if (same_plugin(theirs, ours) && same(&theirs[KEY], &ours[KEY])
      && same(&theirs[VALUE], &ours[VALUE]) && same(&theirs[DIGEST], &ours[DIGEST])
      && same(&theirs[OTHERS], &ours[OTHERS]))
    return RUN_ORIGIN_SAME;
  say_parts(ret_how, theirs);
  say_keys(ret_how, ", with another ", &theirs[OTHERS], &ours[OTHERS], true);
  say_keys(ret_how, ", without ", &ours[OTHERS], &theirs[OTHERS], false);
  return RUN_ORIGIN_DIFFERS;
}

enum run_origin
run_origin_compare(const struct run *run, int folder, struct dk_text *ret_how)
{
  struct dk_text bytes = DK_TEXT_EMPTY;
  struct dk_text theirs[PARTS] = {DK_TEXT_EMPTY};
  struct dk_text ours[PARTS] = {DK_TEXT_EMPTY};
  int reason = file_read(folder, "origin", MOST_BYTES, &bytes) == 0 ? 0 : errno;
  bool whole = split(&bytes, theirs);
  enum run_origin origin = RUN_ORIGIN_UNKNOWN;

  if (!describe_origin(run, ours) || any_failed(theirs))
    reason = ENOMEM;
  if (reason != 0 && reason != ENOENT) {
    dk_text_printf(ret_how, "its origin cannot be read: %s", file_words(reason));
  } else if (!whole) {
    dk_text_puts(ret_how, "an older version made it, and did not record the plugin and settings; "
                          "remove the stores that its journal names by hand, then this folder");
    origin = RUN_ORIGIN_DIFFERS;
  } else {
    origin = compare_origins(theirs, ours, ret_how);
  }
  dk_text_done(&bytes);
  parts_done(theirs);
  parts_done(ours);
  return origin;
}
