/* SPDX-License-Identifier: 0BSD */
/* durakit/manage.h - what operators do with instances: look, cancel many, delete, prune, count.
 *
 * More functions of a client (durakit/runtime.h).  They need a provider that offers
 * durakit.admin/1; of one that does not all but dk_cancel_one, dk_cancel_many and dk_client_history
 * are DK_UNSUPPORTED, and dk_client_error says so.
 *
 * Text that is given to them is copied, and needs no NUL.  Text that is handed to a function of
 * yours has one, and lives during that call.  Such a function gives 0 to go on; anything else ends
 * the whole, which then is DK_CALL_CANCELLED.  It may use the client, but the one error text is of
 * the last call then.
 *
 * What is read is of one moment for each page, not for the whole.  What is kept in memory is a
 * page.
 */
#ifndef DURAKIT_MANAGE_H
#define DURAKIT_MANAGE_H

#include <durakit/admin.h>
#include <durakit/runtime.h>

#if defined __GNUC__
#pragma GCC visibility push(default)
#endif
#ifdef __cplusplus
extern "C" {
#endif

/* ---- looking --------------------------------------------------------------------------------- */

typedef int32_t dk_instance_fn(void *context, const struct dk_instance_info *info);
/* The instances that the filter selects (NULL: all), by their ids, from the first after `after`
 * (absent: from the first), at most `max` (0: all).  What each costs does not grow with the store.
 *
 * One whose start is stored, and of which no turn was committed, is DK_NOT_STARTED (struct
 * dk_instance_info says what is known of it): the filter's name, version, parent and
 * DK_FILTER_ROOTS are held against its start, which asks the store once more for each; and one that
 * begins while they are listed may be left out.  An id that has messages but no start is none.
 * Between two executions an instance is DK_RUNNING, here and in `statuses`.
 *
 * with_output: with outputs, with the inputs of those that are not started, and with who has
 * cancelled; 0: these are absent. */
dk_status dk_client_list(struct dk_client *client, const struct dk_instance_filter *filter,
                         dk_str after, uint64_t max, int32_t with_output, dk_instance_fn *each,
                         void *context);

struct dk_history_entry {
  uint32_t struct_size, reserved;
  uint64_t execution_id, event_id;
  uint64_t source;           /* the event that it belongs to: whose end it is, what was dropped */
  int64_t time;              /* 0: it cannot be read */
  const char *kind;          /* "activity_completed": docs/runtime.md lists them; "unreadable" */
  const char *code;          /* "select_loser_timeout"; "" if there is none */
  dk_str name;               /* of the activity, the orchestration, the event, the queue, the key */
  dk_str text;               /* the input, result, error or reason */
  dk_str by;                 /* who has cancelled it */
  dk_str other_instance;     /* the child, or the parent */
  dk_str payload;            /* as it is stored: JSON */
};
typedef int32_t dk_history_fn(void *context, const struct dk_history_entry *entry);
/* The events of one execution (0: the one that is the latest when it begins), from an id on, at
 * most `max` (0: all).  DK_NOT_FOUND: there is no such execution. */
dk_status dk_client_history(struct dk_client *client, dk_str instance, uint64_t execution_id,
                            uint64_t from_event, uint64_t max, dk_history_fn *each, void *context);

typedef int32_t dk_execution_fn(void *context, const struct dk_execution *execution);
/* Those that are stored, from the first, with their outputs.  One that is not started has none;
 * DK_NOT_FOUND: nothing is stored for this id. */
dk_status dk_client_executions(struct dk_client *client, dk_str instance, dk_execution_fn *each,
                               void *context);

/* What waits for an instance to take it. */
struct dk_waiting {
  uint32_t struct_size, reserved;
  int64_t visible_at, enqueued_at;
  const char *kind;          /* "start", "raised", "cancel", ...: docs/runtime.md; "unreadable" */
  dk_str id;
  dk_str name;               /* of the orchestration, the event, the queue */
  dk_str text;               /* the input, data, result or reason; why it is unreadable */
  dk_str by;                 /* who asks for the cancellation */
  dk_str payload;            /* as it is stored: JSON */
};
typedef int32_t dk_waiting_fn(void *context, const struct dk_waiting *message);
/* In the order of the queue; DK_NOT_FOUND: nothing is stored for this id.  All of them are in
 * memory at once. */
dk_status dk_client_messages(struct dk_client *client, dk_str instance, dk_waiting_fn *each,
                             void *context);

/* Counts of one moment; the store may have to look at every row. */
dk_status dk_client_stats(struct dk_client *client, struct dk_stats *ret_stats);

/* ---- cancelling ------------------------------------------------------------------------------ */

/* A cancellation is asked for by a message of the fixed id "cancel": while one is stored there is
 * no second one, and its reason stays.  So a command that was killed may be run again.  It takes
 * effect in the instance's next turn; an instance that was not started never runs.  Where a runtime
 * takes one between look and sending, the next is stored, told as requested, and of no effect. */
enum {
  DK_CANCEL_REQUESTED = 1,         /* the request is stored now; dry: it would be */
  DK_CANCEL_ALREADY_REQUESTED = 2, /* one is stored and not taken yet; it stays as it is */
  DK_CANCEL_OVER = 3,              /* the instance is over, with this status, and stays so */
  DK_CANCEL_NOT_FOUND = 4,         /* without durakit.admin/1 also what is not started */
  DK_CANCEL_FAILED = 5             /* `error` and `text` say why */
};
struct dk_cancel_outcome {
  uint32_t struct_size;
  int32_t outcome;                 /* DK_CANCEL_... */
  int32_t status;                  /* of the instance, as it was seen */
  dk_status error;                 /* DK_OK but for DK_CANCEL_FAILED */
  dk_str instance, text;
};
typedef int32_t dk_cancel_fn(void *context, const struct dk_cancel_outcome *outcome);

enum { DK_CANCEL_DRY_RUN = 1u };   /* tells what would be done, and sends nothing */
/* Text is UTF-8 without control characters.  What does not fit is DK_INVALID, and never cut. */
struct dk_cancel_options {
  uint32_t struct_size, flags;     /* DK_CANCEL_... */
  const char *reason;              /* at most 1,024 bytes; NULL: none */
  const char *by;                  /* who asks: 1 to 256 bytes; NULL: nobody says */
  uint64_t expect;                 /* so many are DK_CANCEL_REQUESTED, which is counted first: else
                                      DK_INVALID, nothing is sent, and the counts are those found;
                                      0 is zero, UINT64_MAX any number */
};
struct dk_cancel_counts {
  uint32_t struct_size, reserved;
  uint64_t requested, already_requested, over, not_found, failed;
};

/* One; DK_OK, or the outcome's error.  ret_outcome (may be NULL) is written if its outcome is not
 * 0; its text lives until the client's next call.  options NULL: no reason, nobody says, any
 * number. */
dk_status dk_cancel_one(struct dk_client *client, dk_str instance,
                        const struct dk_cancel_options *options,
                        struct dk_cancel_outcome *ret_outcome);
/* Many, in batches of 500, of which several are asked at once.  `each` (may be NULL) is told of
 * every id when its batch is through, in the order of the list; one that stands in it twice is told
 * of once.
 *
 * What can be tried again (DK_BUSY, DK_UNAVAILABLE) is, for about a second.  What fails for one id
 * is its outcome, and the others go on: DK_OK, and `failed` counts.  If the store fails, that is
 * the answer, and what was not tried is DK_CANCEL_FAILED with it.  ret_counts (may be NULL) is
 * written whatever the answer.  If somebody ends it, what is not counted was not tried; more of a
 * batch may be counted than was told of. */
dk_status dk_cancel_many(struct dk_client *client, const dk_str *instances, size_t n,
                         const struct dk_cancel_options *options, dk_cancel_fn *each, void *context,
                         struct dk_cancel_counts *ret_counts);
/* What the filter selects, as dk_client_list has it, and is not over.  Each batch is selected when
 * the one before is through; what is started later may not be among them.  What is not started
 * comes first, so that none is left out that begins meanwhile (it may be told of twice then).
 * Children are cancelled by their parents' end, and by this, if they are selected.  A filter
 * that selects all (none, an empty one, DK_FILTER_ROOTS only) is DK_INVALID: give the statuses if
 * all is meant.  If the store fails, that is the answer, and of what it had not come to nothing is
 * told. */
dk_status dk_cancel_matching(struct dk_client *client, const struct dk_instance_filter *filter,
                             const struct dk_cancel_options *options, dk_cancel_fn *each,
                             void *context, struct dk_cancel_counts *ret_counts);
/* The same with this name only. */
dk_status dk_cancel_by_name(struct dk_client *client, const char *name,
                            const struct dk_cancel_options *options, dk_cancel_fn *each,
                            void *context, struct dk_cancel_counts *ret_counts);

/* ---- removing -------------------------------------------------------------------------------- */

/* What is deleted or pruned is gone, with its history.  `next` of what was removed is absent here.
 *
 * As delete_instances of durakit/admin.h: whole or not at all; DK_REFUSED: one is not over (cancel
 * it, and wait; or DK_DELETE_FORCE), or has a parent that stays.  DK_OUTCOME_UNKNOWN also if they
 * were not found by a repetition: look, whether they are there. */
dk_status dk_client_delete(struct dk_client *client, const dk_str *instances, size_t n,
                           uint32_t flags, struct dk_removed *ret_removed);
/* What the filter selects (an empty one: all) and is over, with all descendants: page by page, up
 * to `max` roots (0: all; fewer may go if the provider is of ABI 2.1 and does not tell how many
 * went).  ret_removed has the sums, and is written whatever the answer: if it fails midway, they
 * tell what is known to be gone, and it may be called again.  DK_OUTCOME_UNKNOWN with a max: the
 * answer to a page was lost; the page is not repeated, for more than `max` roots might go then. */
dk_status dk_client_delete_matching(struct dk_client *client,
                                    const struct dk_instance_filter *filter, uint64_t max,
                                    struct dk_removed *ret_removed);
/* Removes executions that have ended, but for the newest `keep` of the instance (0 is 1);
 * completed_before: only those that ended before, 0: whenever. */
dk_status dk_client_prune(struct dk_client *client, dk_str instance, uint32_t keep,
                          int64_t completed_before, struct dk_removed *ret_removed);
/* The same for what the filter selects (an empty one: all), page by page; at most `max` instances
 * are looked at (0: all).  ret_removed as above. */
dk_status dk_client_prune_matching(struct dk_client *client,
                                   const struct dk_instance_filter *filter, uint32_t keep,
                                   int64_t completed_before, uint64_t max,
                                   struct dk_removed *ret_removed);

#ifdef __cplusplus
}
#endif
#if defined __GNUC__
#pragma GCC visibility pop
#endif
#endif
