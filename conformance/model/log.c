/* SPDX-License-Identifier: Apache-2.0 */
/* The log: the durable form of a store, and how an operation gets in and out.
 *
 * A header line, the store's number in another, then records: a head, and the steps of one
 * operation.  An operation takes the file's lock, applies what was appended since, decides, appends
 * one record, and syncs.
 *
 * Records are only ever appended behind a whole one, so only the last one can be torn, and that one
 * was never answered: it is cut off.  Any part of it may be missing, even its head; that it is the
 * last one is then seen from the fact that no other head follows.  Without a setting `store` the
 * log is a file in memory, which no other handle can open.
 *
 * Owns the descriptor and s->end.  Locks: store.mutex first, the file's lock under it; the mutex is
 * released before a wait for the file's lock, so that every wait ends on cancel. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "conformance/model/model.h"
#include "core/base/checksum.h"

int64_t
clock_now(const struct store *s)
{
  struct timespec time;

  if (!s->own_clock || MUTANT(M_TIME_OWN_IS_THE_HOSTS)) /* TIME-7 */
    return s->host->now(s->host);
  clock_gettime(CLOCK_REALTIME, &time);
  return (int64_t)time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

#define MAGIC "durakit-model "
static const char by_host[] = MAGIC "1 clock=host     \n"; /* version; kind of clock [TIME-7] */
static const char by_store[] = MAGIC "1 clock=store    \n";
enum { HEADER_SIZE = sizeof by_host - 1, LIFE_SIZE = 21, LOG_FROM = HEADER_SIZE + LIFE_SIZE };
_Static_assert(sizeof by_host == sizeof by_store, "one size for all headers");

struct head {
  uint64_t length;
  uint32_t checksum;      /* of the steps */
  uint32_t own_checksum;  /* of the two above */
};

static uint32_t
checksum_of_head(const struct head *head)
{
  return dk_crc32c(0, head, offsetof(struct head, own_checksum));
}

/* ---- refusing -------------------------------------------------------------------------------- */

dk_status
refuse(struct op *op, dk_status status, const char *format, ...)
{
  struct dk_text why = DK_TEXT_EMPTY;
  va_list args;

  dk_text_printf(&why, "%s: ", op->name);
  va_start(args, format);
  dk_text_vprintf(&why, format, args);
  va_end(args);
  status = op->s->host->fail(op->call, status, (struct dk_bytes){dk_text_str(&why), why.length});
  dk_text_done(&why);
  return status;
}

/* ABI-11. */
dk_status
refuse_unknown(struct op *op, bool is_unknown, const char *what)
{
  const struct store *s = op->s;

  if (REFUSED(M_ABI_UNKNOWN_FLAGS_IGNORED, is_unknown))
    return refuse(op, DK_UNSUPPORTED, "%s is not known to this provider", what);
  return DK_OK;
}

static dk_status
model_log_no_memory(struct op *op)
{
  const struct store *s = op->s;

  return refuse(op, MUTANT(M_ERR_NO_MEMORY_IS_INTERNAL) ? DK_INTERNAL : DK_NO_MEMORY,
                "out of memory");
}

static dk_status
corrupt(struct op *op, const char *found)
{
  return refuse(op, DK_CORRUPT, "the record at byte %lld of the log %s; nothing was changed",
                (long long)op->s->end, found);
}

/* ---- following ------------------------------------------------------------------------------- */

static bool
is_all_zero(const char *bytes, size_t size)
{
  return size == 0 || (bytes[0] == 0 && memcmp(bytes, bytes + 1, size - 1) == 0);
}

/* Reads all that follows s->end. */
static dk_status
read_rest(struct op *op, char *room, size_t size)
{
  const struct store *s = op->s;

  for (size_t got = 0; got < size;) {
    ssize_t n = pread(s->fd, room + got, size - got, s->end + (off_t)got);
    if (DEFECT(M_ERR_UNREADABLE_IS_TORN, n < 0)) {
      memset(room, 0, size);
      return DK_OK;
    }
    if (n == 0 || (n < 0 && errno != EINTR))
      return refuse(op, DK_UNAVAILABLE, "cannot read the log: %s",
                    n ? strerror(errno) : "it is shorter now");
    got += n > 0 ? (size_t)n : 0;
  }
  return DK_OK;
}

