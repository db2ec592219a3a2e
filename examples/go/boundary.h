/* SPDX-License-Identifier: 0BSD */
/* What Go and C say to each other: see boundary.c. */
#ifndef BOUNDARY_H
#define BOUNDARY_H

#include <durakit/provider.h>
#include <stdint.h>

/* A handle, in C's memory, to which C may keep a pointer. */
struct store {
  struct dk_host table;       /* that minimal.c sees; first, so that `now` finds the rest */
  const struct dk_host *host; /* the pointer, never a copy of the table */
  void *inner;                /* the handle of minimal.c */
  uintptr_t go_;              /* a cgo.Handle of what Go keeps for it */
};

/* What minimal.c sees as its struct dk_call. */
struct crossing {
  struct store *store;
  struct dk_call *call;       /* the host's own */
};

enum { ENQUEUE_FOR_ORCHESTRATOR, FETCH_ORCHESTRATION_ITEM, ACK_ORCHESTRATION_ITEM,
       ABANDON_ORCHESTRATION_ITEM, RENEW_ORCHESTRATION_ITEM_LOCK, FETCH_WORK_ITEM, ACK_WORK_ITEM,
       ABANDON_WORK_ITEM, RENEW_WORK_ITEM_LOCK, READ_HISTORY, ENQUEUE_FOR_WORKER };

/* Any operation, with the arguments that it has. */
struct operation {
  int32_t number, ignore_attempt;
  struct dk_bytes token;
  int64_t ms;
  const void *request;
};

enum { UP_FAIL, UP_TURN, UP_EVENT, UP_MESSAGE, UP_WORK, UP_STOLEN, UP_CANCELLED_ROWS, UP_EXECUTION,
       UP_DUPLICATE };

/* Any upcall. */
struct upcall {
  int32_t number;
  dk_status status;           /* of fail */
  struct dk_bytes why;
  int32_t list;               /* of duplicate */
  uint64_t index;
  const void *what;
};

/* From C to Go. */
dk_status goOpen(struct crossing *crossing, struct dk_open *open);
void goClose(struct store *store);
dk_status goOperation(struct crossing *crossing, struct operation *operation);
dk_status goUpcall(struct crossing *crossing, struct upcall *upcall);

/* From Go to C. */
dk_status inner_open(struct crossing *crossing, const struct dk_open *open);
void inner_close(struct store *store);
dk_status inner_operation(struct crossing *crossing, const struct operation *operation);
dk_status host_upcall(struct crossing *crossing, const struct upcall *upcall);
dk_status host_fail(struct crossing *crossing, dk_status status, char *why, size_t length);
void host_log(struct store *store, char *line, size_t length);

#endif
