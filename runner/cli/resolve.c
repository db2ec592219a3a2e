/* SPDX-License-Identifier: Apache-2.0 */
/* Finds plugins by path and by name.  Opens none of them. */
#include "runner/cli/resolve.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runner/cli/suggest.h"

#ifndef DK_PLUGIN_DIR
#define DK_PLUGIN_DIR "/usr/local/lib/durakit"
#endif

static bool
looks_like_path(const char *name)
{
  size_t n = strlen(name);

  return n == 0 || name[0] == '.' || strchr(name, '/') != NULL
         || (n > 3 && strcmp(name + n - 3, ".so") == 0);
}

char *
resolve_absolute(const char *name)
{
  struct dk_text path = DK_TEXT_EMPTY;
  char *folder = NULL;

  if (name[0] != '/') {
    folder = getcwd(NULL, 0);
    if (!folder)
      return NULL;
    while (strncmp(name, "./", 2) == 0)
      name += 2;
    dk_text_printf(&path, "%s/", folder);
  }
  dk_text_puts(&path, name);
  free(folder);
  char *result = dk_text_failed(&path) ? NULL : strdup(dk_text_str(&path));
  dk_text_done(&path);
  if (!result)
    errno = ENOMEM;
  return result;
}

/* Cuts the last name off the path, and returns whether it was this one. */
static bool
cut_name(char *path, const char *name)
{
  char *slash = strrchr(path, '/');
  bool is_it = slash && strcmp(slash + 1, name) == 0;

  if (slash)
    *slash = '\0';
  return is_it;
}

/* A command that was built and not installed is BUILD/runner/durakit (BUILD/runner/.libs/durakit if
 * it is linked with a library of the build), and BUILD has the config.status that made it. */
static bool
find_build_folder(char folder[PATH_MAX])
{
  char status[PATH_MAX + sizeof("/config.status")];
  ssize_t n = readlink("/proc/self/exe", folder, PATH_MAX - 1);

  if (n <= 0)
    return false;
  folder[n] = '\0';
  cut_name(folder, "durakit");
  size_t length = strlen(folder);
  if (length > 6 && strcmp(folder + length - 6, "/.libs") == 0)
    cut_name(folder, ".libs");
  if (!cut_name(folder, "runner"))
    return false;
  snprintf(status, sizeof(status), "%s/config.status", folder);
  return access(status, F_OK) == 0;
}

/* Where the build puts the plugins, until they are installed. */
static const char *const built[] = {
  "providers/sqlite/.libs", "providers/pg/.libs", "conformance/model/.libs",
};

static bool
each_built(bool (*visit)(void *context, const char *folder), void *context)
{
  char build[PATH_MAX], folder[PATH_MAX + 32];

  if (!find_build_folder(build))
    return false;
  for (size_t i = 0; i < sizeof(built) / sizeof(built[0]); i++) {
    snprintf(folder, sizeof(folder), "%s/%s", build, built[i]);
    if (access(folder, F_OK) == 0 && visit(context, folder))
      return true;
  }
  return false;
}

static bool
is_in(void *context, const char *folder)
{
  const char *path = context;
  size_t n = strlen(folder);

  return strncmp(path, folder, n) == 0 && path[n] == '/';
}

bool
resolve_is_built(const char *path)
{
  return each_built(is_in, (void *)(uintptr_t)path);
}

/* Calls `visit` with each folder of plugins until it returns true; false: out of memory, and a
 * folder is left out. */
static bool
each_folder(bool (*visit)(void *context, const char *folder), void *context)
{
  const char *list = getenv("DURAKIT_PLUGIN_PATH");

  while (list && *list) {
    size_t n = strcspn(list, ":");
    char *folder = strndup(list, n);
    if (!folder)
      return false;
    bool stop = n > 0 && visit(context, folder);
    free(folder);
    if (stop)
      return true;
    list += n + (list[n] ? 1 : 0);
  }
  if (!each_built(visit, context))
    visit(context, DK_PLUGIN_DIR);
  return true;
}

struct search {
  const char *name;
  char *found;
  bool failed; /* out of memory: it is not known which one is meant */
};

static bool
look_in(void *context, const char *folder)
{
  struct search *search = context;
  struct dk_text path = DK_TEXT_EMPTY;

  dk_text_printf(&path, "%s/%s.so", folder, search->name);
  bool there = access(dk_text_str(&path), F_OK) == 0;
  if (there)
    search->found = resolve_absolute(dk_text_str(&path));
  search->failed = dk_text_failed(&path) || (there && !search->found);
  dk_text_done(&path);
  return search->failed || search->found != NULL;
}