/* What was being appended when its writer died.  No caller has got an answer for it. */
static dk_status
cut_off(struct op *op)
{
  struct store *s = op->s;

  if (s->is_read_only)
    return DK_OK;
  if (ftruncate(s->fd, s->end) < 0)
    return refuse(op, DK_UNAVAILABLE, "cannot cut off a torn record: %s", strerror(errno));
  return DK_OK;
}

/* Is there a record behind this one, whose head is damaged?  Then this one was whole once. */
static bool
another_follows(struct dk_bytes rest)
{
  struct head head;

  for (size_t at = 1; at < rest.len && rest.len - at >= sizeof head; at++) {
    memcpy(&head, rest.ptr + at, sizeof head);
    if (head.length > 0 && head.own_checksum == checksum_of_head(&head))
      return true;
  }
  return false;
}

/* Applies the records in `rest`, which reaches to the end of the log. */
static dk_status
apply_records(struct op *op, struct dk_bytes rest)
{
  struct store *s = op->s;
  struct head head;

  while (rest.len) {
    if (rest.len < sizeof head || is_all_zero(rest.ptr, rest.len))
      return cut_off(op);
    memcpy(&head, rest.ptr, sizeof head);
    if (head.own_checksum != checksum_of_head(&head))
      return another_follows(rest) ? corrupt(op, "has a damaged head") : cut_off(op);
    bool is_torn = head.length > rest.len - sizeof head;
    if (REFUSED(M_QUEUE_TORN_RECORD_TRUSTED, is_torn))
      return cut_off(op);
    if (is_torn) {
      head.length = rest.len - sizeof head;
      head.checksum = dk_crc32c(0, rest.ptr + sizeof head, head.length);
    }
    struct dk_bytes steps = {rest.ptr + sizeof head, head.length};
    rest = (struct dk_bytes){steps.ptr + steps.len, rest.len - sizeof head - steps.len};
    if (head.checksum != dk_crc32c(0, steps.ptr, steps.len))
      return rest.len ? corrupt(op, "does not have its checksum") : cut_off(op);
    s->is_following = !s->is_opening;
    dk_status status = state_apply(s, steps);
    s->is_following = false;
    if (status != DK_OK)
      return status == DK_NO_MEMORY ? model_log_no_memory(op)
                                    : corrupt(op, "does not fit what is before it");
    s->end += (off_t)(sizeof head + steps.len);
  }
  return DK_OK;
}

/* Brings the state to where the log is, from the start if it is stale. */
static dk_status
follow(struct op *op)
{
  struct store *s = op->s;
  struct stat now;

  if (s->is_stale) {
    state_done(s);
    s->end = LOG_FROM;
    if (state_init(s) != DK_OK)
      return model_log_no_memory(op);
    s->is_stale = false;
  }
  if (fstat(s->fd, &now) < 0)
    return refuse(op, DK_UNAVAILABLE, "cannot look at the log: %s", strerror(errno));
  if (now.st_size < s->end)
    return corrupt(op, "no longer exists: the log became shorter");
  if (now.st_size == s->end)
    return DK_OK;
  size_t size = (size_t)(now.st_size - s->end);
  char *rest = malloc(size);
  dk_status status = rest ? read_rest(op, rest, size) : model_log_no_memory(op);
  if (status == DK_OK)
    status = apply_records(op, (struct dk_bytes){rest, size});
  free(rest);
  return status;
}

/* ---- in and out ------------------------------------------------------------------------------ */

static int
set_lock(const struct store *s, short type)
{
  struct flock lock = {.l_type = type, .l_whence = SEEK_SET};

  return fcntl(s->fd, F_OFD_SETLK, &lock);
}

/* Another handle has the file's lock.  The system can wait for it, but not for a cancel too: so try
 * again. */
static void
wait_a_moment(struct op *op, int tries)
{
  enum { SOME = 20 };
  struct pollfd cancel = {.fd = op->s->host->cancel_fd(op->call), .events = POLLIN};

  if (tries < SOME)
    sched_yield();
  else
    (void)poll(&cancel, 1, 1);
}

static dk_status
take_lock(struct op *op)
{
  struct store *s = op->s;

  for (int tries = 0;; tries++) {
    pthread_mutex_lock(&s->mutex);
    if (set_lock(s, s->is_read_only ? F_RDLCK : F_WRLCK) == 0)
      return DK_OK;
    int error = errno;
    pthread_mutex_unlock(&s->mutex);
    if (error != EAGAIN && error != EACCES && error != EINTR)
      return refuse(op, DK_UNAVAILABLE, "cannot lock the log: %s", strerror(error));
    if (REFUSED(M_CALL_LOCK_WAIT_IS_DEAF, s->host->cancelled(op->call))) /* CALL-5 */
      return DK_CALL_CANCELLED;
    wait_a_moment(op, tries);
  }
}

