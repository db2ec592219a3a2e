/* SPDX-License-Identifier: Apache-2.0 */
/* A provider that does what a test tells it, in this very program; for the tests of the host.
 *
 * Each test makes a puppet, writes what it is to do into `act`, and opens a store on it.  Without
 * `act` it behaves well: a fetch brings one small turn, or as many work items as were asked for,
 * and everything else is DK_OK. */
#ifndef DK_PLUGIN_TESTING_PUPPET_H
#define DK_PLUGIN_TESTING_PUPPET_H

#include <stdatomic.h>
#include <stdbool.h>

#include <durakit/host.h>

struct puppet;
typedef dk_status act_fn(struct puppet *puppet, struct dk_call *call);

struct puppet {
  act_fn *act;
  atomic_int acts;               /* operations that reached the provider */
  int n;                         /* for the act's own use */
  void *data;
  const struct dk_host *host;    /* as open was given it */
  _Atomic(const char *) operation; /* the one that runs, or ran last */
  _Atomic int64_t wait_until;    /* of the last fetch */
  struct dk_bytes token;
  bool is_open;
  bool answers_any_extension;
  dk_status open_status;
  atomic_int interrupts;
  void (*on_interrupt)(struct puppet *puppet);

  /* What the host reported. */
  int violations;
  char clause[16], text[512], violated_in[64];
  int logs;
  char line[64];

  struct dk_host_options options;
  struct dk_library *library;
  struct dk_store *store;
  struct dk_caller *caller;
};

/* A descriptor with all that is required, to be changed by a test. */
struct puppet_descriptor {
  struct dk_provider provider;
  struct dk_ops ops;
  struct dk_limits limits;
};
void puppet_describe(struct puppet_descriptor *descriptor);

/* Loads the descriptor (NULL: the usual one) and opens; the status of open. */
dk_status puppet_open(struct puppet *puppet, const struct puppet_descriptor *descriptor);
/* What dk_store_close returns. */
const char *puppet_close(struct puppet *puppet);

/* Good results, piece by piece. */
struct dk_bytes text(const char *string);
struct dk_turn_head a_head(void);
struct dk_message a_message(const char *id);
struct dk_item an_item(const char *instance);       /* a message */
struct dk_item an_activity(uint64_t activity_id);   /* without an instance */
struct dk_work a_work(const struct dk_item *item, const char *token);
/* host->fail; libtap has a word of that name. */
dk_status failing(struct puppet *puppet, struct dk_call *call, dk_status status,
                  struct dk_bytes why);
dk_status give_turn(struct puppet *puppet, struct dk_call *call);

/* Good requests. */
struct dk_fetch_turn a_fetch_turn(void);
struct dk_fetch_work a_fetch_work(uint32_t max_items);
struct dk_turn_result a_result(void);

/* Calls with them. */
dk_status fetch_turn(struct puppet *puppet, struct dk_turn **ret_turn);
dk_status enqueue(struct puppet *puppet);
const char *failure_text(struct puppet *puppet);

#endif
