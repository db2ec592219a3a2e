/* SPDX-License-Identifier: Apache-2.0 */
/* What the checks of all areas share: the table, and words that are too special for the kit.
 *
 * The table is areas.def of the contract: a new check is one function in a file of its area and one
 * entry there.
 * Every function is declared here, from that table, so that neither can be forgotten.
 */
#ifndef DK_CONFORMANCE_CHECKS_H
#define DK_CONFORMANCE_CHECKS_H

#include "conformance/kit/check.h"

#define CHECK(area, function, name, clauses, needs, flags, processes, says)                        \
  void area##_##function(struct dk_check *t);
#include "conformance/contract/areas.def"

enum { LEASE_MS = 30000 }; /* what a fetch asks for when the check does not say */

/* ---- taking all, and picking by identity ----------------------------------------------------- */

enum { MOST_TAKEN = 64 };

/* Everything that is ready now, fetched one by one until nothing comes; all of it stays locked. */
struct taken_turns {
  struct dk_turn *turns[MOST_TAKEN];
  size_t n;
};
struct taken_work {
  struct dk_work_item *items[MOST_TAKEN];
  size_t n;
};
struct taken_turns take_turns(struct dk_check *t);
struct taken_work take_work(struct dk_check *t);

/* The one of this identity, or NULL. */
struct dk_turn *turn_of(const struct taken_turns *taken, const char *instance);
struct dk_work_item *item_of(const struct taken_work *taken, const char *instance,
                             uint64_t execution_id, uint64_t activity_id);

/* The only turn, or work item, that is ready now: this one, and nothing else. */
struct dk_turn *the_turn_of(struct dk_check *t, const char *instance);
struct dk_work_item *the_item_of(struct dk_check *t, const char *instance, uint64_t activity_id);

/* ---- many ------------------------------------------------------------------------------------ */

enum {
  BATCH = 50,          /* what one fetch asks for */
  MOST_IN_COMMIT = 500 /* what one commit schedules, if the limits allow it */
};

/* Schedules n activities like this one for "inst", with ids from its own on, in as many turns as it
 * takes. */
void schedule_many(struct dk_check *t, struct dk_item like, uint64_t n);

/* ---- expectations that several areas need ---------------------------------------------------- */

/* Every operation answers this token with DK_LOCK_LOST: for twin regions too, all are refused. */
void expect_dead_turn(struct dk_check *t, struct dk_bytes token);
void expect_dead_work(struct dk_check *t, struct dk_bytes token);

/* The messages of a turn, by id and in this order; NULL ends the list. */
void expect_messages(struct dk_check *t, const struct dk_turn *turn, const char *const *ids);
#define expect_ids(t, turn, ...)                                                                   \
  expect_messages(t, turn, (const char *const[]){__VA_ARGS__, NULL})

/* Expects DK_OK in the end: another actor's call runs beside this one, which may answer "try
 * again". */
#define insist(t, call)                                                                            \
  do {                                                                                             \
    dk_status answer_ = (call);                                                                    \
    for (int tries_ = 0; tries_ < MOST_RETRIES && is_retryable(answer_); tries_++)                 \
      answer_ = (call);                                                                            \
    kit_expect_status(t, answer_, DK_OK, #call, __FILE__, __LINE__);                               \
  } while (0)

/* ---- stores ---------------------------------------------------------------------------------- */

/* DK_OPEN_HOST_CLOCK, if the provider can use the host's clock. */
uint32_t clock_flag(struct dk_check *t);
/* After destroy_store, of the check's own store (NULL) or another one: it is not found, and no file
 * of it is left. */
void expect_no_store(struct dk_check *t, const char *store_suffix);

/* ---- shortages ------------------------------------------------------------------------------- */

/* Under Valgrind a round takes fifty times as long, and with a server, too, it takes long: so that
 * some of the places where something can fail are enough. */
bool takes_long(struct dk_check *t);
/* Which request for memory fails after the one with this number, 0 first.  They are many, and the
 * first ones matter most. */
uint32_t further_request(struct dk_check *t, uint32_t n);

/* ---- races ----------------------------------------------------------------------------------- */

/* An actor whose calls may overlap with those of others: a thread where the provider's handle takes
 * several calls at once, else another handle. */
struct actor *racer(struct dk_check *t);
/* The answer that counts: while the answer is "try again", the call has to be made again. */
bool is_retryable(dk_status status);
enum { MOST_RETRIES = 1000, ENOUGH_OVERLAPS = 30 };

#endif