static void
give_lock_back(struct op *op)
{
  set_lock(op->s, F_UNLCK);
  pthread_mutex_unlock(&op->s->mutex);
}

static dk_status
take_lock_and_follow(struct op *op)
{
  TRY(take_lock(op));
  dk_status status = follow(op);
  if (status != DK_OK)
    give_lock_back(op);
  return status;
}

static dk_status model_log_append(struct op *op);

/* QUEUE-9: a mutant has answered a sender that its message is stored, and stores it now. */
static dk_status
write_what_was_answered(struct op *op)
{
  struct store *s = op->s;

  if (s->unwritten.length == 0 || strcmp(op->name, "enqueue_for_orchestrator") == 0)
    return DK_OK;
  op->record = s->unwritten;
  s->unwritten = (struct dk_text)DK_TEXT_EMPTY;
  dk_status status = model_log_append(op);
  dk_text_done(&op->record);
  op->record = (struct dk_text)DK_TEXT_EMPTY;
  if (status != DK_OK)
    give_lock_back(op);
  return status;
}

dk_status
enter(struct op *op, void *self, struct dk_call *call, const char *name)
{
  struct store *s = self;

  *op = (struct op){.s = s, .call = call, .name = name, .due = INT64_MAX};
  bool is_fetch = strncmp(name, "fetch", 5) == 0, is_enqueue = strncmp(name, "enqueue", 7) == 0;
  bool is_early = DEFECT(M_TIME_FETCH_READS_CLOCK_FIRST, is_fetch) ||
                  DEFECT(M_TIME_ENQUEUE_READS_CLOCK_FIRST, is_enqueue) ||
                  DEFECT(M_TIME_TOKEN_READS_CLOCK_FIRST, !is_fetch && !is_enqueue);
  int64_t early = is_early ? clock_now(s) : 0;
  if (s->elsewhere)
    TRY(s->elsewhere->hello(op, s->elsewhere));
  TRY(take_lock_and_follow(op));
  op->now = op->lease_from = is_early ? early : clock_now(s);          /* TIME-1, TIME-6 */
  if (s->operations++ == 0)
    s->first_now = op->now;
  op->number = s->operations;
  if (DEFECT(M_ERR_BUSY_NOW_AND_THEN, s->operations % 100 == 0)) { /* ERR-1 */
    give_lock_back(op);
    return refuse(op, DK_BUSY, "a checkpoint is running");
  }
  return write_what_was_answered(op);
}

/* By time, not by turns: beside others that are busy each turn takes milliseconds, and a check
 * would have no time left for overlaps. */
void
let_others_pass(const struct store *s)
{
  enum { A_GOOD_CHANCE_NS = 4 * 1000 * 1000 };
  struct stat before, now;
  struct timespec begun, time;

  if (fstat(s->fd, &before) < 0 || clock_gettime(CLOCK_MONOTONIC, &begun) < 0)
    return;
  do {
    sched_yield();
    if (fstat(s->fd, &now) < 0 || clock_gettime(CLOCK_MONOTONIC, &time) < 0)
      return;
  } while (now.st_size == before.st_size &&
           (time.tv_sec - begun.tv_sec) * 1000000000 + time.tv_nsec - begun.tv_nsec <
             A_GOOD_CHANCE_NS);
}

dk_status
let_others_in(struct op *op)
{
  give_lock_back(op);
  let_others_pass(op->s);
  pthread_mutex_lock(&op->s->mutex);
  while (set_lock(op->s, F_WRLCK) < 0)
    sched_yield();
  return follow(op);
}

void
write_step(struct op *op, const struct step *step)
{
  struct head room = {0};

  if (op->record.length == 0)
    dk_text_add(&op->record, &room, sizeof room); /* filled in by append */
  step_write(&op->record, step);
}

static int
write_all(int fd, const char *bytes, size_t size, off_t at)
{
  while (size) {
    ssize_t n = pwrite(fd, bytes, size, at);
    if (n < 0 && errno != EINTR)
      return -1;
    size_t written = n > 0 ? (size_t)n : 0;
    bytes += written;
    size -= written;
    at += (off_t)written;
  }
  return 0;
}

