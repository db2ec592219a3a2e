/* SPDX-License-Identifier: Apache-2.0 */
/* The operations in the order that is easiest to write, and the clauses that each must keep. */
#include "runner/commands/next-operation.h"

#include <stdio.h>
#include <string.h>

#include "runner/report/out.h"

struct step {
  const char *operation;
  const char *clauses;
};

/* The order and the clauses of struct dk_ops in durakit/provider.h. */
static const struct step steps[] = {
  {"enqueue_for_orchestrator", "QUEUE-1, QUEUE-2, QUEUE-4 to QUEUE-7, QUEUE-9, TIME-3, TIME-5"},
  {"fetch_orchestration_item", "TURN-1 to TURN-5, TURN-10 to TURN-13, TOKEN-1, "
                               "TIME-1 to TIME-4, QUEUE-2, QUEUE-3, QUEUE-8, "
                               "POISON-1 to POISON-3, PIN-1 to PIN-5, CALL-1 to CALL-7"},
  {"ack_orchestration_item", "ACK-1 to ACK-15, CANCEL-1 to CANCEL-6, CANCEL-10, CANCEL-11, "
                             "HIST-1, HIST-4, EXEC-1 to EXEC-5, TURN-6, PIN-6"},
  {"abandon_orchestration_item", "TURN-7, TURN-8, POISON-4"},
  {"renew_orchestration_item_lock", "TURN-9, TOKEN-4"},
  {"fetch_work_item", "WORK-1 to WORK-3, WORK-5, WORK-8, WORK-12, CANCEL-9, TAG-1 to TAG-4, "
                      "POISON-5, TOKEN-1"},
  {"ack_work_item", "WORK-4, WORK-10, WORK-11, CANCEL-5, CANCEL-7, CANCEL-8, TOKEN-2 to TOKEN-8"},
  {"abandon_work_item", "WORK-7, POISON-5, CANCEL-5"},
  {"renew_work_item_lock", "WORK-6, CANCEL-5, CANCEL-9, TOKEN-5"},
  {"read_history", "HIST-1 to HIST-5, EXEC-3"},
};
enum { N_STEPS = sizeof(steps) / sizeof(steps[0]) };

static bool
is_missing(const struct run *run, const char *operation)
{
  for (uint32_t i = 0; i < run->probe->n_missing; i++) {
    if (strcmp(run->probe->missing[i], operation) == 0)
      return true;
  }
  return false;
}

void
next_operation_judge(const struct run *run, struct result *result)
{
  const char *operation = result->outcome->report->operation;

  if (result->verdict != VERDICT_FAIL || !is_missing(run, operation))
    return;
  result->verdict = VERDICT_SKIP;
  snprintf(result->reason, sizeof(result->reason), "%s is not written yet", operation);
}

void
next_operation_print(const struct run *run)
{
  struct dk_text text = DK_TEXT_EMPTY;
  size_t written = 0;
  const struct step *next = NULL;

  for (size_t i = 0; i < N_STEPS; i++) {
    bool missing = is_missing(run, steps[i].operation);
    written += missing ? 0 : 1;
    next = missing && !next ? &steps[i] : next;
  }
  dk_text_printf(&text, "%zu of %d required operations are written", written, (int)N_STEPS);
  if (next)
    dk_text_printf(&text, "; next: %s [%s]", next->operation, next->clauses);
  else
    dk_text_puts(&text, "; next: durakit certify");
  out_comment_text(run->out, &text);
  dk_text_done(&text);
}
