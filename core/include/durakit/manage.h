/* SPDX-License-Identifier: 0BSD */
/* durakit/manage.h - what operators do with instances: inspect, cancel many, delete, prune, count.
 *
 * More functions of a client (durakit/runtime.h).  They need a provider that offers
 * durakit.admin/1; with any other provider all but dk_cancel_one, dk_cancel_many and
 * dk_client_history are DK_UNSUPPORTED, and dk_client_error explains this.
 *
 * Text that you pass is copied, and needs no NUL.  Text that is passed to a callback of yours has
 * one, and is valid during that call.  The callback returns 0 to continue; any other value ends the
 * operation, which then returns DK_CALL_CANCELLED.  A callback may use the client; dk_client_error
 * is then about the last call that was made.
 *
 * Lists are read page by page: each page shows one moment, the whole list does not.  Only one page
 * is kept in memory.
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

/* ---- inspecting ------------------------------------------------------------------------------ */

typedef int32_t dk_instance_fn(void *context, const struct dk_instance_info *info);
/* Lists the instances that the filter selects (NULL: all), sorted by id, from the first id after
 * `after` (absent: from the first), at most `max` (0: all).  The cost per instance does not grow
 * with the store.
 *
 * An instance whose start is stored, but of which no turn was committed, is DK_NOT_STARTED (see
 * struct dk_instance_info).  The filter's name, version, parent and DK_FILTER_ROOTS are compared
 * with its start, which needs one more request to the store for each.  An instance that begins
 * while the list is read may be missing from it.  An id that has messages but no start is not an
 * instance.  Between two executions an instance is DK_RUNNING, here and in `statuses`.
 *
 * with_output: also list the output, the input of an instance that is not started, and
 * cancelled_by; 0: these are absent. */
dk_status dk_client_list(struct dk_client *client, const struct dk_instance_filter *filter,
                         dk_str after, uint64_t max, int32_t with_output, dk_instance_fn *each,
                         void *context);

struct dk_history_entry {
  uint32_t struct_size, reserved;
  uint64_t execution_id, event_id;
  uint64_t source;           /* the event that it refers to: the one that it ends, or that was
                                dropped */
  int64_t time;              /* 0: the event cannot be read */
  const char *kind;          /* "activity_completed": docs/runtime.md lists them; "unreadable" */
  const char *code;          /* "select_loser_timeout"; "" if there is none */
  dk_str name;               /* of the activity, the orchestration, the event, the queue, the key */
  dk_str text;               /* the input, result, error or reason */
  dk_str by;                 /* `by` of the request that cancelled it */
  dk_str other_instance;     /* the child, or the parent */
  dk_str payload;            /* as stored: JSON */
};
typedef int32_t dk_history_fn(void *context, const struct dk_history_entry *entry);
/* Lists the events of one execution (0: the one that is the latest when the call begins), from the
 * id from_event on, at most `max` (0: all).  DK_NOT_FOUND: there is no such execution. */
dk_status dk_client_history(struct dk_client *client, dk_str instance, uint64_t execution_id,
                            uint64_t from_event, uint64_t max, dk_history_fn *each, void *context);

typedef int32_t dk_execution_fn(void *context, const struct dk_execution *execution);
/* Lists the stored executions, from the first, with their outputs.  An instance that is not started
 * has none; DK_NOT_FOUND: nothing is stored for this id. */
dk_status dk_client_executions(struct dk_client *client, dk_str instance, dk_execution_fn *each,
                               void *context);

/* A message that waits until the instance takes it. */
struct dk_waiting {
  uint32_t struct_size, reserved;
  int64_t visible_at, enqueued_at;
  const char *kind;          /* "start", "raised", "cancel", ...: docs/runtime.md; "unreadable" */
  dk_str id;
  dk_str name;               /* of the orchestration, the event, the queue */
  dk_str text;               /* the input, data, result or reason; or why it is unreadable */
  dk_str by;                 /* `by` of a request to cancel */
  dk_str payload;            /* as stored: JSON */
};
typedef int32_t dk_waiting_fn(void *context, const struct dk_waiting *message);
/* Lists the messages in the order of the queue; DK_NOT_FOUND: nothing is stored for this id.  All
 * of them are in memory at once. */
dk_status dk_client_messages(struct dk_client *client, dk_str instance, dk_waiting_fn *each,
                             void *context);

/* Counts of one moment; the store might have to read every row. */
dk_status dk_client_stats(struct dk_client *client, struct dk_stats *ret_stats);

/* ---- cancelling ------------------------------------------------------------------------------ */

/* A cancellation is requested by a message with the fixed id "cancel": while one is stored, a
 * second one is not, and the first reason remains.  So a command that was killed may be run again.
 * The request takes effect in the instance's next turn; an instance that was not started never
 * runs.  If a runtime takes a request after this client has checked and before it sends its own,
 * its own is stored too and counted as requested, but has no effect. */
enum {
  DK_CANCEL_REQUESTED = 1,         /* the request is stored now (in a dry run: it would be) */
  DK_CANCEL_ALREADY_REQUESTED = 2, /* a request is stored and not taken yet; it is unchanged */
  DK_CANCEL_OVER = 3,              /* the instance has ended, with this status; unchanged */
  DK_CANCEL_NOT_FOUND = 4,         /* or, without durakit.admin/1, not started */
  DK_CANCEL_FAILED = 5             /* `error` and `text` say why */
};
struct dk_cancel_outcome {
  uint32_t struct_size;
  int32_t outcome;                 /* DK_CANCEL_... */
  int32_t status;                  /* of the instance, when it was checked */
  dk_status error;                 /* DK_OK unless DK_CANCEL_FAILED */
  dk_str instance, text;
};
typedef int32_t dk_cancel_fn(void *context, const struct dk_cancel_outcome *outcome);

