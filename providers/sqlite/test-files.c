/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of the store's files share: see test-files.h.  Owns the folder. */
#include "providers/sqlite/test-files.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

struct why why;

static char folder[] = "/tmp/test-sqlite-XXXXXX";

void
begin(void)
{
  if (!mkdtemp(folder))
    BAIL_OUT("no folder for the stores");
}

int
end(void)
{
  char command[sizeof folder + 16];

  snprintf(command, sizeof command, "rm -rf '%s'", folder);
  if (system(command) != 0)
    diag("cannot remove %s", folder);
  return done_testing();
}

const char *
place(const char *name)
{
  static char paths[256][sizeof folder + 600];
  static size_t next;
  char *path = paths[next++ % 256];

  snprintf(path, sizeof paths[0], "%s/%s", folder, name);
  return path;
}

bool
is_there(const char *path)
{
  struct stat file;

  return lstat(path, &file) == 0;
}

mode_t
mode_of(const char *path)
{
  struct stat file;

  return stat(path, &file) == 0 ? file.st_mode & 07777 : 07777777;
}

void
make_file(const char *path, const void *bytes, size_t size)
{
  int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

  if (fd < 0 || write(fd, bytes, size) != (ssize_t)size || close(fd) < 0)
    BAIL_OUT("%s cannot be written", path);
}

char *
bytes_of(const char *path, size_t *ret_size)
{
  FILE *file = fopen(path, "rb");
  char *bytes = NULL;
  size_t size = 0;

  *ret_size = 0;
  if (!file)
    return NULL;
  do {
    bytes = realloc(bytes, size + 65536);
    if (!bytes)
      BAIL_OUT("no memory");
    *ret_size = size;
    size += fread(bytes + size, 1, 65535, file);
  } while (size > *ret_size);
  bytes[size] = '\0';
  fclose(file);
  return bytes;
}

void
copy_file(const char *from, const char *to)
{
  size_t size;
  char *bytes = bytes_of(from, &size);

  if (!bytes)
    BAIL_OUT("%s does not exist", from);
  make_file(to, bytes, size);
  free(bytes);
}

/* ---- the plugin's side ----------------------------------------------------------------------- */

dk_status
open_files(const char *path, uint32_t flags, struct store_files *files, struct connection *c)
{
  return open_files_within(path, flags, "300ms", files, c);
}

dk_status
open_files_within(const char *path, uint32_t flags, const char *busy_timeout,
                  struct store_files *files, struct connection *c)
{
  const struct dk_setting settings[] = {{"store", {path, strlen(path)}},
                                        {"busy_timeout", {busy_timeout, strlen(busy_timeout)}}};
  const struct dk_open open = {sizeof open, flags, settings, 2};

  why = (struct why){.status = DK_OK};
  return store_files_open(files, &open, -1, c, &why);
}

void
close_files(struct store_files *files, struct connection *c)
{
  connection_close(c);
  store_files_close(files);
}

dk_status
try_open(const char *path, uint32_t flags)
{
  struct store_files files;
  struct connection c;
  dk_status status = open_files(path, flags, &files, &c);

  if (status == DK_OK)
    close_files(&files, &c);
  return status;
}

dk_status
destroy(const char *path)
{
  const struct dk_setting settings[] = {{"store", {path, strlen(path)}},
                                        {"busy_timeout", {"300ms", 5}}};
  const struct dk_open open = {sizeof open, 0, settings, 2};

  why = (struct why){.status = DK_OK};
  return store_files_destroy(&open, -1, &why);
}

void
expect_refused(dk_status got, dk_status expected, const char *part, const char *other_part,
               const char *name)
{
  bool holds = got == expected && why.status == got && strstr(why.text, part) &&
               strstr(why.text, other_part);

  if (!ok(holds, "%s", name))
    diag("got %d: %s\nexpected %d, with \"%s\" and \"%s\"", got, why.text, expected, part,
         other_part);
}

/* ---- a connection of another program --------------------------------------------------------- */

sqlite3 *
somebody(const char *path)
{
  sqlite3 *db;

  if (sqlite3_open(path, &db) != SQLITE_OK)
    BAIL_OUT("%s: %s", path, sqlite3_errmsg(db));
  return db;
}

void
run_sql(sqlite3 *db, const char *sql)
{
  char *error = NULL;

  if (sqlite3_exec(db, sql, NULL, NULL, &error) != SQLITE_OK)
    BAIL_OUT("%.200s: %s", sql, error);
}

void
sql_at(const char *path, const char *sql)
{
  sqlite3 *db = somebody(path);

  run_sql(db, sql);
  sqlite3_close(db);
}

int64_t
number_at(const char *path, const char *sql)
{
  sqlite3 *db = somebody(path);
  sqlite3_stmt *statement;

  if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) != SQLITE_OK ||
      sqlite3_step(statement) != SQLITE_ROW)
    BAIL_OUT("%.300s: %s", sql, sqlite3_errmsg(db));
  int64_t number = sqlite3_column_int64(statement, 0);
  sqlite3_finalize(statement);
  sqlite3_close(db);
  return number;
}

static int
add_row(void *context, int n, char **values, char **names)
{
  (void)names;
  for (int i = 0; i < n; i++)
    fprintf(context, "%s|", values[i] ? values[i] : "NULL");
  fputc('\n', context);
  return 0;
}

char *
dump_of(const char *path)
{
  sqlite3 *db = somebody(path);
  sqlite3_stmt *tables;
  char *text = NULL, *sql;
  size_t size;
  FILE *file = open_memstream(&text, &size);

  if (!file || sqlite3_prepare_v2(db,
                                  "SELECT name, sql FROM sqlite_schema WHERE type = 'table'"
                                  " ORDER BY name",
                                  -1, &tables, NULL) != SQLITE_OK)
    BAIL_OUT("%s: %s", path, sqlite3_errmsg(db));
  while (sqlite3_step(tables) == SQLITE_ROW) {
    const char *name = (const char *)sqlite3_column_text(tables, 0);
    fprintf(file, "%s: %s\n", name, (const char *)sqlite3_column_text(tables, 1));
    if (asprintf(&sql, "SELECT * FROM \"%s\"", name) < 0 ||
        sqlite3_exec(db, sql, add_row, file, NULL) != SQLITE_OK)
      BAIL_OUT("%s: %s", name, sqlite3_errmsg(db));
    free(sql);
  }
  sqlite3_finalize(tables);
  sqlite3_close(db);
  fclose(file);
  return text;
}

void
make_version_1(const char *path)
{
  char *name, *sql;
  size_t size;
  const char *top = getenv("top_srcdir");

  if (asprintf(&name, "%s/providers/sqlite/fixtures/version-1.sql", top ? top : ".") < 0)
    BAIL_OUT("no memory");
  sql = bytes_of(name, &size);
  if (!sql)
    BAIL_OUT("%s does not exist (top_srcdir)", name);
  sql_at(path, sql);
  free(sql);
  free(name);
}

int
in_child(void (*act)(void *context), void *context)
{
  int status;
  pid_t child = fork();

  if (child == 0) {
    act(context);
    _exit(0);
  }
  if (child < 0 || waitpid(child, &status, 0) != child)
    BAIL_OUT("no child");
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}
