/* SPDX-License-Identifier: Apache-2.0 */
/* A host for tests of the parts below the operations.  It really waits, by the real clock, can
 * cancel a call at its n-th wait, and keeps what was reported to it. */
#ifndef DK_PG_TEST_HOST_H
#define DK_PG_TEST_HOST_H

#include "providers/pg/connection.h"

struct dk_call {
  int cancel_fd;
  int n_waits, n_cancelled;  /* how often it waited, and how often a wait was cancelled */
  int cancel_at;             /* cancelled at this wait, the first is 1; 0: never */
  bool is_late;              /* the wait that is cancelled lets the answer come first */
  uint32_t events;           /* of the last wait */
  struct test_host *host;    /* whose time goes by so much at each wait; NULL: by itself only */
  int64_t passes;
  bool is_blind;             /* what has come is not seen: each wait goes to its end at once */
  struct why why;            /* room for the caller */
  void (*at_wait)(struct dk_call *call); /* before each; NULL: nothing */
  void *context;
};

struct test_host {
  struct dk_host host;       /* first: the others are found by its address */
  int64_t passed;            /* milliseconds that its clock is ahead of the real one */
  char log[400];             /* the last line */
  int32_t level;
};

void test_host_init(struct test_host *host);
void call_init(struct dk_call *call);
void call_done(struct dk_call *call);
void call_cancel(struct dk_call *call);

struct dk_bytes as_bytes(const char *text);
/* Settings of so many pairs of key and value; what is refused ends the test. */
struct settings settings_of(uint32_t flags, const char *const *pairs, size_t n_pairs);
#define SETTINGS(flags, ...)                                                                       \
  settings_of(flags, (const char *const[]){__VA_ARGS__},                                           \
              sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *) / 2)

/* Descriptors of this process. */
int n_descriptors(void);
/* The text has it; says what it has, if not. */
void has_words(const char *text, const char *words, const char *name);

#endif
