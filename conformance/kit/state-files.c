/* SPDX-License-Identifier: Apache-2.0 */
/* The part of the process's state that has to do with files: descriptors, streams, folders, files
 * that are left, and shared memory, semaphores and queues of System V.
 *
 * The check's own folder is its working directory and its $TMPDIR.  Many programs make files in
 * /dev/shm, /tmp and /var/tmp.  Only the kernel knows which of them this process has made, and
 * reports it if it offers fanotify (Linux 5.13; not in every container). */
#include "conformance/kit/state.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fanotify.h>
#include <sys/sem.h>
#include <sys/stat.h>
#include <unistd.h>
#include <wchar.h>

enum { SHOWN = 80 };

/* ---- descriptors ----------------------------------------------------------------------------- */

/* Calls `take` for each open descriptor, except the one that lists them. */
static void
each_descriptor(struct kit_state *state, void (*take)(struct kit_state *state, int number))
{
  DIR *folder = opendir("/proc/self/fd");
  const struct dirent *entry;

  while (folder != NULL && (entry = readdir(folder)) != NULL) {
    if (entry->d_name[0] != '.' && atoi(entry->d_name) != dirfd(folder))
      take(state, atoi(entry->d_name));
  }
  if (folder != NULL)
    closedir(folder);
}

static void
take_target(struct kit_state *state, int number)
{
  char key[32], path[64];

  snprintf(key, sizeof(key), "descriptor %d", number);
  snprintf(path, sizeof(path), "/proc/self/fd/%d", number);
  state_add(state, key, "%s", state_link(state, path));
}

void
state_take_descriptors(struct kit_state *state)
{
  /* If they can no longer be listed, that is a difference too. */
  int folder = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

  state_add(state, "the list of descriptors", "%s", folder < 0 ? strerror(errno) : "readable");
  if (folder >= 0)
    close(folder);
  each_descriptor(state, take_target);
}

bool
state_descriptor_is_of_runtime(const struct state_entry *was, const struct state_entry *is)
{
  (void)is;
  return was == NULL;
}

/* Other programs may change the flags of a terminal, or of an inherited pipe. */
static bool
is_shared(int number)
{
  struct stat st;

  return isatty(number) || (number > STDERR_FILENO && fstat(number, &st) == 0
                            && S_ISFIFO(st.st_mode));
}

static void
take_flags_of(struct kit_state *state, int number)
{
  static const struct {
    int flag;
    const char *name;
  } known[] = {{O_APPEND, "O_APPEND"}, {O_NONBLOCK, "O_NONBLOCK"}, {O_ASYNC, "O_ASYNC"},
               {O_DIRECT, "O_DIRECT"}, {O_NOATIME, "O_NOATIME"}};
  bool shared = is_shared(number);
  int of_file = shared ? 0 : fcntl(number, F_GETFL);
  int own = fcntl(number, F_GETFD);
  char key[48], flags[96] = "none";
  size_t used = 0;

  for (size_t i = 0; of_file >= 0 && i < sizeof(known) / sizeof(known[0]); i++) {
    if ((of_file & known[i].flag) != 0)
      used += (size_t)snprintf(flags + used, sizeof(flags) - used, "%s%s", used > 0 ? " " : "",
                               known[i].name);
  }
  if (own >= 0 && (own & FD_CLOEXEC) != 0)
    used += (size_t)snprintf(flags + used, sizeof(flags) - used, "%sFD_CLOEXEC",
                             used > 0 ? " " : "");
  if (!shared && fcntl(number, F_GETOWN) != 0)
    used += (size_t)snprintf(flags + used, sizeof(flags) - used, "%sF_SETOWN",
                             used > 0 ? " " : "");
  if (!shared && fcntl(number, F_GETSIG) > 0)
    snprintf(flags + used, sizeof(flags) - used, "%sF_SETSIG", used > 0 ? " " : "");
  snprintf(key, sizeof(key), "the set of flags of descriptor %d", number);
  state_add(state, key, "%s", flags);
}

void
state_take_flags(struct kit_state *state)
{
  each_descriptor(state, take_flags_of);
}

/* ---- streams --------------------------------------------------------------------------------- */

/* A stream gets its buffer when it is first used; that is not a change.  Only glibc shows whether a
 * stream is unbuffered, or has a buffer that is not the library's. */
static const char *
buffer_of(FILE *stream)
{
#ifdef __GLIBC__
  enum { USER_BUFFER = 0x1, UNBUFFERED = 0x2 }; /* _flags, in glibc's libio.h */

  if ((stream->_flags & UNBUFFERED) != 0)
    return "none";
  if ((stream->_flags & USER_BUFFER) != 0)
    return __flbf(stream) != 0 ? "written by lines, in foreign memory" : "in foreign memory";
#endif
  return __flbf(stream) != 0 ? "written by lines" : "written when it is full";
}

