/* SPDX-License-Identifier: Apache-2.0 */
/* The files of one store: see store.h.
 *
 * The database's file is never opened by a descriptor of ours: closing one would drop all locks
 * that SQLite holds on it in this process (POSIX locks belong to the process). */
#include "providers/sqlite/store.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "providers/sqlite/schema.h"

/* Another value after each change of a table or index, by any program. */
#define TABLES_VERSION "PRAGMA schema_version"

/* ---- the database's file --------------------------------------------------------------------- */

static dk_status
look_at_file(const char *path, bool *ret_is_there, struct why *why)
{
  struct stat file;

  *ret_is_there = stat(path, &file) == 0;
  if (!*ret_is_there)
    return errno == ENOENT ? DK_OK : why_errno(why, errno, "the store cannot be examined", path);
  if (!S_ISREG(file.st_mode))
    return why_set(why, DK_REFUSED, "%s: expected a file, found a %s; name a file", path,
                   S_ISDIR(file.st_mode) ? "folder" : "device, pipe or socket");
  if (file.st_nlink > 1)
    return why_set(why, DK_REFUSED,
                   "%s: the file has %lu names (hard links); expected one, because each name has "
                   "its own lock file and log, and their users would damage the store; remove the "
                   "other names",
                   path, (unsigned long)file.st_nlink);
  return DK_OK;
}

static dk_status
not_there(const char *path, struct why *why)
{
  return why_set(why, DK_NOT_FOUND, "%s: there is no store, and the host did not ask to make one",
                 path);
}

/* An empty file is an empty database.  Its mode must not depend on the umask. */
static dk_status
make_file(const char *path, struct why *why)
{
  if (mknod(path, S_IFREG | 0600, 0) == 0 && chmod(path, 0600) == 0)
    return DK_OK;
  return why_errno(why, errno, "the store cannot be made", path);
}

/* The log first: left without its database it would be taken for that of the next. */
static dk_status
remove_database(const char *path, struct why *why)
{
  static const char *const in_turn[] = {"-wal", "-shm", "-journal", ""};
  size_t size = strlen(path) + sizeof "-journal";
  char *name = malloc(size);
  dk_status status = DK_OK;

  if (!name)
    return why_set(why, DK_NO_MEMORY, "%s: out of memory", path);
  for (size_t i = 0; status == DK_OK && i < sizeof in_turn / sizeof in_turn[0]; i++) {
    snprintf(name, size, "%s%s", path, in_turn[i]);
    if (unlink(name) < 0 && errno != ENOENT)
      status = why_errno(why, errno, "the file cannot be removed", name);
  }
  free(name);
  return status;
}

/* ---- whether they are still there ------------------------------------------------------------ */

static const char *const endings[] = {"", "-wal", "-shm"};

static dk_status
look_at_ids(const char *path, struct store_ids *ret_ids, struct why *why)
{
  char name[4096 + 8];
  struct stat file;

  *ret_ids = (struct store_ids){0};
  for (int i = 0; i < 3; i++) {
    snprintf(name, sizeof name, "%s%s", path, endings[i]);
    if (stat(name, &file) == 0) {
      ret_ids->of[i].dev = file.st_dev;
      ret_ids->of[i].ino = file.st_ino;
    } else if (errno != ENOENT) {
      return why_errno(why, errno, "the file cannot be examined", name);
    }
  }
  return DK_OK;
}

static dk_status
not_the_same(const char *path, const char *ending, struct why *why)
{
  return why_set(why, DK_REFUSED,
                 "%s%s: expected the file that was there when the store was opened, found another "
                 "or none: it was removed, moved or replaced; close the store, put its own files "
                 "back, and open it again",
                 path, ending);
}