/* A fixture's fault: what was read might have changed by the time of the write. */
static dk_status
append_unlocked(struct op *op, struct dk_bytes record)
{
  struct store *s = op->s;

  give_lock_back(op);
  dk_status status = s->elsewhere->append(op, s->elsewhere, record);
  pthread_mutex_lock(&s->mutex);
  while (set_lock(s, F_WRLCK) < 0)
    sched_yield();
  return status;
}

static dk_status
write_record(struct op *op, struct dk_bytes record)
{
  struct store *s = op->s;

  if (s->elsewhere && s->elsewhere->is_open)
    return append_unlocked(op, record);
  if (s->elsewhere)
    return s->elsewhere->append(op, s->elsewhere, record);
  if (write_all(s->fd, record.ptr, record.len, s->end) < 0) {
    int error = errno;
    (void)!ftruncate(s->fd, s->end);
    return refuse(op, MUTANT(M_ERR_FULL_DISK_IS_INTERNAL) ? DK_INTERNAL : DK_UNAVAILABLE,
                  "cannot append to the log: %s", strerror(error));
  }
  if (!MUTANT(M_QUEUE_NEVER_SYNCED) && fdatasync(s->fd) < 0)
    return refuse(op, MUTANT(M_ERR_FAILED_SYNC_IS_UNDONE) ? DK_UNAVAILABLE : DK_OUTCOME_UNKNOWN,
                  "cannot sync the log: %s", strerror(errno));
  return DK_OK;
}

/* One operation, one record: in the log it has happened.  [ACK-1, QUEUE-9] */
static dk_status
model_log_append(struct op *op)
{
  struct store *s = op->s;
  struct dk_text *record = &op->record;
  struct dk_bytes steps;
  struct head head;

  if (dk_text_failed(record))
    return model_log_no_memory(op);
  if (s->is_read_only)
    return refuse(op, DK_REFUSED, "the store was opened read-only");
  steps = (struct dk_bytes){record->bytes + sizeof head, record->length - sizeof head};
  head = (struct head){.length = steps.len, .checksum = dk_crc32c(0, steps.ptr, steps.len)};
  head.own_checksum = checksum_of_head(&head);
  memcpy(record->bytes, &head, sizeof head);
  TRY(write_record(op, (struct dk_bytes){record->bytes, record->length}));
  if (state_apply(s, steps) != DK_OK)
    return refuse(op, MUTANT(M_ERR_NO_MEMORY_THOUGH_DONE) ? DK_NO_MEMORY : DK_OUTCOME_UNKNOWN,
                  "it is stored, but there is no memory to apply it");
  s->end += (off_t)record->length;
  ring_waiters(s);
  return DK_OK;
}

/* A record without a byte is one for whose first byte there was no memory. */
static bool
has_record(const struct op *op)
{
  return op->record.length > 0 || dk_text_failed(&op->record);
}

dk_status
write_so_far(struct op *op)
{
  dk_status status = has_record(op) ? model_log_append(op) : DK_OK;

  dk_text_done(&op->record);
  op->record = (struct dk_text)DK_TEXT_EMPTY;
  return status;
}

dk_status
write_in_between(struct op *op)
{
  TRY(write_so_far(op));
  return let_others_in(op);
}

static bool
is_answered_only(struct op *op)
{
  struct store *s = op->s;
  size_t head = s->unwritten.length ? sizeof(struct head) : 0;

  if (!DEFECT(M_QUEUE_WRITTEN_LATER, strcmp(op->name, "enqueue_for_orchestrator") == 0) &&
      !DEFECT(M_QUEUE_ACKED_LATER, strcmp(op->name, "ack_work_item") == 0))
    return false;
  dk_text_add(&s->unwritten, op->record.bytes + head, op->record.length - head);
  return true;
}

dk_status
leave(struct op *op, dk_status status)
{
  const struct store *s = op->s;

  if (status == DONE_ALREADY)
    status = DK_OK;
  if (has_record(op) && (status == DK_OK || op->leaves_traces)) {
    dk_status appended = is_answered_only(op) ? DK_OK : model_log_append(op);
    status = status == DK_OK ? appended : status;
    if (DEFECT(M_CALL_CANCELLED_AFTER_THE_FACT,                          /* CALL-5 */
               status == DK_OK && s->host->cancelled(op->call)))
      status = DK_CALL_CANCELLED;
  }
  give_lock_back(op);
  dk_text_done(&op->record);
  return status;
}

/* ---- opening --------------------------------------------------------------------------------- */

