/* SPDX-License-Identifier: Apache-2.0 */
/* A store that fails on request; for the tests of the runtime.
 *
 * A provider inside of the test, which passes every call to a real one (the model, SQLite) with
 * host and call unchanged, and does before or after it what was planned.  Any thread may make and
 * change plans at any time. */
#ifndef DK_RUNTIME_TESTING_FAILING_STORE_H
#define DK_RUNTIME_TESTING_FAILING_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include <durakit/host.h>

enum faulty_operation {
  FAULTY_ENQUEUE_MESSAGE, /* enqueue_for_orchestrator */
  FAULTY_FETCH_TURN,
  FAULTY_ACK_TURN,
  FAULTY_ABANDON_TURN,
  FAULTY_RENEW_TURN,
  FAULTY_FETCH_WORK,
  FAULTY_ACK_WORK,
  FAULTY_ABANDON_WORK,
  FAULTY_RENEW_WORK,
  FAULTY_READ_HISTORY,
  FAULTY_ENQUEUE_WORK,
  FAULTY_RELEASE_FETCH,
  FAULTY_LIST_INSTANCES, /* durakit.admin/1 */
  FAULTY_LIST_EXECUTIONS,
  FAULTY_READ_MESSAGES,
  FAULTY_READ_STATS,
  FAULTY_DELETE_INSTANCES,
  FAULTY_DELETE_MATCHING,
  FAULTY_PRUNE,
  N_FAULTY_OPERATIONS
};

enum fault {
  FAULT_REFUSE,  /* not done; answers the status */
  FAULT_SLOW,    /* the same, 3 s later */
  FAULT_FORGET,  /* done, and if that was DK_OK, answers the status nevertheless */
  FAULT_HANG,    /* until faulty_release: then it is done; cancelled before: DK_CALL_CANCELLED */
  FAULT_DEAF,    /* as FAULT_HANG, but ignores a cancellation */
  FAULT_LATE,    /* done, and if that was DK_OK the answer hangs until faulty_release */
  FAULT_OVERDUE  /* of a fetch: as FAULT_LATE, but until its lease has ended */
};

struct faulty;

/* The plugin's store of these settings (none for the model: a store in memory), made if it does not
 * exist.  Ends the program with a message if that fails. */
struct faulty *faulty_open(const char *plugin, const struct dk_setting *settings,
                           size_t n_settings);
/* The model's, whose plugin the variable MODEL names, in memory. */
struct faulty *faulty_open_model(void);
/* The one that has extensions, from MODEL_FULL: key-values, sessions and the custom status. */
struct faulty *faulty_open_full_model(void);
/* The model that offers no extension. */
struct faulty *faulty_open_plain_model(void);
/* Releases what hangs and closes; ends the program if a call does not return. */
void faulty_close(struct faulty *faulty);
struct dk_store *faulty_store(struct faulty *faulty);

/* From now on, after `skip` calls that succeed, `times` calls (UINT32_MAX: all) of the operation
 * fail in this way; `status` is for FAULT_REFUSE, _SLOW and _FORGET.  Replaces an earlier plan. */
void faulty_plan(struct faulty *faulty, enum faulty_operation operation, uint32_t skip,
                 uint32_t times, enum fault fault, dk_status status);
/* From now on each page of a deletion ends after `roots` roots, as the header allows; 0: none does.
 */
void faulty_end_pages(struct faulty *faulty, uint32_t after_roots);
/* From now on the results of this instance's activities are refused with this status; NULL: no
 * longer.  Its name belongs to the caller. */
void faulty_refuse_results(struct faulty *faulty, const char *instance, dk_status status);
/* Once that plan is used up, `times` more calls fail in this way. */
void faulty_then(struct faulty *faulty, enum faulty_operation operation, uint32_t times,
                 enum fault fault, dk_status status);
/* Removes all plans, and makes the store reachable; calls that hang still hang. */
void faulty_heal(struct faulty *faulty);
/* Makes the store unreachable: every call answers DK_UNAVAILABLE, and is not done.  A fetch that is
 * waiting at that moment is not cancelled; what it returns is lost. */
void faulty_away(struct faulty *faulty, bool is_away);
/* All calls that hang continue, and have returned when this returns; until the next plan no call
 * hangs. */
void faulty_release(struct faulty *faulty);

/* How many calls were made, how many returned DK_OK, and how many hang now. */
uint64_t faulty_calls(struct faulty *faulty, enum faulty_operation operation);
uint64_t faulty_successes(struct faulty *faulty, enum faulty_operation operation);
uint32_t faulty_hanging(struct faulty *faulty);
/* Waits until `n` calls were made (hang); false after 60 s. */
/* What the last successful commit that changed a custom status has made of it: "set to ...",
 * "cleared"; "" if there was none. */
void faulty_custom_status(struct faulty *faulty, char *ret_words, size_t size);
bool faulty_until_calls(struct faulty *faulty, enum faulty_operation operation, uint64_t n);
bool faulty_until_hanging(struct faulty *faulty, uint32_t n);

#endif