enum { DK_CANCEL_DRY_RUN = 1u };   /* report what would be done, and send nothing */
/* Text is UTF-8 without control characters.  Text that is too long is DK_INVALID, and is never
 * cut. */
struct dk_cancel_options {
  uint32_t struct_size, flags;     /* DK_CANCEL_... */
  const char *reason;              /* at most 1,024 bytes; NULL: none */
  const char *by;                  /* the requester: 1 to 256 bytes; NULL: unknown */
  uint64_t expect;                 /* how many must become DK_CANCEL_REQUESTED.  They are counted
                                      first; if the number differs, DK_INVALID, nothing is sent, and
                                      the counts are those found.  0 means none, UINT64_MAX any
                                      number */
};
struct dk_cancel_counts {
  uint32_t struct_size, reserved;
  uint64_t requested, already_requested, over, not_found, failed;
};

/* Cancels one; returns DK_OK, or the outcome's error.  ret_outcome (may be NULL) is written if
 * there is an outcome; its text is valid until the client's next call.  options NULL: no reason,
 * unknown requester, any number. */
dk_status dk_cancel_one(struct dk_client *client, dk_str instance,
                        const struct dk_cancel_options *options,
                        struct dk_cancel_outcome *ret_outcome);
/* Cancels many, in batches of 500, with several requests at once.  Calls `each` (may be NULL) for
 * every id when its batch is complete, in the order of the list; for an id that occurs twice, once.
 *
 * The client repeats requests that fail with DK_BUSY or DK_UNAVAILABLE for about a second.  An
 * error of one id is that id's outcome, and the others continue: the call returns DK_OK, and
 * `failed` counts them.  If the store fails, the call returns its error, and the ids that were not
 * tried are DK_CANCEL_FAILED with that error.  ret_counts (may be NULL) is always written.  If
 * `each` or the canceller ends the call, ids that are not counted were not tried; the counts may
 * include ids of a batch for which `each` was not called. */
dk_status dk_cancel_many(struct dk_client *client, const dk_str *instances, size_t n,
                         const struct dk_cancel_options *options, dk_cancel_fn *each, void *context,
                         struct dk_cancel_counts *ret_counts);
/* Cancels the instances that the filter selects (as in dk_client_list) and that have not ended.
 * Each batch is selected when the one before is complete; instances that are started later might
 * not be included.  Instances that are not started come first, so that one that begins meanwhile is
 * not missed (`each` may then be called for it twice).  A child is cancelled when its parent ends,
 * and by this call if it is selected.  A filter that selects everything (none, an empty one,
 * DK_FILTER_ROOTS only) is DK_INVALID: if you mean all, list all statuses.  If the store fails, the
 * call returns its error, and `each` is not called for the instances that it had not reached. */
dk_status dk_cancel_matching(struct dk_client *client, const struct dk_instance_filter *filter,
                             const struct dk_cancel_options *options, dk_cancel_fn *each,
                             void *context, struct dk_cancel_counts *ret_counts);
/* The same for all instances with this name. */
dk_status dk_cancel_by_name(struct dk_client *client, const char *name,
                            const struct dk_cancel_options *options, dk_cancel_fn *each,
                            void *context, struct dk_cancel_counts *ret_counts);

/* ---- removing -------------------------------------------------------------------------------- */

/* What is deleted or pruned is removed for good, with its history.  `next` of ret_removed is absent
 * here.
 *
 * As delete_instances of durakit/admin.h: deletes all or nothing.  DK_REFUSED: one has not ended
 * (cancel it and wait, or use DK_DELETE_FORCE), or has a parent that remains.  DK_OUTCOME_UNKNOWN
 * even if a repeated request did not find them: check whether they exist. */
dk_status dk_client_delete(struct dk_client *client, const dk_str *instances, size_t n,
                           uint32_t flags, struct dk_removed *ret_removed);
/* Deletes the instances that the filter selects (an empty one: all) and that have ended, with all
 * descendants: page by page, up to `max` roots (0: all; a provider of ABI 2.1 does not report how
 * many it deleted, so that it might be fewer).  ret_removed has the sums, and is always written: if
 * the call fails midway, they count what is known to be deleted, and you may call it again.
 * DK_OUTCOME_UNKNOWN with a max: the answer to a page was lost; the page is not repeated, because
 * more than `max` roots might then be deleted. */
dk_status dk_client_delete_matching(struct dk_client *client,
                                    const struct dk_instance_filter *filter, uint64_t max,
                                    struct dk_removed *ret_removed);
/* Removes executions that have ended, except the newest `keep` of the instance (0 means 1).
 * completed_before: only those that ended before this time; 0: at any time. */
dk_status dk_client_prune(struct dk_client *client, dk_str instance, uint32_t keep,
                          int64_t completed_before, struct dk_removed *ret_removed);
/* The same for the instances that the filter selects (an empty one: all), page by page; examines at
 * most `max` instances (0: all).  ret_removed as above. */
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
