/* SPDX-License-Identifier: Apache-2.0 */
/* Serialises calls for the lower thread models, and waits for a provider that must not wait
 * itself. */
#ifndef DK_PLUGIN_SERIALISE_H
#define DK_PLUGIN_SERIALISE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* Lets one call through at a time. */
struct dk_turnstile {
  int fd; /* readable while it is free */
};

bool dk_turnstile_init(struct dk_turnstile *turnstile);
void dk_turnstile_done(struct dk_turnstile *turnstile);
/* Enters if it is free.  NULL is always free. */
bool dk_turnstile_try(struct dk_turnstile *turnstile);
/* Waits for at most `limit_ms` of real time (-1: no limit); false: it was not free.  NULL is always
 * free. */
bool dk_turnstile_enter(struct dk_turnstile *turnstile, int64_t limit_ms);
void dk_turnstile_leave(struct dk_turnstile *turnstile);

/* One bell for each fetch that waits; all of them are rung when something may have become
 * fetchable. */
struct dk_bell {
  struct dk_bell *next;
  int fd;
};
struct dk_bells {
  pthread_mutex_t lock;
  struct dk_bell *first;
};

bool dk_bells_init(struct dk_bells *bells);
void dk_bells_done(struct dk_bells *bells);
/* false: descriptors have run out. */
bool dk_bells_add(struct dk_bells *bells, struct dk_bell *bell);
void dk_bells_remove(struct dk_bells *bells, struct dk_bell *bell);
void dk_bell_quiet(struct dk_bell *bell);
void dk_bells_ring(struct dk_bells *bells);

#endif
