/* SPDX-License-Identifier: Apache-2.0 */
/* One function that runs an operation on a store: for the check itself, for threads and for
 * processes alike.  Owns nothing; the reply's results lie in the caller's memory. */
#include "conformance/kit/kit.h"
#include "conformance/kit/vary.h"

#include <stdio.h>
#include <time.h>

const char *
kit_op_name(enum op_kind kind)
{
  switch (kind) {
  case OP_NONE: return "nothing";
  case OP_QUIT: return "quit";
  case OP_OPEN: return "open";
  case OP_CLOSE: return "close";
  case OP_ENQUEUE: return "enqueue_for_orchestrator";
  case OP_ENQUEUE_WORK: return "enqueue_for_worker";
  case OP_FETCH_TURN: return "fetch_orchestration_item";
  case OP_ACK_TURN: return "ack_orchestration_item";
  case OP_ABANDON_TURN: return "abandon_orchestration_item";
  case OP_RENEW_TURN: return "renew_orchestration_item_lock";
  case OP_FETCH_WORK: return "fetch_work_item";
  case OP_ACK_WORK: return "ack_work_item";
  case OP_ABANDON_WORK: return "abandon_work_item";
  case OP_RENEW_WORK: return "renew_work_item_lock";
  case OP_RELEASE_FETCH: return "release_fetch";
  case OP_READ_HISTORY: return "read_history";
  case OP_LIST_INSTANCES: return "list_instances";
  case OP_LIST_EXECUTIONS: return "list_executions";
  case OP_READ_MESSAGES: return "read_messages";
  case OP_READ_STATS: return "read_stats";
  case OP_DELETE_INSTANCES: return "delete_instances";
  case OP_DELETE_MATCHING: return "delete_matching";
  case OP_PRUNE: return "prune_executions";
  case OP_RAW: return "a call of its own";
  }
  return "an unknown operation";
}

int64_t
kit_real_ns(void)
{
  struct timespec time;

  clock_gettime(CLOCK_MONOTONIC, &time);
  return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static dk_status
turn_operation(struct op *op, struct dk_store *s, struct dk_caller *c)
{
  switch (op->kind) {
  case OP_FETCH_TURN:
    return dk_store_fetch_orchestration_item(s, c, &op->fetch_turn, &op->turn);
  case OP_ACK_TURN:
    return dk_store_ack_orchestration_item(s, c, op->token, op->result, &op->outcome);
  case OP_ABANDON_TURN:
    return dk_store_abandon_orchestration_item(s, c, op->token, op->ms, op->ignore_attempt);
  case OP_RENEW_TURN:
    return dk_store_renew_orchestration_item_lock(s, c, op->token, op->ms);
  default:
    return DK_INTERNAL;
  }
}

static dk_status
operation(struct op *op, struct dk_store *s, struct dk_caller *c)
{
  if (kit_is_admin(op->kind))
    return kit_admin_operation(op, s, c);
  switch (op->kind) {
  case OP_ENQUEUE:
    return dk_store_enqueue_for_orchestrator(s, c, &op->item);
  case OP_ENQUEUE_WORK:
    return dk_store_enqueue_for_worker(s, c, &op->item);
  case OP_FETCH_WORK:
    return dk_store_fetch_work_item(s, c, &op->fetch_work, &op->works);
  case OP_ACK_WORK:
    return dk_store_ack_work_item(s, c, op->token, &op->work_result);
  case OP_ABANDON_WORK:
    return dk_store_abandon_work_item(s, c, op->token, op->ms, op->ignore_attempt);
  case OP_RENEW_WORK:
    return dk_store_renew_work_item_lock(s, c, op->token, op->ms);
  case OP_RELEASE_FETCH:
    return dk_store_release_fetch(s, c, op->fetch_id);
  case OP_READ_HISTORY:
    return dk_store_read_history(s, c, &op->read_history, &op->history);
  default:
    return turn_operation(op, s, c);
  }
}

void
kit_op_run(struct op *op, struct dk_store *store, struct dk_caller *caller)
{
  if (op->began_ns == 0) /* else it is in a race, which has set it */
    op->began_ns = kit_real_ns();
  if (op->unchecked)
    dk_caller_set_unchecked(caller, 1);
  if (op->variation != NULL)
    kit_vary(op, store, caller, operation);
  else
    op->status = operation(op, store, caller);
  if (op->unchecked)
    dk_caller_set_unchecked(caller, 0);
  op->ended_ns = kit_real_ns();

  const struct dk_failure *failure = dk_caller_failure(caller);
  op->text[0] = '\0';
  op->by_host = 0;
  op->duplicate = (struct named_item){.list = 0};
  if (op->status != DK_OK && failure != NULL && failure->status == op->status) {
    op->by_host = failure->by_host;
    op->duplicate = (struct named_item){failure->list, failure->index};
    snprintf(op->text, sizeof(op->text), "%s", failure->text);
  }
}
