/* SPDX-License-Identifier: 0BSD */
/* durakit/host.h - load a provider and call it.
 *
 * The host finds and checks the plugin, copies its descriptor and its table of operations (members
 * that the plugin lacks are NULL in the copies), refuses invalid requests so that no provider has
 * to check for them, serialises calls for the lower thread models, collects results, and passes on
 * errors.
 *
 * Results are stored in the caller's memory, and a `ret_` argument is written only when the call
 * returns DK_OK.  They are valid until dk_caller_reset; nothing has to be freed one by one, and a
 * call that fails or returns nothing uses no memory (except for dk_caller_overdue).
 *
 * Text in a request (instance, id, session, tag, key, owner, name, version) has a NUL at ptr[len]
 * that `len` does not count: providers rely on it, and the host refuses text without it.  Results
 * have it.
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
 * The struct itself holds the text. */
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
  DK_LOAD_RELATIVE = 2,       /* not an absolute path */
  DK_LOAD_NOT_THERE = 3,
  DK_LOAD_NOT_A_FILE = 4,     /* a folder, a device */
  DK_LOAD_NOT_READABLE = 5,
  DK_LOAD_NOT_ELF = 6,        /* a text file, an archive, a script */
  DK_LOAD_OTHER_MACHINE = 7,  /* another architecture, word size or byte order; or not a shared
                                 object */
  DK_LOAD_DLOPEN = 8,         /* the dynamic linker's own text */
  DK_LOAD_NO_SYMBOL = 9,
  DK_LOAD_ABI_1 = 10,         /* a plugin for ABI 1 (durakit_provider_1): fetch and renew return an
                                 ExecutionState */
  DK_LOAD_DECLINED = 11,      /* the entry point returned NULL */
  DK_LOAD_MAGIC = 12,
  DK_LOAD_SIZE = 13,
  DK_LOAD_STAMP = 14,
  DK_LOAD_VENDOR = 15,
  DK_LOAD_MEMBERS = 16,       /* all required members and operations that are missing */
  DK_LOAD_DESCRIPTOR = 17,    /* an invalid value: thread model, clocks, limits, ... */
  DK_LOAD_NOT_PURE = 18,      /* a second call of the entry point returned something else */
  DK_LOAD_NO_MEMORY = 19
};

struct dk_library;

enum {
  DK_LIBRARY_UNLOAD = 1u,    /* without RTLD_NODELETE: the last close unmaps the file */
  DK_LIBRARY_INCOMPLETE = 2u /* accept missing operations (`durakit check --next`); to call one is
                                DK_UNSUPPORTED */
};

/* Loads the plugin at an absolute path; to open the same file (device and inode) twice gives the
 * same library.  Returns 0, or -1 with *ret_refusal written.  The plugin's constructors run in this
 * process. */
int32_t dk_library_open(const char *path, uint32_t flags, struct dk_library **ret_library,
                        struct dk_refusal *ret_refusal);
void dk_library_close(struct dk_library *library);
/* The descriptor, copied and completed: members beyond the plugin's struct_size are zero. */
const struct dk_provider *dk_library_provider(const struct dk_library *library);
/* The required operations that are missing, by name, NULL at the end (DK_LIBRARY_INCOMPLETE). */
const char *const *dk_library_missing(const struct dk_library *library);

/* Checks settings against the descriptor's parameters: unknown and repeated keys, missing required
 * ones, values that are not of their type.  Returns 0, or -1 with the refusal (number 0). */
int32_t dk_settings_check(const struct dk_library *library, const struct dk_setting *settings,
                          size_t n_settings, struct dk_refusal *ret_refusal);

/* ---- callers --------------------------------------------------------------------------------- */

struct dk_canceller;
/* Makes a canceller in `region` (dk_canceller_size() bytes), or in memory of its own if `region` is
 * NULL. */
size_t dk_canceller_size(void);
struct dk_canceller *dk_canceller_new(void *region);
void dk_canceller_free(struct dk_canceller *canceller);
/* Cancels every call made with it, running and future, and interrupts the stores that have such a
 * call running in this process, one after the other.  It holds locks for a moment only, and none
 * while it interrupts, so that it blocks only if an interrupt blocks, which the contract forbids.
 * A call that is made afterwards still reaches the provider, cancelled from its start. */
void dk_cancel(struct dk_canceller *canceller);
int32_t dk_cancelled(const struct dk_canceller *canceller);
/* Calls made from now on run again.  Call it when the cancelled calls have returned. */
void dk_canceller_reset(struct dk_canceller *canceller);

struct dk_failure {
  dk_status status;
  const char *operation;  /* "ack_work_item" */
  const char *text;       /* the provider's, or the host's own; never NULL */
  int32_t by_host;        /* non-zero: the host refused the call; the provider was not called */
  int32_t list;           /* DK_DUPLICATE of a commit: the list (DK_LIST_...) of an item that is
                             stored, and its index in it; 0: the provider did not name one, because
                             it was built for an ABI before 2.3 */
  uint64_t index;
};

struct dk_caller;
/* Makes a caller with memory of its own, or one that keeps everything in `region` (for memory that
 * processes share).  `size` is the size of the region, and the most that this caller may use. */
struct dk_caller *dk_caller_new(void *region, size_t size);
void dk_caller_free(struct dk_caller *caller);
void dk_caller_set_canceller(struct dk_caller *caller, struct dk_canceller *canceller);
void dk_caller_set_actor(struct dk_caller *caller, int32_t actor);
/* For a conformance kit: with 1 the host passes requests on unchanged and does not refuse any
 * itself. */
void dk_caller_set_unchecked(struct dk_caller *caller, int32_t unchecked);
/* For tests of providers: the n-th result that is handed up from now on finds no memory
 * (DK_NO_MEMORY); 0: none does. */