void
state_take_streams(struct kit_state *state)
{
  state_add(state, "the buffer of stdin", "%s", buffer_of(stdin));
  state_add(state, "the buffer of stdout", "%s", buffer_of(stdout));
  state_add(state, "the buffer of stderr", "%s", buffer_of(stderr));
  state_add(state, "the orientation of stdin", "%s", fwide(stdin, 0) > 0 ? "wide" : "bytes");
  state_add(state, "the orientation of stdout", "%s", fwide(stdout, 0) > 0 ? "wide" : "bytes");
  state_add(state, "the orientation of stderr", "%s", fwide(stderr, 0) > 0 ? "wide" : "bytes");
}

void
state_take_written(struct kit_state *state)
{
  struct stat out;

  state->written = fstat(STDOUT_FILENO, &out) == 0 && S_ISREG(out.st_mode) ? out.st_size : -1;
}

bool
state_written_differs(const struct kit_state *before, const struct kit_state *after,
                      struct kit_report *report)
{
  char start[SHOWN];
  struct dk_text text = DK_TEXT_EMPTY;
  ssize_t n = 0;
  int fd;

  if (before->written < 0 || after->written <= before->written)
    return false;
  fd = open("/proc/self/fd/1", O_RDONLY | O_CLOEXEC);
  if (fd >= 0) {
    n = pread(fd, start, sizeof(start), before->written);
    close(fd);
  }
  dk_text_add_escaped(&text, start, n > 0 ? (size_t)n : 0, DK_ESCAPE_VISIBLE);
  state_damage(report, "ABI-6", "nothing is written to standard output",
               "%lld bytes were written to standard output: %s",
               (long long)(after->written - before->written), dk_text_str(&text));
  dk_text_done(&text);
  return true;
}

/* ---- folders --------------------------------------------------------------------------------- */

void
state_take_folders(struct kit_state *state)
{
  char folder[1024];

  if (getcwd(folder, sizeof(folder)) == NULL)
    snprintf(folder, sizeof(folder), "unknown");
  state_add(state, "the working directory", "%s", folder);
  state_add(state, "the root directory", "%s", state_link(state, "/proc/self/root"));
}

/* The store of a check: if the check has not removed it, the runner does. */
static bool
is_store(const struct kit_job *job, const char *name)
{
  char mark[32];

  snprintf(mark, sizeof(mark), "dk%.12s-%u-", job->run, job->number);
  return strstr(name, mark) != NULL
         || (job->store_value == NULL && strncmp(name, "store-", strlen("store-")) == 0);
}

/* Without a folder of its own, which it then shares with other checks, it gets none. */
void
kit_set_temporary(const struct kit_job *job)
{
  if (job->folder != NULL && job->folder[0] == '/')
    setenv("TMPDIR", job->folder, 1);
}

/* The folder is also that of the check's other processes, which may be killed before they can
 * remove a file, and has the socket by which the kit stands in a connection. */
void
state_take_temporary(struct kit_state *state)
{
  const struct kit_job *job = state->job;
  bool is_own = job->check->processes == 0 && job->hurt.through == NULL;
  DIR *folder = job->folder == NULL || !is_own ? NULL : opendir(job->folder);
  const struct dirent *entry;

  while (folder != NULL && (entry = readdir(folder)) != NULL) {
    const char *name = entry->d_name;

    if (strcmp(name, ".") != 0 && strcmp(name, "..") != 0 && !is_store(job, name))
      state_add(state, state_text(state, "the file %s", name), "in the working directory, which "
                "is also $TMPDIR");
  }
  if (folder != NULL)
    closedir(folder);
}

/* ---- folders that programs share ------------------------------------------------------------- */

static const char *const shared_folders[STATE_FOLDERS] = {"/dev/shm", "/tmp", "/var/tmp"};

#ifdef FAN_REPORT_DFID_NAME

static int
watch_folder(const char *path)
{
  int group = fanotify_init(FAN_CLASS_NOTIF | FAN_REPORT_DFID_NAME | FAN_CLOEXEC | FAN_NONBLOCK,
                            O_RDONLY);

  if (group < 0 || fanotify_mark(group, FAN_MARK_ADD | FAN_MARK_ONLYDIR,
                                 FAN_CREATE | FAN_MOVED_TO | FAN_ONDIR, AT_FDCWD, path) == 0)
    return group;
  close(group);
  return -1;
}

/* The header of the event is followed by the folder's handle, and that by the name. */
static const char *
name_of_event(const struct fanotify_event_metadata *event)
{
  const struct fanotify_event_info_fid *info =
    (const void *)((const char *)event + event->metadata_len);
  const struct file_handle *handle = (const void *)info->handle;

  if (event->event_len < event->metadata_len + sizeof(*info) + sizeof(*handle)
      || info->hdr.info_type != FAN_EVENT_INFO_TYPE_DFID_NAME)
    return NULL;
  return (const char *)handle->f_handle + handle->handle_bytes;
}