struct listing {
  void (*each)(void *context, const char *name, const char *path);
  void *context;
  bool failed;
  struct dk_text listed; /* names, with a slash before and after each: no name has one */
};

/* A name means the first file of that name. */
static bool
resolve_is_first(struct listing *listing, const char *name)
{
  struct dk_text quoted = DK_TEXT_EMPTY;

  dk_text_printf(&quoted, "/%s/", name);
  bool first = dk_text_failed(&quoted)
               || !strstr(dk_text_str(&listing->listed), dk_text_str(&quoted));
  if (first)
    dk_text_add_text(&listing->listed, &quoted);
  dk_text_done(&quoted);
  return first;
}

static int
is_plugin(const struct dirent *entry)
{
  size_t n = strlen(entry->d_name);

  return n > 3 && strcmp(entry->d_name + n - 3, ".so") == 0;
}

static bool
list_in(void *context, const char *folder)
{
  struct listing *listing = context;
  struct dirent **entries;
  int n = scandir(folder, &entries, is_plugin, alphasort);

  listing->failed = listing->failed || (n < 0 && errno == ENOMEM);

  for (int i = 0; i < n; i++) {
    char *file = entries[i]->d_name;
    struct dk_text path = DK_TEXT_EMPTY;
    dk_text_printf(&path, "%s/%s", folder, file);
    file[strlen(file) - 3] = '\0';
    listing->failed = listing->failed || dk_text_failed(&path);
    if (resolve_is_first(listing, file))
      listing->each(listing->context, file, dk_text_str(&path));
    dk_text_done(&path);
    free(entries[i]);
  }
  if (n >= 0)
    free(entries);
  return false;
}

bool
resolve_each(void (*each)(void *context, const char *name, const char *path), void *context)
{
  struct listing listing = {each, context, false, DK_TEXT_EMPTY};

  bool all = each_folder(list_in, &listing) && !listing.failed && !dk_text_failed(&listing.listed);
  dk_text_done(&listing.listed);
  return all;
}

/* ---- the message if there is none ------------------------------------------------------------ */

struct words {
  struct dk_text *folders, *names;
  const char *wanted;
  char nearest[128];
  unsigned distance;
};

static bool
add_folder(void *context, const char *folder)
{
  struct words *words = context;

  dk_text_printf(words->folders, "%s%s", words->folders->length ? ", " : "", folder);
  return false;
}

static void
add_name(void *context, const char *name, const char *path)
{
  struct words *words = context;
  struct suggest suggest = {.word = words->wanted};

  (void)path;
  dk_text_printf(words->names, "%s%s", words->names->length ? ", " : "", name);
  suggest_try(&suggest, name);
  if (suggest.best && (!words->nearest[0] || suggest.distance < words->distance)) {
    snprintf(words->nearest, sizeof(words->nearest), "%s", name);
    words->distance = suggest.distance;
  }
}

static void
say_none(const char *name, struct problem *ret_problem, struct dk_text text[3])
{
  struct dk_text folders = DK_TEXT_EMPTY;
  struct dk_text *names = &text[1];
  struct words words = {.folders = &folders, .names = names, .wanted = name};

  each_folder(add_folder, &words);
  resolve_each(add_name, &words);
  dk_text_printf(&text[0], "%s.so in %s", name, dk_text_str(&folders));
  if (words.nearest[0])
    dk_text_printf(&text[2], "did you mean %s? For a file of your own, type ./%s.so",
                   words.nearest, name);
  else
    dk_text_printf(&text[2], "for a file of your own, type ./%s.so; DURAKIT_PLUGIN_PATH names "
                             "more folders", name);
  dk_text_done(&folders);
  *ret_problem = (struct problem){.where = name,
                                  .what = "no plugin of this name is installed",
                                  .expected = dk_text_str(&text[0]),
                                  .found = names->length ? dk_text_str(names) : "no plugin at all",
                                  .next = dk_text_str(&text[2])};
}

char *
resolve_plugin(const char *name, struct problem *ret_problem, struct dk_text words[3])
{
  struct search search = {.name = name};

  if (looks_like_path(name)) {
    char *path = *name ? resolve_absolute(name) : NULL;
    if (!path)
      *ret_problem = (struct problem){.where = name,
                                      .what = *name ? "the current folder cannot be found"
                                                    : "the path of the plugin is empty",
                                      .expected = "a file, ./my_provider.so"};
    return path;
  }
  if (!each_folder(look_in, &search) || search.failed) {
    free(search.found);
    *ret_problem = (struct problem){.where = name, .what = "out of memory"};
    return NULL;
  }
  if (!search.found)
    say_none(name, ret_problem, words);
  return search.found;
}
