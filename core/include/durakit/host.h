/* SPDX-License-Identifier: 0BSD */
/* durakit/host.h - load a provider and call it.
 *
 * What the host does for both sides: it finds and checks the plugin, copies descriptor and table of
 * operations (what the plugin lacks is NULL from then on), refuses what no provider should have to
 * check, serialises calls for the lower thread models, collects results, and carries errors.
 *
 * Results are provisional: they lie in the caller's memory, and a `ret_` argument is written only
 * when the call returns DK_OK. They live until dk_caller_reset; nothing has to be freed one by one,
 * and a call that fails or brings nothing takes no memory (but see dk_caller_overdue).
 *
 * Text in a request (instance, id, session, tag, key, owner, name, version) has a NUL at ptr[len]
 * that `len` does not count: providers are promised one, and the host refuses what has none.
 * Results have it.
 *
 * Threads.  A dk_library and a dk_store may be used by any thread.  A dk_caller belongs to one
 * thread at a time.  A dk_canceller may be used by any number of callers and signalled from any
 * thread.
 */
#ifndef DURAKIT_HOST_H
#define DURAKIT_HOST_H

#include <durakit/admin.h>
#include <durakit/clock.h>
#include <durakit/provider.h>

#if defined __GNUC__
#pragma GCC visibility push(default)
#endif
#ifdef __cplusplus
extern "C" {
#endif

/* ---- loading --------------------------------------------------------------------------------- */

/* Why something was refused, in the parts that a person needs.  `number` is stable (DK_LOAD_*).
 * Text lies in the struct itself. */
struct dk_refusal {
  int32_t number;
  char where[512];    /* the file, setting or store in question */
  char what[512];     /* what happened */
  char expected[512];
  char found[512];
  char next[512];     /* what to do */
};

enum {
  DK_LOAD_NO_PATH = 1,        /* empty */
  DK_LOAD_RELATIVE = 2,       /* neither absolute nor resolved before */
  DK_LOAD_NOT_THERE = 3,
  DK_LOAD_NOT_A_FILE = 4,     /* a folder, a device */
  DK_LOAD_NOT_READABLE = 5,
  DK_LOAD_NOT_ELF = 6,        /* a text file, an archive, a script */
  DK_LOAD_OTHER_MACHINE = 7,  /* another architecture, word size, byte order; no shared object */
  DK_LOAD_DLOPEN = 8,         /* the dynamic linker's own text */
  DK_LOAD_NO_SYMBOL = 9,
  DK_LOAD_ABI_1 = 10,         /* durakit_provider_1: fetch and renew return an ExecutionState */
  DK_LOAD_DECLINED = 11,      /* the entry point returned NULL */
  DK_LOAD_MAGIC = 12,
  DK_LOAD_SIZE = 13,
  DK_LOAD_STAMP = 14,
  DK_LOAD_VENDOR = 15,
  DK_LOAD_MEMBERS = 16,       /* all required members and operations that are missing */
  DK_LOAD_DESCRIPTOR = 17,    /* a value makes no sense: thread model, clocks, limits, ... */
  DK_LOAD_NOT_PURE = 18,      /* a second call of the entry point gave something else */
  DK_LOAD_NO_MEMORY = 19
};

struct dk_library;

enum {
  DK_LIBRARY_UNLOAD = 1u,    /* without RTLD_NODELETE: the file is unmapped by the last close */
  DK_LIBRARY_INCOMPLETE = 2u /* accept missing operations (`durakit check --next`); they are
                                DK_UNSUPPORTED when called */
};

/* Loads the plugin at an absolute path; the same file (device and inode) twice is the same library.
 * 0, or -1 with *ret_refusal written.  The plugin's constructors run in this process. */
int32_t dk_library_open(const char *path, uint32_t flags, struct dk_library **ret_library,
                        struct dk_refusal *ret_refusal);
void dk_library_close(struct dk_library *library);
/* The descriptor, copied and completed: members beyond the plugin's struct_size are zero. */
const struct dk_provider *dk_library_provider(const struct dk_library *library);
/* The required operations that are missing, by name, NULL at the end (DK_LIBRARY_INCOMPLETE). */
const char *const *dk_library_missing(const struct dk_library *library);

/* Checks settings against the descriptor's parameters: unknown and repeated keys, missing required
 * ones, values that are not of their type.  0, or -1 with the refusal (number 0). */
int32_t dk_settings_check(const struct dk_library *library, const struct dk_setting *settings,
                          size_t n_settings, struct dk_refusal *ret_refusal);

/* ---- callers --------------------------------------------------------------------------------- */

struct dk_canceller;
/* In `region` (dk_canceller_size() bytes) if it is given, else in memory of its own. */
size_t dk_canceller_size(void);
struct dk_canceller *dk_canceller_new(void *region);
void dk_canceller_free(struct dk_canceller *canceller);
/* Marks every call made with it, running and future, as wanted back, and interrupts the stores that
 * have such a call running in this process, one after the other.  Takes no lock for longer than a
 * moment and holds none while it interrupts, so it never blocks unless an interrupt does, which a
 * provider must not.  A call that is made afterwards reaches the provider, cancelled from its
 * start. */
void dk_cancel(struct dk_canceller *canceller);
int32_t dk_cancelled(const struct dk_canceller *canceller);
/* From here on calls run again.  For when the cancelled ones have returned. */
void dk_canceller_reset(struct dk_canceller *canceller);

struct dk_failure {
  dk_status status;
  const char *operation;  /* "ack_work_item" */
  const char *text;       /* the provider's, or the host's own; never NULL */
  int32_t by_host;        /* non-zero: the host refused, the provider was not called */
  int32_t list;           /* DK_DUPLICATE of a commit: the list (DK_LIST_...) of an item that is
                             stored, and its index there; 0: the provider does not say, for it was
                             built for an ABI before 2.3 */
  uint64_t index;
};

struct dk_caller;
/* With memory of its own, or all in `region` (of `size` bytes, which is also the most that one
 * caller can get; for maps that processes share). */
struct dk_caller *dk_caller_new(void *region, size_t size);
void dk_caller_free(struct dk_caller *caller);
void dk_caller_set_canceller(struct dk_caller *caller, struct dk_canceller *canceller);
void dk_caller_set_actor(struct dk_caller *caller, int32_t actor);
/* For a conformance kit: with 1 the host passes requests on as they are, without its own
 * refusals. */
void dk_caller_set_unchecked(struct dk_caller *caller, int32_t unchecked);
/* Forgets all results and failures. */
void dk_caller_reset(struct dk_caller *caller);
/* How the last call failed; status DK_OK if it did not. */
const struct dk_failure *dk_caller_failure(const struct dk_caller *caller);

/* ---- stores ---------------------------------------------------------------------------------- */

/* What a host wants to hear and to lend.  Zero: nothing.  Called from any thread. */
struct dk_host_options {
  uint32_t struct_size, flags;
  struct dk_clock *clock; /* NULL: the system's */
  void *context;
  void (*log)(void *context, int32_t level, struct dk_bytes line);
  /* The provider broke a rule of the ABI, in `operation`. */
  void (*violation)(void *context, const char *operation, const char *clause, const char *text);
  const void *(*service)(void *context, const char *id);
  int64_t close_wait_ms;  /* how long close waits for a stuck call, in real time; 0: 5,000 */
  /* Size of the host table that the provider sees, to show it an older host; 0: all of it. */
  uint64_t host_size;
};
enum {
  /* The host table ends at an unreadable page, and is unreadable itself after close. */
  DK_HOST_GUARDED = 1u
};

struct dk_store;

/* The settings are checked as by dk_settings_check (DK_INVALID).  DK_OPEN_HOST_CLOCK is refused if
 * the provider cannot go by the host's clock, and set by the host if it cannot go by another. */
dk_status dk_store_open(struct dk_library *library, const struct dk_host_options *options,
                        struct dk_caller *caller, uint32_t open_flags,
                        const struct dk_setting *settings, size_t n_settings,
                        struct dk_store **ret_store);
/* Stops new calls, cancels the running ones, interrupts, waits for the last, closes.  A call that
 * does not come back keeps the handle from being closed: then the answer is the operation's name,
 * and the store is leaked, unless it is closed again later.  Else NULL. */
const char *dk_store_close(struct dk_store *store);
dk_status dk_store_destroy(struct dk_library *library, const struct dk_host_options *options,
                           struct dk_caller *caller, const struct dk_setting *settings,
                           size_t n_settings);
/* For so many milliseconds the store has been waited for: since the oldest of its calls that are
 * under way began (a fetch's wait included), or the first of those that found it busy or away (a
 * status of class 1 or 3), if none was answered otherwise since.  0: neither.  Any thread, until
 * the store is closed. */
int64_t dk_store_waits_ms(struct dk_store *store);
/* The extension's struct, or NULL; ids that the descriptor does not declare are not asked for. */
const void *dk_store_extension(struct dk_store *store, const char *id);
struct dk_library *dk_store_library(const struct dk_store *store);

/* ---- operations ------------------------------------------------------------------------------ */

/* Arrays in the caller's memory.  `deadline` is on the host's clock: until then the lease may be
 * used. */
struct dk_turn {
  struct dk_turn_head head;
  struct dk_kv *kv;
  size_t n_kv;
  struct dk_event *events;
  size_t n_events;
  struct dk_message *messages;
  size_t n_messages;
  int64_t deadline;
};
struct dk_work_item {
  struct dk_work work;
  struct dk_item item; /* work.item points here */
  int64_t deadline;
};
struct dk_works {
  struct dk_work_item *items;
  size_t n_items;
};
/* What the caller's last call has fetched too late: the lease had ended when the call came back (a
 * slow disk, a network).  It is no result: a fetch that brings nothing else is DK_BUSY, with words.
 * Whoever asks next may be given it again; the store has counted the attempt, and nobody has made
 * it. */
struct dk_overdue {
  const struct dk_turn *turn; /* NULL: none */
  const struct dk_work_item *items;
  size_t n_items;
};
const struct dk_overdue *dk_caller_overdue(const struct dk_caller *caller);
struct dk_commit_outcome {
  struct dk_cancel_report report;
  int32_t reported;        /* the provider called cancelled_rows */
  int32_t incomplete;      /* some of stolen could not be kept */
  struct dk_stolen *stolen;
  size_t n_stolen;
};
struct dk_history {
  int32_t found;           /* 0: no such execution */
  struct dk_execution execution;
  struct dk_event *events;
  size_t n_events;
};

/* Each is the operation of the same name in provider.h, with what the host checks before it:
 * DK_LOCK_LOST for a token that no provider can have given (absent, empty, too long, with a NUL);
 * DK_INVALID for malformed text, negative times, a lease of 0, event ids that do not ascend, one
 * identity twice in a commit, an instance or id in a worker item of a commit; DK_TOO_LARGE for what
 * exceeds the limits; DK_UNSUPPORTED for flags that the host does not know, for fields of an
 * extension that the provider has not declared, and for an optional operation that it lacks.  The
 * text of a failure is in dk_caller_failure. */
dk_status dk_store_enqueue_for_orchestrator(struct dk_store *store, struct dk_caller *caller,
                                            const struct dk_item *item);
dk_status dk_store_enqueue_for_worker(struct dk_store *store, struct dk_caller *caller,
                                      const struct dk_item *item);
dk_status dk_store_fetch_orchestration_item(struct dk_store *store, struct dk_caller *caller,
                                            const struct dk_fetch_turn *request,
                                            struct dk_turn **ret_turn);
dk_status dk_store_ack_orchestration_item(struct dk_store *store, struct dk_caller *caller,
                                          struct dk_bytes token,
                                          const struct dk_turn_result *result,
                                          struct dk_commit_outcome *ret_outcome);
dk_status dk_store_abandon_orchestration_item(struct dk_store *store, struct dk_caller *caller,
                                              struct dk_bytes token, int64_t delay_ms,
                                              int32_t ignore_attempt);
dk_status dk_store_renew_orchestration_item_lock(struct dk_store *store, struct dk_caller *caller,
                                                 struct dk_bytes token, int64_t extend_ms);
dk_status dk_store_fetch_work_item(struct dk_store *store, struct dk_caller *caller,
                                   const struct dk_fetch_work *request,
                                   struct dk_works **ret_works);
dk_status dk_store_ack_work_item(struct dk_store *store, struct dk_caller *caller,
                                 struct dk_bytes token, const struct dk_work_result *result);
dk_status dk_store_abandon_work_item(struct dk_store *store, struct dk_caller *caller,
                                     struct dk_bytes token, int64_t delay_ms,
                                     int32_t ignore_attempt);
dk_status dk_store_renew_work_item_lock(struct dk_store *store, struct dk_caller *caller,
                                        struct dk_bytes token, int64_t extend_ms);
dk_status dk_store_read_history(struct dk_store *store, struct dk_caller *caller,
                                const struct dk_read_history *request,
                                struct dk_history **ret_history);
/* For a fetch with this fetch_id that answered with an error: what it has locked is free again. */
dk_status dk_store_release_fetch(struct dk_store *store, struct dk_caller *caller,
                                 uint64_t fetch_id);

/* durakit.admin/1; DK_UNSUPPORTED of a store that does not offer it.  Arrays in the caller's
 * memory.  DK_INVALID for malformed text, negative times, a deletion without a filter, a page of 0,
 * a prune with both or neither of instance and filter; DK_UNSUPPORTED for unknown flags and
 * statuses. */
struct dk_instances {
  struct dk_instance *items;
  size_t n_items;
};
struct dk_executions {
  struct dk_execution *items;
  size_t n_items;
};
struct dk_messages {
  struct dk_message *items;
  size_t n_items;
};
dk_status dk_store_list_instances(struct dk_store *store, struct dk_caller *caller,
                                  const struct dk_list_instances *request,
                                  struct dk_instances **ret_instances);
dk_status dk_store_list_executions(struct dk_store *store, struct dk_caller *caller,
                                   const struct dk_list_executions *request,
                                   struct dk_executions **ret_executions);
dk_status dk_store_read_messages(struct dk_store *store, struct dk_caller *caller,
                                 const struct dk_read_messages *request,
                                 struct dk_messages **ret_messages);
dk_status dk_store_read_stats(struct dk_store *store, struct dk_caller *caller,
                              struct dk_stats *ret_stats);
/* ret_removed may be NULL; its `next` lies in the caller's memory. */
dk_status dk_store_delete_instances(struct dk_store *store, struct dk_caller *caller,
                                    const struct dk_delete_instances *request,
                                    struct dk_removed *ret_removed);
dk_status dk_store_delete_matching(struct dk_store *store, struct dk_caller *caller,
                                   const struct dk_delete_matching *request,
                                   struct dk_removed *ret_removed);
dk_status dk_store_prune_executions(struct dk_store *store, struct dk_caller *caller,
                                    const struct dk_prune *request,
                                    struct dk_removed *ret_removed);

/* "DK_LOCK_LOST", or "status 137" for one that this host has never seen. */
const char *dk_status_name(dk_status status, char *buffer, size_t size);
/* 0 not an error, 1 try again, 2 do not, 3 unknown outcome. */
int32_t dk_status_class(dk_status status);

#ifdef __cplusplus
}
#endif
#if defined __GNUC__
#pragma GCC visibility pop
#endif
#endif