dk_status
store_files_check(const struct store_files *files, const struct store_ids *ids, struct why *why)
{
  const char *path = files->settings.path;
  struct store_ids now;
  bool is_current = true;

  TRY(look_at_ids(path, &now, why));
  for (int i = 0; i < 3; i++)
    if (ids->of[i].ino && (now.of[i].ino != ids->of[i].ino || now.of[i].dev != ids->of[i].dev))
      return not_the_same(path, endings[i], why);
  if (files->lock.fd >= 0)
    TRY(lockfile_look(&files->lock, &is_current, why));
  return is_current ? DK_OK : not_the_same(path, "-lock", why);
}

/* ---- the lock -------------------------------------------------------------------------------- */

/* Takes the lock file that the name leads to.  If the store was removed during the wait, the wait
 * was for a deleted file, and begins again. */
static dk_status
lock_store(struct lockfile *l, struct bell *bell, const struct settings *settings, int wake_fd,
           struct why *why)
{
  for (;;) {
    bool is_current = true;
    TRY(lockfile_open(l, bell, settings->path, true, why));
    dk_status status = lockfile_take(l, settings->busy_ms, wake_fd, why);
    if (status == DK_OK)
      status = lockfile_look(l, &is_current, why);
    if (status == DK_OK && is_current)
      status = lockfile_use(l, why);
    if (status == DK_OK && is_current)
      return DK_OK;
    lockfile_close(l);
    if (is_current)
      return status;
    /* The bell of the deleted file would never ring. */
    bell_done(bell);
    TRY(bell_init(bell, settings->path, why));
  }
}

/* ---- making it fit, under the lock ----------------------------------------------------------- */

/* The page size must be set before the file has pages, the log before there are tables. */
static dk_status
make_store(struct connection *c, struct why *why)
{
  TRY(connection_exec(c, "PRAGMA page_size = 4096", "setting the page size", why));
  TRY(connection_exec(c, "PRAGMA journal_mode = WAL", "choosing the write-ahead log", why));
  return schema_create(c, why);
}

/* What cannot be made to fit is refused before anything is changed.  A file without pages has no
 * form yet. */
static dk_status
check_fitness(struct connection *c, const struct settings *settings, enum schema_found found,
              struct why *why)
{
  int64_t pages;

  TRY(connection_integer(c, "PRAGMA page_count", &pages, why));
  if (pages > 0)
    TRY(connection_verify_form(c, settings, why));
  if (found != SCHEMA_OURS)
    return DK_OK;
  TRY(schema_find_missing(c, why));
  return schema_check_clock(c, why);
}

static dk_status
make_fit(struct connection *c, const struct settings *settings, bool create, struct why *why)
{
  enum schema_found found;

  TRY(schema_look(c, settings->path, &found, why));
  if (found == SCHEMA_EMPTY && !create)
    return not_there(settings->path, why);
  TRY(connection_settle(c, settings, why));
  TRY(check_fitness(c, settings, found, why));
  if (found == SCHEMA_EMPTY)
    TRY(make_store(c, why));
  if (found == SCHEMA_OLD)
    TRY(schema_migrate(c, settings->path, why));
  TRY(connection_exec(c, "PRAGMA journal_mode = WAL", "choosing the write-ahead log", why));
  return connection_verify(c, settings, why);
}

static dk_status
attach_and_make_fit(const struct settings *settings, bool create, int wake_fd,
                    struct connection *ret_writer, struct why *why)
{
  TRY(connection_attach(ret_writer, settings, CONNECTION_WRITER, false, why));
  ret_writer->wake_fd = wake_fd;
  dk_status status = make_fit(ret_writer, settings, create, why);
  if (status == DK_BUSY && connection_was_woken(ret_writer))
    status = why_set(why, DK_CALL_CANCELLED, "%s: cancelled while another process held it",
                     settings->path);
  ret_writer->wake_fd = -1; /* it dies with the call */
  if (status != DK_OK)
    connection_close(ret_writer);
  return status;
}

/* A failed read looks like damage to SQLite: real damage is there on a second look as well. */
static dk_status
attach_twice(const struct settings *settings, bool create, int wake_fd,
             struct connection *ret_writer, struct why *why)
{
  dk_status status = attach_and_make_fit(settings, create, wake_fd, ret_writer, why);

