/* SPDX-License-Identifier: Apache-2.0 */
/* The settings that open was given: see settings.h. */
#include "providers/sqlite/settings.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "providers/shared/text.h"

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

static dk_status
read_synchronous(const char *text, enum synchronous *ret, struct why *why)
{
  *ret = SYNCHRONOUS_FULL;
  if (!text || strcmp(text, "full") == 0)
    return DK_OK;
  if (strcmp(text, "normal") != 0)
    return why_set(why, DK_INVALID, "synchronous is \"%.40s\"; expected full or normal", text);
  *ret = SYNCHRONOUS_NORMAL;
  return DK_OK;
}

static dk_status
read_busy_timeout(const char *text, int64_t *ret_ms, struct why *why)
{
  *ret_ms = DEFAULT_BUSY_MS;
  if (!text || text_is_duration(text, ret_ms))
    return DK_OK;
  return why_set(why, DK_INVALID, "busy_timeout is \"%.40s\"; expected a duration like 500ms or 5s",
                 text);
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
  }
  return status;
}

dk_status
settings_read(const struct dk_open *open, struct settings *ret_settings, struct why *why)
{
  const char *store = setting_value(open, "store");
  struct settings settings;

  if (!store || !*store)
    return why_set(why, DK_INVALID, "the setting store is missing; expected the path of a file");
  TRY(read_synchronous(setting_value(open, "synchronous"), &settings.synchronous, why));
  TRY(read_busy_timeout(setting_value(open, "busy_timeout"), &settings.busy_ms, why));
  TRY(resolve(store, &settings.path, why));
  *ret_settings = settings;
  return DK_OK;
}

void
settings_done(struct settings *settings)
{
  free(settings->path);
  settings->path = NULL;
}