static dk_status
refuse_path(struct op *op, const char *path)
{
  const struct store *s = op->s;
  bool may_pass = REFUSED(M_ERR_NO_DESCRIPTOR_IS_REFUSED, errno == EMFILE || errno == ENFILE) ||
                  errno == ENOMEM || errno == ENOSPC || errno == EIO || errno == ETIMEDOUT;
  dk_status status = errno == ENOENT ? DK_NOT_FOUND : may_pass ? DK_UNAVAILABLE : DK_REFUSED;
  return refuse(op, status, "%s %s: %s",
                errno == ENOENT ? "there is no store at" : "cannot open", path, strerror(errno));
}

static dk_status
refuse_header(struct op *op, const char *path, const char *found, size_t size)
{
  const char *header = op->s->own_clock ? by_store : by_host;
  size_t same = 0;

  if (size >= strlen(MAGIC) && memcmp(found, MAGIC, strlen(MAGIC)) == 0)
    return refuse(op, DK_REFUSED,
                  "%s is of another version or uses another clock; expected \"%.26s\", "
                  "found \"%.*s\"",
                  path, header, (int)strcspn(found, "\n"), found);
  while (same < size && found[same] == header[same])
    same++;
  return refuse(op, DK_CORRUPT, "%s is no store of the model: expected \"" MAGIC "...\", "
                "byte %zu is another", path, same);
}

/* The entry in the folder is synced too: a store that was made is there after a power cut. */
static int
sync_folder(const char *path)
{
  const char *slash = strrchr(path, '/');
  char *folder = slash ? strndup(path, slash == path ? 1 : (size_t)(slash - path)) : strdup(".");
  int fd = folder ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
  int answer = fd >= 0 ? fsync(fd) : -1;

  if (fd >= 0)
    close(fd);
  free(folder);
  return answer;
}

/* The second line: the store's number, as long as there may be, and never 0. */
static dk_status
make_header(struct op *op, const char *header, const char *path)
{
  struct store *s = op->s;
  char lines[LOG_FROM + 1];

  if (getrandom(&s->life, sizeof s->life, 0) != (ssize_t)sizeof s->life)
    return refuse(op, DK_UNAVAILABLE, "no random number for %s: %s", path, strerror(errno));
  s->life = s->life / 2 + 1;
  snprintf(lines, sizeof lines, "%s%020" PRIu64 "\n", header, s->life);
  if (write_all(s->fd, lines, LOG_FROM, 0) < 0 || fdatasync(s->fd) < 0 ||
      (s->is_file && sync_folder(path) < 0))
    return refuse(op, DK_UNAVAILABLE, "cannot make %s: %s", path, strerror(errno));
  return DK_OK;
}

/* Reads the header, or writes it where that was not finished. */
static dk_status
settle_header(struct op *op, const char *path, bool may_create)
{
  struct store *s = op->s;
  const char *header = s->own_clock ? by_store : by_host;
  const char *other = s->own_clock ? by_host : by_store;
  char found[LOG_FROM + 1] = {0};
  ssize_t size = pread(s->fd, found, LOG_FROM, 0);

  s->life = size == LOG_FROM ? strtoull(found + HEADER_SIZE, NULL, 10) : 0;
  if (size == LOG_FROM && memcmp(found, header, HEADER_SIZE) == 0)
    return s->life ? DK_OK
                   : refuse(op, DK_CORRUPT, "%s: its number cannot be read; expected 20 digits "
                            "in its second line", path);
  if (size > HEADER_SIZE)
    size = HEADER_SIZE;
  bool is_of_other = size == HEADER_SIZE && memcmp(found, other, HEADER_SIZE) == 0;
  if (DEFECT(M_TIME_CLOCK_NOT_COMPARED, is_of_other) ||                            /* TIME-7 */
      DEFECT(M_TIME_READER_NOT_COMPARED, is_of_other && s->is_read_only))
    return DK_OK;
  if (REFUSED(M_ERR_UNREADABLE_HEADER_IS_CORRUPT, size < 0))
    return refuse_path(op, path);
  if (size < 0 || memcmp(found, header, (size_t)size) != 0)
    return refuse_header(op, path, found, size < 0 ? 0 : (size_t)size);
  if (!may_create)
    return refuse(op, DK_NOT_FOUND, "there is no store at %s: it was never finished", path);
  return make_header(op, header, path);
}

/* The name under which a mutant hides a store that was destroyed. */
static void
hide(const char *path, bool is_back)
{
  struct dk_text hidden = DK_TEXT_EMPTY;

  dk_text_printf(&hidden, "%s.hidden", path);
  if (is_back)
    rename(dk_text_str(&hidden), path);
  else
    rename(path, dk_text_str(&hidden));
  dk_text_done(&hidden);
}

