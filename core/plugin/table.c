/* SPDX-License-Identifier: Apache-2.0 */
/* The table of upcalls that a provider is given.  The host finds its store by the table's address:
 * just before the table are a pointer to the table itself, which a copy cannot have, and a pointer
 * to the store.
 *
 * Owns the tables.  A guarded one ends where an unreadable page begins, and becomes unreadable
 * itself when the store is closed; its pages are never unmapped, so that nothing else is mapped
 * there and a late use is always detected. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/plugin/call.h"
#include "core/plugin/memory.h"
#include "core/plugin/process.h"
#include "core/plugin/store.h"

struct dk_table {
  struct dk_table *self;
  struct dk_table *next; /* in the process's list, under its lock */
  uint64_t users;        /* upcalls through copies, under the process's lock */
  struct dk_store *store;
  struct dk_host host;
};

/* ABI-12: the provider calls through a copy, and nothing shows which store it belongs to.  The
 * newest store gets the report and answers, and is not freed before it has; NULL: there is no
 * store. */
static struct dk_table *
table_of_copy(const char *upcall)
{
  struct dk_process *process = dk_process();
  struct dk_table *table;

  dk_lock(&process->lock);
  table = process->tables;
  if (table)
    table->users++;
  dk_unlock(&process->lock);
  if (table && table->store->options.violation)
    table->store->options.violation(table->store->options.context, upcall, "ABI-12",
                                    "an upcall was made through a copy of the host's table, or "
                                    "through another pointer than the one that open was given");
  return table;
}

/* The memory before a copy belongs to something else.  One word of it is read, in spite of
 * sanitizers. */
__attribute__((no_sanitize("address"))) static bool
is_ours(const struct dk_table *table)
{
  return table->self == table;
}

/* The table whose store answers, until end_use. */
static struct dk_table *
begin_use(const struct dk_host *host, const char *upcall)
{
  uintptr_t in_front = (uintptr_t)host - offsetof(struct dk_table, host);
  struct dk_table *table = (void *)in_front;

  return is_ours(table) ? table : table_of_copy(upcall);
}

static void
end_use(const struct dk_host *host, struct dk_table *table)
{
  struct dk_process *process = dk_process();

  if (!table || host == &table->host)
    return;
  dk_lock(&process->lock);
  assert(table->users > 0);
  table->users--;
  if (table->users == 0)
    pthread_cond_broadcast(&process->table_unused);
  dk_unlock(&process->lock);
}

/* ---- upcalls with a call --------------------------------------------------------------------- */

static bool
is_late(struct dk_call *call, const char *upcall)
{
  if (atomic_load(&call->is_running))
    return false;
  dk_call_report(call, "ABI-4", "%s was called after %s had returned", upcall,
                 call->operation->name);
  return true;
}

/* MEM-1, MEM-2: the arguments of fail can be used. */
static dk_status
look_at_failure(struct dk_call *call, dk_status status, struct dk_bytes why)
{
  TRY(dk_memory_value(call, "fail", "status", &status, sizeof(status)));
  TRY(dk_memory_value(call, "fail", "why (ptr and len)", &why, sizeof(why)));
  return dk_memory_bytes(call, "fail", "why", why);
}

static dk_status
host_fail(struct dk_call *call, dk_status status, struct dk_bytes why)
{
  if (is_late(call, "fail"))
    return status;
  TRY(look_at_failure(call, status, why));
  if (status == DK_OK) {
    dk_call_violated(call, "ERR-2", "fail was called with DK_OK");
    return call->refused;
  }
  /* The host's refusal remains the reason, whatever text the provider gives. */
  if (call->refused == DK_OK) {
    call->failed = status;
    dk_caller_set_text(call->caller, why);
  }
  return status;
}

static void
host_reset(struct dk_call *call)
{
  if (!is_late(call, "reset"))
    dk_call_forget(call);
}

static int32_t
host_cancelled(struct dk_call *call)
{
  return is_late(call, "cancelled") || dk_call_is_cancelled(call);
}

static int32_t
host_cancel_fd(struct dk_call *call)
{
  return is_late(call, "cancel_fd") ? -1 : dk_call_cancel_fd(call);
}

/* CALL-4: a provider whose wait reports the cancellation for the third time is ignoring it. */
static dk_status
answer_cancelled(struct dk_call *call)
{
  enum { TOO_OFTEN = 3 };

  call->is_cancelled = true;
  if (++call->cancelled_waits == TOO_OFTEN)
    dk_call_report(call, "CALL-4",
                   "%s waited again after two waits had reported that it is cancelled",
                   call->operation->name);
  return DK_CALL_CANCELLED;
}

static dk_status
host_wait(struct dk_call *call, int32_t fd, uint32_t events, int64_t until)
{
  if (is_late(call, "wait"))
    return DK_CALL_CANCELLED;
  TRY(dk_memory_value(call, "wait", "fd", &fd, sizeof(fd)));
  TRY(dk_memory_value(call, "wait", "events", &events, sizeof(events)));
  TRY(dk_memory_value(call, "wait", "until", &until, sizeof(until)));
  if (dk_call_is_cancelled(call))
    return answer_cancelled(call);

  int cancel_fd = dk_call_cancel_fd(call);
  if (cancel_fd < 0) {
    call->refused = dk_call_refuse(call, DK_UNAVAILABLE,
                                   "no file descriptors are left to wait with");
    return call->refused;
  }
  struct dk_wait wait = {
    .actor = call->caller->actor,
    .cancel_fd = cancel_fd,
    .fd = fd,
    .events = events,
    .until = until,
  };
  dk_status status = call->store->clock->wait(call->store->clock, &wait);
  return status == DK_CALL_CANCELLED ? answer_cancelled(call) : status;
}

