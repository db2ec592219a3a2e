/* SPDX-License-Identifier: Apache-2.0 */
/* Every refusal of the loader, by its number and its text; sharing and unloading of files.  The
 * files are made in a folder of this test's own, most of them by changing a few bytes of a good
 * one. */
#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "conformance/tap/tap.h"
#include "core/plugin/library.h"
#include "core/plugin/testing/puppet.h"

/* ---- files ----------------------------------------------------------------------------------- */

struct folder {
  char path[256];
  char good[PATH_MAX - 64]; /* the module that was built for this test */
  char *bytes;         /* its contents */
  size_t size;
  int n_files;
};

static void
read_good(struct folder *folder)
{
  char here[PATH_MAX - 128];
  ssize_t length = readlink("/proc/self/exe", here, sizeof(here) - 1);
  struct stat info;

  here[length > 0 ? length : 0] = '\0';
  *strrchr(here, '/') = '\0';
  snprintf(folder->good, sizeof(folder->good), "%s/.libs/loadable.so", here);
  int fd = open(folder->good, O_RDONLY | O_CLOEXEC);
  if (fd < 0 || fstat(fd, &info) != 0)
    BAIL_OUT("there is no %s", folder->good);
  folder->size = (size_t)info.st_size;
  folder->bytes = malloc(folder->size);
  if (read(fd, folder->bytes, folder->size) != (ssize_t)folder->size)
    BAIL_OUT("cannot read %s", folder->good);
  close(fd);
}

static void
make_folder(struct folder *folder)
{
  const char *parent = getenv("TMPDIR");

  snprintf(folder->path, sizeof(folder->path), "%s/durakit-loader-XXXXXX",
           parent ? parent : "/tmp");
  if (!mkdtemp(folder->path) || chmod(folder->path, 0755) != 0)
    BAIL_OUT("cannot make %s", folder->path);
  read_good(folder);
}

/* The path of the n-th file. */
static const char *
name_file(struct folder *folder, char path[PATH_MAX])
{
  snprintf(path, PATH_MAX, "%s/%d.so", folder->path, ++folder->n_files);
  return path;
}

