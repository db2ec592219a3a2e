/* SPDX-License-Identifier: Apache-2.0 */
/* Whose fault it is that a store is unavailable: the environment's, if the kit itself cannot write
 * there either, or cannot look (a server); else the provider's. */
#include "conformance/kit/kit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The space that a store needs at least for one operation. */
enum { ROOM = 64 * 1024 };

/* Makes, writes and syncs a file without a name where the store lies. */
static int
write_beside(const char *folder)
{
  static const char zeros[ROOM];
  int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  int reason = fd < 0 ? errno : 0;

  if (fd >= 0 && write(fd, zeros, sizeof(zeros)) != (ssize_t)sizeof(zeros))
    reason = errno != 0 ? errno : ENOSPC;
  else if (fd >= 0 && fsync(fd) != 0)
    reason = errno;
  if (fd >= 0)
    close(fd);
  /* A file system without such files does not show whether it has room. */
  return reason == EOPNOTSUPP || reason == EISDIR || reason == EINVAL ? 0 : reason;
}

/* The folder of a store that is a path; else the check's own. */
static void
folder_of_store(const struct kit_job *job, const char *store, char *folder, size_t size)
{
  const char *slash = store[0] == '/' ? strrchr(store, '/') : NULL;

  if (slash != NULL && slash != store)
    snprintf(folder, size, "%.*s", (int)(slash - store), store);
  else
    snprintf(folder, size, "%s", job->folder != NULL ? job->folder : ".");
}

/* The errno if the system cannot even look at a file with this name, because it is too long,
 * say. */
static int
look_at_name(const char *store)
{
  struct stat there;

  return store[0] != '/' || lstat(store, &there) == 0 || errno == ENOENT ? 0 : errno;
}

static bool
is_address(const struct dk_provider *provider, const char *key, const char *value)
{
  const struct dk_param *p = provider->params;

  while (p != NULL && p->key != NULL && strcmp(p->key, key) != 0)
    p++;
  return strstr(value, "://") != NULL ||
         (p != NULL && p->key != NULL && p->type != NULL && strcmp(p->type, "address") == 0);
}

/* True: the store is behind a server, which the kit cannot examine. */
static bool
lies_elsewhere(const struct dk_provider *provider, const struct kit_job *job, const char *store)
{
  bool elsewhere = provider->shared >= 3 ||
                   (job->store_key != NULL && is_address(provider, job->store_key, store));

  for (size_t i = 0; i < job->n_settings && !elsewhere; i++)
    elsewhere = is_address(provider, job->settings[i].key, job->settings[i].value.ptr);
  return elsewhere;
}

bool
kit_place_is_well(const struct dk_provider *provider, const struct kit_job *job, const char *store,
                  char *ret_why, size_t size)
{
  char folder[KIT_MAX_VALUE];

  ret_why[0] = '\0';
  if (provider == NULL || lies_elsewhere(provider, job, store))
    return false;
  errno = 0;
  folder_of_store(job, store, folder, sizeof(folder));
  int reason = write_beside(folder);
  if (reason == 0)
    reason = look_at_name(store);
  if (reason != 0)
    snprintf(ret_why, size, " (the kit cannot write in %.200s either: %s)", folder,
             strerror(reason));
  else
    snprintf(ret_why, size, " (the kit itself can write there)");
  return reason == 0;
}

enum verdict
kit_judge_unavailable(struct dk_check *t, char *ret_why, size_t size)
{
  if (!kit_place_is_well(t->provider, t->job, t->shared->store_value, ret_why, size))
    return VERDICT_ERROR;
  snprintf(t->report->clause, sizeof(t->report->clause), "ERR-1");
  return VERDICT_FAIL;
}