/* ---- upcalls without one --------------------------------------------------------------------- */

int64_t
dk_store_now(struct dk_store *store)
{
  int64_t now = store->clock->now(store->clock);
  int64_t latest = atomic_load(&store->latest);

  while (latest < now && !atomic_compare_exchange_weak(&store->latest, &latest, now))
    continue;
  return latest < now ? now : latest;
}

static int64_t
host_now(const struct dk_host *host)
{
  struct dk_table *table = begin_use(host, "now");
  int64_t now =
    table ? dk_store_now(table->store) : dk_clock_system()->now(dk_clock_system());

  end_use(host, table);
  return now;
}

/* MEM-1, MEM-2: a line that cannot be read is reported, and not logged. */
static bool
is_readable(const struct dk_store *store, int32_t level, struct dk_bytes line)
{
  const struct dk_host_options *options = &store->options;
  struct dk_memory_fault fault;

  if (!dk_memory_finds(store, "level", &level, sizeof(level), false, &fault) &&
      !dk_memory_finds(store, "line (ptr and len)", &line, sizeof(line), false, &fault) &&
      !dk_memory_finds(store, "line", line.ptr, line.ptr ? line.len : 0, false, &fault))
    return true;
  if (options->violation)
    options->violation(options->context, "log", fault.clause, fault.text);
  return false;
}

static void
host_log(const struct dk_host *host, int32_t level, struct dk_bytes line)
{
  struct dk_table *table = begin_use(host, "log");
  const struct dk_host_options *options = table ? &table->store->options : NULL;

  if (options && options->log && is_readable(table->store, level, line))
    options->log(options->context, level, line);
  end_use(host, table);
}

static const void *
host_service(const struct dk_host *host, const char *id)
{
  struct dk_table *table = begin_use(host, "service");
  const struct dk_host_options *options = table ? &table->store->options : NULL;
  const void *service =
    options && options->service && id ? options->service(options->context, id) : NULL;

  end_use(host, table);
  return service;
}

/* ---- the table ------------------------------------------------------------------------------- */

static void
fill_table(struct dk_host *host, uint32_t size)
{
  host->struct_size = size;
  host->abi_minor = DK_ABI_MINOR;
  host->fail = host_fail;
  dk_sink_upcalls(host);
  host->reset = host_reset;
  host->cancelled = host_cancelled;
  host->cancel_fd = host_cancel_fd;
  host->wait = host_wait;
  host->now = host_now;
  host->log = host_log;
  host->service = host_service;
}

static size_t
page_size(void)
{
  return (size_t)sysconf(_SC_PAGESIZE);
}

static char *
guarded_end(struct dk_table *table)
{
  size_t page = page_size();

  return (char *)((uintptr_t)table / page * page) + page;
}

/* `size` bytes of memory that end where an unreadable page begins. */
static struct dk_table *
guarded_memory(size_t size)
{
  size_t page = page_size();
  char *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

  if (pages == MAP_FAILED)
    return NULL;
  if (mprotect(pages + page, page, PROT_NONE) != 0) {
    munmap(pages, 2 * page);
    return NULL;
  }
  return (struct dk_table *)(pages + page - size);
}

static void
add_to_list(struct dk_table *table)
{
  struct dk_process *process = dk_process();

  dk_lock(&process->lock);
  table->next = process->tables;
  process->tables = table;
  dk_unlock(&process->lock);
}

/* Waits until it is not in use: an upcall that found it by a copy ends first. */
static void
remove_from_list(const struct dk_table *table)
{
  struct dk_process *process = dk_process();

  dk_lock(&process->lock);
  for (struct dk_table **at = &process->tables; *at; at = &(*at)->next)
    if (*at == table) {
      *at = table->next;
      break;
    }
  while (table->users > 0)
    dk_lock_wait(&process->lock, &process->table_unused);
  dk_unlock(&process->lock);
}

struct dk_table *
dk_table_new(struct dk_store *store)
{
  uint64_t wanted = store->options.host_size;
  size_t size = wanted > 0 && wanted < sizeof(struct dk_host) ? (size_t)wanted / 8 * 8
                                                              : sizeof(struct dk_host);
  size_t whole = offsetof(struct dk_table, host) + size;
  struct dk_table filled = {.store = store};
  struct dk_table *table =
    store->options.flags & DK_HOST_GUARDED ? guarded_memory(whole) : malloc(whole);

  if (!table)
    return NULL;
  filled.self = table;
  fill_table(&filled.host, (uint32_t)size);
  memcpy(table, &filled, whole);
  add_to_list(table);
  return table;
}

const struct dk_host *
dk_table_host(const struct dk_table *table)
{
  return &table->host;
}

void
dk_table_free(struct dk_table *table)
{
  if (!table)
    return;
  remove_from_list(table);
  if (table->store->options.flags & DK_HOST_GUARDED)
    mprotect(guarded_end(table) - page_size(), page_size(), PROT_NONE);
  else
    free(table);
}