static const char *
write_file(struct folder *folder, char path[PATH_MAX], const void *bytes, size_t size)
{
  int fd = open(name_file(folder, path), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

  if (fd < 0 || write(fd, bytes, size) != (ssize_t)size)
    BAIL_OUT("cannot write %s", path);
  close(fd);
  return path;
}

static void
remove_folder(struct folder *folder)
{
  char path[PATH_MAX];

  for (int i = 1; i <= folder->n_files; i++) {
    snprintf(path, sizeof(path), "%s/%d.so", folder->path, i);
    unlink(path);
  }
  rmdir(folder->path);
  free(folder->bytes);
}

/* A copy of the good file. */
static char *
copy_good(const struct folder *folder)
{
  char *copy = malloc(folder->size);

  return memcpy(copy, folder->bytes, folder->size);
}

/* Writes the copy with one name changed everywhere, so that it is not found. */
static void
hide_name(char *bytes, size_t size, const char *name)
{
  size_t length = strlen(name) + 1;

  for (char *at = memmem(bytes, size, name, length); at;
       at = memmem(at, size - (size_t)(at - bytes), name, length))
    at[length - 2] = 'x';
}

/* ---- expectations ---------------------------------------------------------------------------- */

/* What a child process finds out.  It ends by a signal, for under Valgrind an exit would be judged
 * by what the child has inherited. */
static int
ask_child(int (*question)(const char *path), const char *path)
{
  int *answer = mmap(NULL, sizeof(*answer), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
                     0);
  pid_t process = fork();

  if (process == 0) {
    *answer = question(path);
    raise(SIGKILL);
  }
  waitpid(process, NULL, 0);
  int given = *answer;
  munmap(answer, sizeof(*answer));
  return given;
}

static void
expect_refused(const char *path, int32_t number, const char *what, const char *expected,
               const char *found)
{
  struct dk_library *library = NULL;
  struct dk_refusal refusal;
  int32_t result = dk_library_open(path, DK_LIBRARY_UNLOAD, &library, &refusal);

  ok(result == -1 && !library, "refused: %s", what);
  if (result == 0) {
    dk_library_close(library);
    return;
  }
  cmp_ok(refusal.number, "==", number, "by its number");
  ok(strstr(refusal.what, what), "what: %s", refusal.what);
  ok(strstr(refusal.expected, expected), "expected: %s", refusal.expected);
  ok(strstr(refusal.found, found), "found: %s", refusal.found);
  is(refusal.where, path ? path : "", "where");
  ok(refusal.next[0], "next: %s", refusal.next);
}

/* ---- the file itself ------------------------------------------------------------------------- */

static void
test_paths(struct folder *folder)
{
  char path[PATH_MAX];

  expect_refused("", DK_LOAD_NO_PATH, "no file is named", "absolute path", "an empty path");
  expect_refused(NULL, DK_LOAD_NO_PATH, "no file is named", "absolute path", "an empty path");
  expect_refused("./a.so", DK_LOAD_RELATIVE, "not absolute", "absolute path", "./a.so");
  snprintf(path, sizeof(path), "%s/none.so", folder->path);
  expect_refused(path, DK_LOAD_NOT_THERE, "no such file", "shared object", "No such file");
  snprintf(path, sizeof(path), "%s/below", folder->good);
  expect_refused(path, DK_LOAD_NOT_THERE, "no such file", "shared object", "Not a directory");
  expect_refused(folder->path, DK_LOAD_NOT_A_FILE, "a folder", "regular file", "a folder");
  expect_refused("/dev/null", DK_LOAD_NOT_A_FILE, "a character device", "regular file", "device");
}

/* A user who may read everything drops that right first. */
static int
number_of_denial(const char *path)
{
  struct dk_library *library;
  struct dk_refusal refusal;

  if (geteuid() == 0 && setuid(65534) != 0)
    return 0;
  int32_t result = dk_library_open(path, 0, &library, &refusal);
  return result == -1 && strstr(refusal.found, "Permission denied") ? refusal.number : 0;
}

static void
test_unreadable(struct folder *folder)
{
  char path[PATH_MAX];

  write_file(folder, path, folder->bytes, folder->size);
  chmod(path, 0);
  cmp_ok(ask_child(number_of_denial, path), "==", DK_LOAD_NOT_READABLE,
         "a file that must not be read");
}

static void
test_not_elf(struct folder *folder)
{
  static const struct {
    const char *bytes;
    size_t size;
    const char *found;
  } rows[] = {
    {"", 0, "an empty file"},
    {"#!/bin/sh\n", 10, "a script"},
    {"int main(void);\n", 16, "a text file"},
    {"!<arch>\nfoo.o/", 14, "an archive"},
    {"\x89PNG\r\n\x1a\n", 8, "begins with the bytes 89 50 4e 47"},
    {"\177ELF\2", 5, "ends in its header"},
  };
  char path[PATH_MAX];

  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
    expect_refused(write_file(folder, path, rows[i].bytes, rows[i].size), DK_LOAD_NOT_ELF,
                   "not a shared object", "an ELF file", rows[i].found);
}

static void
test_other_machine(struct folder *folder)
{
  const size_t machine = offsetof(Elf64_Ehdr, e_machine), type = offsetof(Elf64_Ehdr, e_type);
  char *bytes = copy_good(folder);
  char path[PATH_MAX];
  uint16_t number;

  memcpy(&number, bytes + machine, sizeof(number));
  number = number == EM_S390 ? EM_PPC64 : EM_S390;
  memcpy(bytes + machine, &number, sizeof(number));
  expect_refused(write_file(folder, path, bytes, folder->size), DK_LOAD_OTHER_MACHINE,
                 "built for another machine", "shared object for",
                 number == EM_S390 ? "for s390" : "for ppc64");

  memcpy(bytes, folder->bytes, 64);
  bytes[EI_CLASS] = bytes[EI_CLASS] == ELFCLASS64 ? ELFCLASS32 : ELFCLASS64;
  expect_refused(write_file(folder, path, bytes, folder->size), DK_LOAD_OTHER_MACHINE,
                 "built for another machine", "bits", "bits");

  memcpy(bytes, folder->bytes, 64);
  bytes[EI_DATA] = bytes[EI_DATA] == ELFDATA2LSB ? ELFDATA2MSB : ELFDATA2LSB;
  expect_refused(write_file(folder, path, bytes, folder->size), DK_LOAD_OTHER_MACHINE,
                 "built for another machine", "endian", "endian");

  memcpy(bytes, folder->bytes, 64);
  number = ET_REL;
  memcpy(bytes + type, &number, sizeof(number));
  expect_refused(write_file(folder, path, bytes, folder->size), DK_LOAD_OTHER_MACHINE,
                 "not a shared object", "a shared object", "an object file");
  free(bytes);
}

static void
test_linking(struct folder *folder)
{
  char *bytes = copy_good(folder);
  char path[PATH_MAX];

  expect_refused(write_file(folder, path, bytes, 200), DK_LOAD_DLOPEN, "dynamic linker",
                 "libraries and symbols", path);
  hide_name(bytes, folder->size, "durakit_provider_2");
  expect_refused(write_file(folder, path, bytes, folder->size), DK_LOAD_ABI_1,
                 "this provider implements ABI 1, whose fetch and renew return an ExecutionState; "
                 "ABI 2 has none", "durakit_provider_2", "durakit_provider_1");
  hide_name(bytes, folder->size, "durakit_provider_1");
  expect_refused(write_file(folder, path, bytes, folder->size), DK_LOAD_NO_SYMBOL,
                 "does not export durakit_provider_2", "durakit_provider_2", "without it");
  free(bytes);
}

static void
test_entry(struct folder *folder)
{
  setenv("DK_TEST_ENTRY", "declines", 1);
  expect_refused(folder->good, DK_LOAD_DECLINED, "declines this host", "ABI 2.4", "NULL");
  setenv("DK_TEST_ENTRY", "impure", 1);
  expect_refused(folder->good, DK_LOAD_NOT_PURE, "returned something else", "same pointer",
                 "another");
  setenv("DK_TEST_ENTRY", "incomplete", 1);
  expect_refused(folder->good, DK_LOAD_MEMBERS, "1 required operation is missing: read_history",
                 "all ten required members of struct dk_ops", "NULL");
  unsetenv("DK_TEST_ENTRY");
}

/* ---- sharing and unloading ------------------------------------------------------------------- */

static bool
is_mapped(const char *path)
{
  FILE *maps = fopen("/proc/self/maps", "re");
  char line[PATH_MAX + 128];
  bool found = false;

  while (fgets(line, sizeof(line), maps))
    found = found || strstr(line, path);
  fclose(maps);
  return found;
}

static int
stays_mapped(const char *path)
{
  struct dk_library *library = NULL;

  if (dk_library_open(path, 0, &library, NULL) != 0)
    return 0;
  dk_library_close(library);
  return is_mapped(path);
}

static void
test_sharing(struct folder *folder)
{
  struct dk_library *first = NULL, *again = NULL, *copied = NULL;
  struct dk_refusal refusal;
  char copy[PATH_MAX], link_path[PATH_MAX];

  write_file(folder, copy, folder->bytes, folder->size);
  if (symlink(copy, name_file(folder, link_path)) != 0)
    BAIL_OUT("cannot link %s", link_path);
  cmp_ok(dk_library_open(folder->good, DK_LIBRARY_UNLOAD, &first, &refusal), "==", 0,
         "a provider is loaded");
  is(dk_library_provider(first)->name, "test", "with its descriptor");
  is(dk_library_missing(first)[0], NULL, "nothing is missing");
  cmp_ok(dk_library_open(copy, DK_LIBRARY_UNLOAD, &copied, NULL), "==", 0, "a copy of the file");
  ok(copied != first, "is another library");
  cmp_ok(dk_library_open(link_path, DK_LIBRARY_UNLOAD, &again, NULL), "==", 0,
         "one file by another name");
  ok(again == copied, "is the same library");
  dk_library_close(again);
  dk_library_close(copied);
  dk_library_close(first);
}

static void
test_unloading(struct folder *folder)
{
  struct dk_library *library = NULL;
  char path[PATH_MAX];

  write_file(folder, path, folder->bytes, folder->size);
  cmp_ok(dk_library_open(path, DK_LIBRARY_UNLOAD, &library, NULL), "==", 0,
         "loaded to be unloaded");
  ok(is_mapped(path), "it is mapped");
  struct dk_caller *caller = dk_caller_new(NULL, 0);
  struct dk_store *store = NULL;
  cmp_ok(dk_store_open(library, NULL, caller, 0, NULL, 0, &store), "==", DK_OK, "and opened");
  ok(dk_store_library(store) == library, "a store knows its library");
  dk_library_close(library);
  ok(is_mapped(path), "a store keeps it");
  dk_store_close(store);
  ok(!is_mapped(path), "with the last use it is unmapped");
  cmp_ok(ask_child(stays_mapped, path), "==", 1, "without the flag it stays");
  dk_caller_free(caller);
}

static void
test_incomplete(struct folder *folder)
{
  struct dk_library *library = NULL, *strict = NULL;
  struct dk_refusal refusal;
  char path[PATH_MAX];

  write_file(folder, path, folder->bytes, folder->size);
  setenv("DK_TEST_ENTRY", "incomplete", 1);
  uint32_t flags = DK_LIBRARY_INCOMPLETE | DK_LIBRARY_UNLOAD;
  cmp_ok(dk_library_open(path, flags, &library, &refusal), "==", 0,
         "an incomplete provider is accepted on demand");
  unsetenv("DK_TEST_ENTRY");
  is(dk_library_missing(library)[0], "read_history", "what is missing is named");
  is(dk_library_missing(library)[1], NULL, "and nothing else");
  cmp_ok(dk_library_open(path, 0, &strict, &refusal), "==", -1,
         "a caller that needs all of it is refused");
  cmp_ok(refusal.number, "==", DK_LOAD_MEMBERS, "by number");
  is(refusal.what, "1 required operation is missing: read_history", "with the usual text");
  ok(strstr(refusal.next, "durakit check --next"),
     "and the text says what to do: %s", refusal.next);

  struct dk_caller *caller = dk_caller_new(NULL, 0);
  struct dk_store *store = NULL;
  struct dk_history *history;
  struct dk_read_history request = {.struct_size = sizeof(request), .instance = {"i", 1}};
  dk_store_open(library, NULL, caller, 0, NULL, 0, &store);
  cmp_ok(dk_store_read_history(store, caller, &request, &history), "==", DK_UNSUPPORTED,
         "what is missing is DK_UNSUPPORTED");
  dk_store_close(store);
  dk_caller_free(caller);
  dk_library_close(library);
}

/* ---- descriptors ----------------------------------------------------------------------------- */

static void
expect_descriptor(const struct puppet_descriptor *described, int32_t number, const char *what,
                  const char *expected, const char *found)
{
  struct dk_library *library = NULL;
  struct dk_refusal refusal = {.number = 0};
  int32_t result = dk_library_from_descriptor(&described->provider, 0, &library, &refusal);

  ok(result == -1, "refused: %s", what);
  if (result == 0)
    dk_library_close(library);
  cmp_ok(refusal.number, "==", number, "by its number");
  ok(strstr(refusal.what, what), "what: %s", refusal.what);
  ok(strstr(refusal.expected, expected), "expected: %s", refusal.expected);
  ok(strstr(refusal.found, found), "found: %s", refusal.found);
}

#define WRONG_DESCRIPTOR(change, number, what, expected, found)                                    \
  do {                                                                                             \
    struct puppet_descriptor d;                                                                    \
    puppet_describe(&d);                                                                           \
    change;                                                                                        \
    expect_descriptor(&d, number, what, expected, found);                                          \
  } while (0)

static void
test_identity(void)
{
  const char *sense = "the size of the descriptor is invalid";

  WRONG_DESCRIPTOR(d.provider.magic = 7, DK_LOAD_MAGIC, "not a descriptor", "0x324b4431",
                   "0x00000007");
  WRONG_DESCRIPTOR(d.provider.struct_size = 96, DK_LOAD_SIZE, sense, "a multiple of 8", "96");
  WRONG_DESCRIPTOR(d.provider.struct_size += 4, DK_LOAD_SIZE, sense, "a multiple of 8", "");
  WRONG_DESCRIPTOR(d.provider.struct_size = 65544, DK_LOAD_SIZE, sense, "to 65536", "65544");
  WRONG_DESCRIPTOR(d.ops.struct_size = offsetof(struct dk_ops, interrupt) + 4, DK_LOAD_SIZE,
                   "the size of the operations is invalid", "a multiple of 8", "100");
  WRONG_DESCRIPTOR(d.ops.struct_size = 0, DK_LOAD_SIZE, "the size of the operations", "from 8",
                   "0");
  WRONG_DESCRIPTOR(d.ops.struct_size = 65544, DK_LOAD_SIZE, "the size of the operations",
                   "to 65536", "65544");
  WRONG_DESCRIPTOR(d.limits.struct_size += 4, DK_LOAD_SIZE, "the size of the limits",
                   "a multiple of 8", "36");
  WRONG_DESCRIPTOR(d.limits.struct_size = 65544, DK_LOAD_SIZE, "the size of the limits",
                   "to 65536", "65544");
  WRONG_DESCRIPTOR(d.provider.stamp += UINT64_C(1) << 48, DK_LOAD_STAMP, "another layout",
                   "ABI draft 1", "ABI draft 2");
  WRONG_DESCRIPTOR(d.provider.stamp -= 4, DK_LOAD_STAMP, "another layout", "size of a pointer 8",
                   "size of a pointer 4");
  WRONG_DESCRIPTOR(d.provider.abi_vendor = "fork", DK_LOAD_VENDOR, "another vendor", "durakit",
                   "fork");
  WRONG_DESCRIPTOR(d.provider.abi_vendor = NULL, DK_LOAD_VENDOR, "another vendor", "durakit",
                   "none");
}

static void
lose_three(struct puppet_descriptor *d)
{
  d->ops.ack_work_item = NULL;
  d->ops.renew_work_item_lock = NULL;
  d->ops.read_history = NULL;
}

static void
lose_all_sorts(struct puppet_descriptor *d)
{
  d->provider.limits = NULL;
  d->provider.close = NULL;
  d->ops.read_history = NULL;
}

static void
test_members(void)
{
  WRONG_DESCRIPTOR(lose_three(&d), DK_LOAD_MEMBERS,
                   "3 required operations are missing: ack_work_item, renew_work_item_lock, "
                   "read_history",
                   "all ten required members of struct dk_ops (durakit/provider.h)", "NULL");
  WRONG_DESCRIPTOR(lose_all_sorts(&d), DK_LOAD_MEMBERS,
                   "3 required members are missing: limits, close, read_history",
                   "struct dk_provider", "NULL");
  WRONG_DESCRIPTOR(d.provider.ops = NULL, DK_LOAD_MEMBERS, "1 required member is missing: ops",
                   "struct dk_provider", "NULL");
  WRONG_DESCRIPTOR(d.ops.struct_size = offsetof(struct dk_ops, renew_work_item_lock),
                   DK_LOAD_MEMBERS, "2 required operations are missing: renew_work_item_lock, "
                   "read_history", "struct dk_ops", "built against an older header?");
}

#define NO_SENSE(change, member, expected, found)                                                  \
  WRONG_DESCRIPTOR(change, DK_LOAD_DESCRIPTOR, "the value of " member " is invalid", expected, \
                   found)

static void
test_values(void)
{
  static const struct dk_param twice[] = {
    {.key = "a", .type = "path"}, {.key = "a", .type = "path"}, {.key = NULL}};
  static const struct dk_param typeless[] = {{.key = "a", .type = "colour"}, {.key = NULL}};
  static const struct dk_param shouting[] = {{.key = "A", .type = "path"}, {.key = NULL}};
  static const struct dk_param off[] = {
    {.key = "a", .type = "integer", .fallback = "many"}, {.key = NULL}};
  static const char *const nameless[] = {"durakit.kv", NULL};

  NO_SENSE(d.provider.thread_model = 0, "thread_model", "DK_PARALLEL (3000)", "0");
  NO_SENSE(d.provider.thread_model = 4000, "thread_model", "DK_PARALLEL (3000)", "4000");
  NO_SENSE(d.provider.clocks = 0, "clocks", "DK_CLOCK_HOST", "0");
  NO_SENSE(d.provider.durable = 3, "durable", "survives", "3");
  NO_SENSE(d.provider.shared = -1, "shared", "one handle", "-1");
  NO_SENSE(d.provider.unload = 2, "unload", "0 or 1", "2");
  NO_SENSE((d.provider.unload = 1, d.provider.runtime = DK_RUNTIME_STAYS), "unload",
           "DK_RUNTIME_STAYS", "1");
  NO_SENSE(d.limits.max_id = 254, "limits.max_id", "at least 255", "254");
  NO_SENSE(d.limits.max_commit_items = 99, "limits.max_commit_items", "at least 100", "99");
  NO_SENSE(d.limits.struct_size = 8, "limits.struct_size", "at least 32", "8");
  NO_SENSE(d.provider.params = twice, "params", "well-formed",
           "another parameter has the same key");
  NO_SENSE(d.provider.params = typeless, "params", "well-formed", "its type is not one of");
  NO_SENSE(d.provider.params = shouting, "params", "well-formed", "its key has characters");
  NO_SENSE(d.provider.params = off, "params", "well-formed", "its fallback is not of its type");
  NO_SENSE(d.provider.extensions = nameless, "extensions", "durakit.kv/1", "'durakit.kv'");
}

/* A provider with one member more than this host knows, and one from before optional members came
 * in. */
static void
test_sizes(void)
{
  struct {
    struct puppet_descriptor d;
    char future[64];
  } larger;
  struct puppet_descriptor smaller;
  struct dk_library *library = NULL;
  struct dk_refusal refusal;

  memset(&larger, 0xff, sizeof(larger));
  puppet_describe(&larger.d);
  larger.d.limits.struct_size += 8;
  larger.d.provider.abi_minor = 7;
  cmp_ok(dk_library_from_descriptor(&larger.d.provider, 0, &library, &refusal), "==", 0,
         "a newer provider is accepted");
  dk_library_close(library);

  puppet_describe(&smaller);
  smaller.ops.struct_size = offsetof(struct dk_ops, enqueue_for_worker);
  cmp_ok(dk_library_from_descriptor(&smaller.provider, 0, &library, &refusal), "==", 0,
         "and one without optional operations");
  ok(!dk_library_provider(library)->ops->enqueue_for_worker, "which are NULL from then on");
  ok(!dk_library_provider(library)->ops->interrupt, "all of them");
  dk_library_close(library);
}

int
main(void)
{
  struct folder folder = {.n_files = 0};

  plan(NO_PLAN);
  make_folder(&folder);
  test_paths(&folder);
  test_unreadable(&folder);
  test_not_elf(&folder);
  test_other_machine(&folder);
  test_linking(&folder);
  test_entry(&folder);
  test_sharing(&folder);
  test_unloading(&folder);
  test_incomplete(&folder);
  remove_folder(&folder);
  test_identity();
  test_members();
  test_values();
  test_sizes();
  return done_testing();
}
