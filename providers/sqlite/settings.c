/* SPDX-License-Identifier: Apache-2.0 */
/* The settings that open was given: see settings.h. */
#include "providers/sqlite/settings.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* SQLite accepts no longer name: 512 with the longest name that it puts behind ours, "-journal". */
enum { MAX_PATH_BYTES = 500, DEFAULT_BUSY_MS = 5000 };

const struct dk_param sqlite_params[] = {
  {.key = "store", .type = "path", .flags = DK_PARAM_REQUIRED | DK_PARAM_STORE,
   .help = "the store's file, on a disk of this machine, not on a network; files with -wal, -shm "
           "and -lock after its name are made beside it"},
  {.key = "synchronous", .type = "string", .fallback = "full",
   .help = "full: acknowledged commits survive a power cut; normal: faster, but a power cut may "
           "undo the last commits, each as a whole"},
  {.key = "busy_timeout", .type = "duration", .fallback = "5s",
   .help = "how long a call waits for another process that holds the store, before DK_BUSY"},
  {.key = NULL},
};

static const struct dk_setting *
setting_of(const struct dk_open *open, const char *key)
{
  for (size_t i = 0; i < open->n_settings; i++)
    if (strcmp(open->settings[i].key, key) == 0 && open->settings[i].value.ptr)
      return &open->settings[i];
  return NULL;
}

static dk_status
read_synchronous(const struct dk_setting *setting, enum synchronous *ret, struct why *why)
{
  *ret = SYNCHRONOUS_FULL;
  if (!setting || strcmp(setting->value.ptr, "full") == 0)
    return DK_OK;
  if (strcmp(setting->value.ptr, "normal") != 0)
    return why_set(why, DK_INVALID, "synchronous is \"%.40s\"; expected full or normal",
                   setting->value.ptr);
  *ret = SYNCHRONOUS_NORMAL;
  return DK_OK;
}

/* The host has checked the form: a number, and ms, s, m, h or nothing. */
static dk_status
read_busy_timeout(const struct dk_setting *setting, int64_t *ret_ms, struct why *why)
{
  static const struct {
    const char *name;
    int64_t ms;
  } units[] = {{"", 1}, {"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}};
  char *rest;

  *ret_ms = DEFAULT_BUSY_MS;
  if (!setting)
    return DK_OK;
  errno = 0;
  long long number = strtoll(setting->value.ptr, &rest, 10);
  for (size_t i = 0; rest != setting->value.ptr && errno == 0 && number >= 0 &&
                     i < sizeof units / sizeof units[0]; i++)
    if (strcmp(rest, units[i].name) == 0 && !__builtin_mul_overflow(number, units[i].ms, ret_ms))
      return DK_OK;
  return why_set(why, DK_INVALID, "busy_timeout is \"%.40s\"; expected a duration like 500ms or 5s",
                 setting->value.ptr);
}

static dk_status
refuse_path(const char *path, int error, const char *what, struct why *why)
{
  return error == ENOMEM ? why_set(why, DK_NO_MEMORY, "store: out of memory")
                         : why_errno(why, error, what, path);
}

/* A file that is not there yet: its folder's name without links, and its own. */
static dk_status
resolve_new(const char *path, char **ret_path, struct why *why)
{
  const char *slash = strrchr(path, '/');
  const char *name = slash ? slash + 1 : path;
  struct stat link;

  if (lstat(path, &link) == 0)
    return why_set(why, DK_REFUSED,
                   "%s: a symbolic link to a file that does not exist; name the file itself", path);
  if (!*name || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
    return why_set(why, DK_INVALID, "%s: a folder; expected the name of a file", path);
  char *before = slash ? strndup(path, (size_t)(name - path)) : strdup(".");
  char *folder = before ? realpath(before, NULL) : NULL;
  int error = errno;
  free(before);
  if (!folder)
    return refuse_path(path, error, "the folder of the store", why);
  size_t size = strlen(folder) + strlen(name) + 2;
  char *joined = malloc(size);
  if (joined) {
    size_t length = strlen(folder);
    memcpy(joined, folder, length);
    /* The root is the one folder that ends in a slash. */
    if (length == 0 || folder[length - 1] != '/')
      joined[length++] = '/';
    memcpy(joined + length, name, strlen(name) + 1);
  }
  free(folder);
  *ret_path = joined;
  return joined ? DK_OK : why_set(why, DK_NO_MEMORY, "store: out of memory");
}

static dk_status
resolve(const char *path, char **ret_path, struct why *why)
{
  dk_status status = DK_OK;

  if (strcmp(path, ":memory:") == 0)
    return why_set(why, DK_INVALID, "store is \":memory:\"; this plugin keeps a store in a file");
  *ret_path = realpath(path, NULL);
  if (!*ret_path && errno == ENOENT)
    status = resolve_new(path, ret_path, why);
  else if (!*ret_path)
    status = refuse_path(path, errno, "the path of the store", why);
  if (status == DK_OK && strlen(*ret_path) > MAX_PATH_BYTES) {
    status = why_set(why, DK_INVALID, "%.100s...: the path is %zu bytes long; expected at most %d",
                     *ret_path, strlen(*ret_path), MAX_PATH_BYTES);
    free(*ret_path);
    *ret_path = NULL;
  }
  return status;
}

dk_status
settings_read(const struct dk_open *open, struct settings *ret_settings, struct why *why)
{
  const struct dk_setting *store = setting_of(open, "store");
  struct settings settings;

  if (!store || store->value.len == 0)
    return why_set(why, DK_INVALID, "the setting store is missing; expected the path of a file");
  TRY(read_synchronous(setting_of(open, "synchronous"), &settings.synchronous, why));
  TRY(read_busy_timeout(setting_of(open, "busy_timeout"), &settings.busy_ms, why));
  TRY(resolve(store->value.ptr, &settings.path, why));
  *ret_settings = settings;
  return DK_OK;
}

void
settings_done(struct settings *settings)
{
  free(settings->path);
  settings->path = NULL;
}