/* True: this process has made the name, and it still exists.  (Without privileges the kernel names
 * no other process.) */
static bool
is_left(const struct kit_job *job, const struct fanotify_event_metadata *event,
        const char *folder, char *path, size_t size)
{
  const char *name = event->pid == getpid() ? name_of_event(event) : NULL;
  struct stat st;

  if (name == NULL || is_store(job, name))
    return false;
  snprintf(path, size, "%s/%s", folder, name);
  return lstat(path, &st) == 0;
}

/* Finds the first name that this process has made in the watched folder, and that still exists. */
static bool
find_left(const struct kit_job *job, int group, const char *folder, char *path, size_t size)
{
  union {
    struct fanotify_event_metadata first;
    char bytes[8192];
  } events;
  bool found = false;
  ssize_t n;

  while (!found && (n = read(group, &events, sizeof(events))) > 0) {
    const struct fanotify_event_metadata *event = &events.first;

    for (; !found && FAN_EVENT_OK(event, n); event = FAN_EVENT_NEXT(event, n))
      found = is_left(job, event, folder, path, size);
  }
  return found;
}

#else

static int
watch_folder(const char *path)
{
  (void)path;
  return -1;
}

static bool
find_left(const struct kit_job *job, int group, const char *folder, char *path, size_t size)
{
  (void)job;
  (void)group;
  (void)folder;
  (void)path;
  (void)size;
  return false;
}

#endif

void
state_take_watched(struct kit_state *state)
{
  for (size_t i = 0; i < STATE_FOLDERS && state->before == NULL; i++)
    state->watched[i] = watch_folder(shared_folders[i]);
}

bool
state_watched_differs(const struct kit_state *before, const struct kit_state *after,
                      struct kit_report *report)
{
  char path[512];

  (void)after;
  for (size_t i = 0; i < STATE_FOLDERS; i++) {
    if (before->watched[i] >= 0
        && find_left(before->job, before->watched[i], shared_folders[i], path, sizeof(path)))
      return state_damage(report, "CALL-8",
                          "what a handle needs for itself is removed by close at the latest, and "
                          "what belongs to the store by destroy_store",
                          "%s was made, and left behind", path);
  }
  return false;
}

/* ---- System V -------------------------------------------------------------------------------- */

/* Of semaphores and queues the kernel keeps the process that used them last, not the one that made
 * them.  Those that were never used count as this check's if its user owns them. */
static bool
is_own_set(int id, int n, unsigned creator)
{
  bool used = false;

  for (int i = 0; i < n && creator == geteuid(); i++) {
    int pid = semctl(id, i, GETPID);

    if (pid == getpid())
      return true;
    used = used || pid != 0;
  }
  return creator == geteuid() && !used;
}

static void
take_segment(struct kit_state *state, const char *line)
{
  unsigned long size;
  int id, creator;
  char key[64];

  if (sscanf(line, "%*d %d %*o %lu %d", &id, &size, &creator) != 3 || creator != getpid())
    return;
  snprintf(key, sizeof(key), "the segment %d of shared memory", id);
  state_add(state, key, "%lu bytes", size);
}

static void
take_semaphores(struct kit_state *state, const char *line)
{
  unsigned creator;
  int id, n;
  char key[64];

  if (sscanf(line, "%*d %d %*o %d %*u %*u %u", &id, &n, &creator) != 3
      || !is_own_set(id, n, creator))
    return;
  snprintf(key, sizeof(key), "the set %d of semaphores", id);
  state_add(state, key, "of %d", n);
}

static void
take_queue(struct kit_state *state, const char *line)
{
  unsigned creator;
  int id, sender, receiver;
  char key[64];

  if (sscanf(line, "%*d %d %*o %*u %*u %d %d %*u %*u %u", &id, &sender, &receiver, &creator) != 4)
    return;
  if (sender != getpid() && receiver != getpid()
      && (sender != 0 || receiver != 0 || creator != geteuid()))
    return;
  snprintf(key, sizeof(key), "the message queue %d", id);
  state_add(state, key, "System V");
}

static void
each_line(struct kit_state *state, const char *path,
          void (*take)(struct kit_state *state, const char *line))
{
  FILE *file = fopen(path, "re");
  char *line = NULL;
  size_t room = 0;

  while (file != NULL && getline(&line, &room, file) > 0)
    take(state, line);
  free(line);
  if (file != NULL)
    fclose(file);
}

void
state_take_segments(struct kit_state *state)
{
  each_line(state, "/proc/sysvipc/shm", take_segment);
  each_line(state, "/proc/sysvipc/sem", take_semaphores);
  each_line(state, "/proc/sysvipc/msg", take_queue);
}