void dk_caller_refuse_result(struct dk_caller *caller, uint32_t n);
/* Discards all results and failures. */
void dk_caller_reset(struct dk_caller *caller);
/* How the last call failed; status DK_OK if it did not. */
const struct dk_failure *dk_caller_failure(const struct dk_caller *caller);

/* ---- stores ---------------------------------------------------------------------------------- */

/* What the program gives to the host.  Zero: nothing.  The functions are called from any thread. */
struct dk_host_options {
  uint32_t struct_size, flags;
  struct dk_clock *clock; /* NULL: the system's */
  void *context;
  void (*log)(void *context, int32_t level, struct dk_bytes line);
  /* Reports that the provider broke a rule of the ABI, in `operation`. */
  void (*violation)(void *context, const char *operation, const char *clause, const char *text);
  const void *(*service)(void *context, const char *id);
  int64_t close_wait_ms;  /* how long close waits for a call that does not return, in real time; 0:
                             5,000 */
  /* Size of the host table that the provider sees, to show it an older host; 0: all of it. */
  uint64_t host_size;
};
enum {
  /* The host table ends at an unreadable page, and is unreadable itself after close. */
  DK_HOST_GUARDED = 1u
};

struct dk_store;

/* Checks the settings as dk_settings_check does (DK_INVALID).  Refuses DK_OPEN_HOST_CLOCK if the
 * provider does not support the host's clock, and sets it if the provider supports no other. */
dk_status dk_store_open(struct dk_library *library, const struct dk_host_options *options,
                        struct dk_caller *caller, uint32_t open_flags,
                        const struct dk_setting *settings, size_t n_settings,
                        struct dk_store **ret_store);
/* Refuses new calls, cancels and interrupts the running ones, waits until they have returned, and
 * closes the store.  Returns NULL; or the name of an operation that does not return: then the
 * handle cannot be closed, and the store is leaked unless dk_store_close is called again later. */
const char *dk_store_close(struct dk_store *store);
dk_status dk_store_destroy(struct dk_library *library, const struct dk_host_options *options,
                           struct dk_caller *caller, const struct dk_setting *settings,
                           size_t n_settings);
/* For how many milliseconds the store has not answered: since the oldest of its running calls began
 * (a fetch's wait included), or since calls began to find it busy or unreachable (a status of class
 * 1 or 3) with no other answer in between.  0: neither.  Any thread may call it until the store is
 * closed. */
int64_t dk_store_waits_ms(struct dk_store *store);
/* The extension's struct, or NULL.  The provider is not asked for ids that its descriptor does not
 * declare. */
const void *dk_store_extension(struct dk_store *store, const char *id);
struct dk_library *dk_store_library(const struct dk_store *store);

/* ---- operations ------------------------------------------------------------------------------ */

/* Arrays are in the caller's memory.  The lease may be used until `deadline`, on the host's
 * clock. */
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
/* What the caller's last call fetched too late: the lease had ended when the call returned (a slow
 * disk, a network).  It is not a result: a fetch that returns nothing else is DK_BUSY, with a text.
 * The next fetch may return it again; the store has counted an attempt that was never made. */
struct dk_overdue {
  const struct dk_turn *turn; /* NULL: none */
  const struct dk_work_item *items;
  size_t n_items;
};
const struct dk_overdue *dk_caller_overdue(const struct dk_caller *caller);
struct dk_commit_outcome {
  struct dk_cancel_report report;
  int32_t reported;        /* the provider called cancelled_rows */
  int32_t incomplete;      /* there was no memory for some of stolen */
  struct dk_stolen *stolen;
  size_t n_stolen;
};
struct dk_history {
  int32_t found;           /* 0: no such execution */
  struct dk_execution execution;
  struct dk_event *events;
  size_t n_events;
};

/* Each is the operation of the same name in provider.h, after these checks of the host:
 * DK_LOCK_LOST for a token that no provider can have issued (absent, empty, too long, with a NUL);
 * DK_INVALID for malformed text, negative times, a lease of 0, event ids that do not ascend, an
 * identity that occurs twice in a commit, an instance or id in a worker item of a commit;
 * DK_TOO_LARGE for a request that exceeds the limits; DK_UNSUPPORTED for flags that the host does
 * not know, for fields of an extension that the provider has not declared, and for an optional
 * operation that it lacks.  dk_caller_failure has the text of a failure. */
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
/* For a fetch with this fetch_id that returned an error: unlocks what it has locked. */
dk_status dk_store_release_fetch(struct dk_store *store, struct dk_caller *caller,
                                 uint64_t fetch_id);

/* durakit.admin/1; DK_UNSUPPORTED if the store does not offer it.  Arrays are in the caller's
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
/* ret_removed may be NULL; its `next` is in the caller's memory. */
dk_status dk_store_delete_instances(struct dk_store *store, struct dk_caller *caller,
                                    const struct dk_delete_instances *request,
                                    struct dk_removed *ret_removed);
dk_status dk_store_delete_matching(struct dk_store *store, struct dk_caller *caller,
                                   const struct dk_delete_matching *request,
                                   struct dk_removed *ret_removed);
dk_status dk_store_prune_executions(struct dk_store *store, struct dk_caller *caller,
                                    const struct dk_prune *request,
                                    struct dk_removed *ret_removed);

/* "DK_LOCK_LOST", or "status 137" for a status that this host does not know. */
const char *dk_status_name(dk_status status, char *buffer, size_t size);
/* 0 not an error, 1 try again, 2 do not try again, 3 unknown outcome. */
int32_t dk_status_class(dk_status status);

#ifdef __cplusplus
}
#endif
#if defined __GNUC__
#pragma GCC visibility pop
#endif
#endif