  return status != DK_OK && why_may_be_the_disk(why)
           ? attach_and_make_fit(settings, create, wake_fd, ret_writer, why)
           : status;
}

/* Removes what this open has made, if it fails. */
static dk_status
open_locked(struct store_files *files, uint32_t flags, int wake_fd,
            struct connection *ret_writer, struct why *why)
{
  const bool create = (flags & DK_OPEN_CREATE) != 0;
  const char *path = files->settings.path;
  bool is_there;
  struct why unused;

  TRY(look_at_file(path, &is_there, why));
  if (!is_there && !create)
    return not_there(path, why);
  dk_status status =
    is_there ? schema_glance(&files->settings, why) : make_file(path, why);
  if (status == DK_OK)
    status = attach_twice(&files->settings, create, wake_fd, ret_writer, why);
  if (status != DK_OK && !is_there)
    remove_database(path, &unused);
  return status;
}

static dk_status
open_for_writing(struct store_files *files, uint32_t flags, int wake_fd,
                 struct connection *ret_writer, struct why *why)
{
  TRY(bell_init(&files->bell, files->settings.path, why));
  files->has_bell = true;
  TRY(lock_store(&files->lock, &files->bell, &files->settings, wake_fd, why));
  dk_status status = open_locked(files, flags, wake_fd, ret_writer, why);
  if (status != DK_OK && files->lock.is_new)
    lockfile_unlink_if_unused(&files->lock);
  lockfile_release(&files->lock);
  return status;
}

static dk_status
check_read_only(struct connection *c, const struct settings *settings, struct why *why)
{
  enum schema_found found;

  TRY(schema_look(c, settings->path, &found, why));
  if (found == SCHEMA_EMPTY)
    return not_there(settings->path, why);
  if (found == SCHEMA_OLD)
    return why_set(why, DK_REFUSED,
                   "%s: its tables have version 1, expected %d; a read-only handle cannot migrate "
                   "them; open it once for writing",
                   settings->path, SCHEMA_VERSION);
  TRY(connection_settle(c, settings, why));
  TRY(connection_verify(c, settings, why));
  TRY(schema_find_missing(c, why));
  return schema_check_clock(c, why);
}

static dk_status
attach_for_reading(struct store_files *files, struct connection *ret_connection, struct why *why)
{
  const struct settings *settings = &files->settings;

  TRY(connection_attach(ret_connection, settings, CONNECTION_READER, true, why));
  dk_status status = check_read_only(ret_connection, settings, why);
  if (status != DK_OK)
    connection_close(ret_connection);
  return status;
}

static dk_status
open_for_reading(struct store_files *files, struct connection *ret_connection, struct why *why)
{
  dk_status status = attach_for_reading(files, ret_connection, why);

  return status != DK_OK && why_may_be_the_disk(why)
           ? attach_for_reading(files, ret_connection, why)
           : status;
}

/* ---- open, connect, close, destroy ----------------------------------------------------------- */

static dk_status
open_with_settings(struct store_files *files, uint32_t flags, int wake_fd,
                   struct connection *ret_writer, struct why *why)
{
  bool is_there;

  files->is_read_only = (flags & DK_OPEN_READ_ONLY) != 0;
  TRY(look_at_file(files->settings.path, &is_there, why));
  if (!is_there && (files->is_read_only || !(flags & DK_OPEN_CREATE)))
    return not_there(files->settings.path, why);
  return files->is_read_only
           ? open_for_reading(files, ret_writer, why)
           : open_for_writing(files, flags, wake_fd, ret_writer, why);
}

dk_status
store_files_open(struct store_files *files, const struct dk_open *open, int wake_fd,
                 struct connection *ret_writer, struct why *why)
{
  *files = (struct store_files){.lock = {.fd = -1}};
  TRY(settings_read(open, &files->settings, why));
  dk_status status = open_with_settings(files, open->flags, wake_fd, ret_writer, why);
  if (status == DK_OK) {
    status = look_at_ids(files->settings.path, &files->ids, why);
    if (status == DK_OK)
      status = connection_integer(ret_writer, TABLES_VERSION, &files->tables_version, why);
    if (status != DK_OK)
      connection_close(ret_writer);
  }
  if (status != DK_OK)
    store_files_close(files);
  return status;
}

