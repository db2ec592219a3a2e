/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of a handle that was opened to read [ABI-15]: what only reads is answered as always, and
 * what would have to write is refused and changes nothing. */
#include "conformance/random/random.h"

static bool
only_looks(enum op_kind kind)
{
  return kind == OP_READ_HISTORY || kind == OP_LIST_INSTANCES || kind == OP_LIST_EXECUTIONS ||
         kind == OP_READ_MESSAGES || kind == OP_READ_STATS;
}

/* A call that would be refused anyway, or find nothing, may be answered so. */
static bool
is_refused(struct pass *p, const struct step *step)
{
  enum { REFUSAL = 2 };
  dk_status status = p->theirs->status;
  char got[32];

  p->ours.kind = step->request->kind;
  p->ours.status = DK_REFUSED;
  if (dk_status_class(status) == REFUSAL)
    return true;
  if (status == DK_NOTHING && ask_model_when(p, step) > now(p->t))
    return true;
  return differs(p, "ABI-15", "by a handle that was opened to read", "DK_REFUSED",
                 kit_status_name(status, got, sizeof(got)));
}

bool
play_reader(struct pass *p, const struct step *step)
{
  struct dk_check *t = p->t;

  p->present = NULL;
  close_handle(t, NULL);
  open_handle_to_read(t);
  call_provider(p, step);
  close_handle(t, NULL);
  open_handle(t, NULL);
  if (!only_looks(step->request->kind))
    return is_refused(p, step);
  call_model(p, step);
  return take_replies(p, step);
}