dk_status
log_open(struct op *op, const char *path, uint32_t flags)
{
  struct store *s = op->s;
  struct stat kind;
  bool may_create = HOLDS(M_ABI_OPEN_CREATES_ANYWAY, flags & DK_OPEN_CREATE); /* ABI-13 */

  if (path && MUTANT(M_ABI_DESTROY_HIDES) && flags & DK_OPEN_CREATE)
    hide(path, true);
  s->own_clock = !(flags & DK_OPEN_HOST_CLOCK);
  s->is_file = path != NULL;
  s->is_read_only = s->is_file && REFUSED(M_ABI_READER_WRITES, flags & DK_OPEN_READ_ONLY);
  may_create = (may_create && HOLDS(M_ABI_READER_MAKES, !(flags & DK_OPEN_READ_ONLY))) ||
               !s->is_file;
  bool was_there = s->is_file && access(path, F_OK) == 0;
  s->fd = s->is_file ? open(path, (s->is_read_only ? O_RDONLY : O_RDWR) | O_CLOEXEC | O_NONBLOCK |
                                    (may_create ? O_CREAT : 0), 0600)
                     : memfd_create("durakit-model", MFD_CLOEXEC);
  if (s->fd < 0)
    return refuse_path(op, s->is_file ? path : "memory");
  if (fstat(s->fd, &kind) < 0 || !S_ISREG(kind.st_mode))
    return refuse(op, DK_REFUSED, "%s is not a file", path);
  if (DEFECT(M_ABI_HALF_MADE_REFUSED, was_there && kind.st_size == 0))        /* ABI-13 */
    return refuse(op, DK_CORRUPT, "%s is empty", path);
  s->handle = (uint64_t)getpid() << 32 | (uint32_t)s->fd;
  s->end = LOG_FROM;

  TRY(take_lock(op));
  dk_status status = settle_header(op, s->is_file ? path : "memory", may_create);
  s->is_opening = true;
  if (status == DK_OK)
    status = follow(op);
  s->is_opening = false;
  give_lock_back(op);
  return status;
}

void
log_close(struct store *s)
{
  close_watches(s);
  dk_text_done(&s->unwritten);
  if (s->fd >= 0 && REFUSED(M_CALL_CLOSE_LEAVES_DESCRIPTOR, true))
    close(s->fd);
}

/* ABI-14: of a mutant, which takes whatever is in the folder for its own. */
static void
empty_neighbours(const char *path)
{
  struct dk_text name = DK_TEXT_EMPTY;
  const char *slash = strrchr(path, '/');
  struct dirent *entry;

  dk_text_add(&name, path, slash ? (size_t)(slash - path) : 0);
  DIR *folder = opendir(slash ? dk_text_str(&name) : ".");
  while (folder && (entry = readdir(folder))) {
    dk_text_reset(&name);
    dk_text_printf(&name, "%.*s%s", slash ? (int)(slash - path) + 1 : 0, path, entry->d_name);
    if (entry->d_name[0] != '.' && strstr(entry->d_name, "store"))
      (void)!truncate(dk_text_str(&name), 0);
  }
  if (folder)
    closedir(folder);
  dk_text_done(&name);
}

/* ABI-14.  A file that is something else is left alone. */
dk_status
log_destroy(struct op *op, const char *path)
{
  const struct store *s = op->s;
  char found[HEADER_SIZE] = {0};
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  ssize_t size = fd >= 0 ? read(fd, found, sizeof found) : -1;

  if (fd >= 0)
    close(fd);
  if (size < 0)
    return errno == ENOENT ? DK_OK : refuse_path(op, path);
  if (memcmp(found, MAGIC, (size_t)size < strlen(MAGIC) ? (size_t)size : strlen(MAGIC)) != 0)
    return refuse(op, DK_REFUSED, "%s is no store of the model, and was left alone", path);
  if (MUTANT(M_ABI_DESTROY_EMPTIES_NEIGHBOURS))
    empty_neighbours(path);
  if (MUTANT(M_ABI_DESTROY_HIDES))
    hide(path, false);
  if (REFUSED(M_ABI_DESTROY_LEAVES_STORE, true) && unlink(path) < 0 &&
      REFUSED(M_ABI_DESTROY_IGNORES_ERRORS, errno != ENOENT))
    return refuse_path(op, path);
  return DK_OK;
}