/* They were whole when they had that version. */
static dk_status
check_tables(const struct store_files *files, struct connection *c, struct why *why)
{
  int64_t version;

  TRY(connection_integer(c, TABLES_VERSION, &version, why));
  return version == files->tables_version
           ? DK_OK
           : schema_find_missing(c, why);
}

dk_status
store_files_connect(struct store_files *files, enum connection_kind kind,
                    struct connection *ret_connection, struct store_ids *ret_ids,
                    struct why *why)
{
  struct store_ids database = {.of = {files->ids.of[0]}};

  TRY(store_files_check(files, &database, why));
  TRY(connection_open(ret_connection, &files->settings, kind, files->is_read_only, why));
  dk_status status = look_at_ids(files->settings.path, ret_ids, why);
  if (status == DK_OK)
    status = store_files_check(files, &database, why);
  if (status == DK_OK)
    status = check_tables(files, ret_connection, why);
  if (status != DK_OK)
    connection_close(ret_connection);
  return status;
}

void
store_files_close(struct store_files *files)
{
  lockfile_close(&files->lock);
  if (files->has_bell)
    bell_done(&files->bell);
  settings_done(&files->settings);
  *files = (struct store_files){.lock = {.fd = -1}};
}

/* An empty file is one of ours only if our lock file lay beside it: of an open that was killed. */
static dk_status
refuse_what_is_not_ours(const struct settings *settings, bool had_lock, int wake_fd,
                        struct why *why)
{
  struct connection c;
  enum schema_found found;

  TRY(schema_glance(settings, why));
  TRY(connection_attach(&c, settings, CONNECTION_READER, false, why));
  c.wake_fd = wake_fd;
  dk_status status = schema_look(&c, settings->path, &found, why);
  if (status == DK_BUSY && connection_was_woken(&c))
    status = why_set(why, DK_CALL_CANCELLED, "%s: cancelled while another process held it",
                     settings->path);
  if (status == DK_OK && found == SCHEMA_EMPTY && !had_lock)
    status = why_set(why, DK_REFUSED,
                     "%s: an empty file with no lock file beside it, so Durakit did not make it; "
                     "remove it yourself if you do not need it",
                     settings->path);
  connection_close(&c);
  return status;
}

static dk_status
destroy_locked(const struct settings *settings, bool had_lock, int wake_fd, struct why *why)
{
  bool is_there;

  TRY(look_at_file(settings->path, &is_there, why));
  if (is_there)
    TRY(refuse_what_is_not_ours(settings, had_lock, wake_fd, why));
  return is_there || had_lock ? remove_database(settings->path, why) : DK_OK;
}

static dk_status
destroy(const struct settings *settings, struct bell *bell, int wake_fd, struct why *why)
{
  struct lockfile lock;

  TRY(lock_store(&lock, bell, settings, wake_fd, why));
  const bool had_lock = !lock.is_new;
  dk_status status = destroy_locked(settings, had_lock, wake_fd, why);
  if (status == DK_OK)
    status = lockfile_unlink(&lock, why);
  else if (!had_lock)
    lockfile_unlink_if_unused(&lock);
  lockfile_close(&lock);
  return status;
}

dk_status
store_files_destroy(const struct dk_open *open, int wake_fd, struct why *why)
{
  struct settings settings;
  struct bell bell;
  dk_status status = settings_read(open, &settings, why);

  if (status == DK_NOT_FOUND)
    return DK_OK; /* its folder is not there */
  TRY(status);
  status = bell_init(&bell, settings.path, why);
  if (status == DK_OK) {
    status = destroy(&settings, &bell, wake_fd, why);
    bell_done(&bell);
  }
  settings_done(&settings);
  return status;
}
