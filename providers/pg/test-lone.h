/* SPDX-License-Identifier: Apache-2.0 */
/* One connection to one server whose answers a test defines. */
#ifndef DK_PG_TEST_LONE_H
#define DK_PG_TEST_LONE_H

#include "providers/pg/test-fake.h"
#include "providers/pg/test-host.h"

/* In a host of its own. */
struct lone {
  struct test_host host;
  struct dk_call call;
  struct settings settings;
  struct connection c;
  struct fake *fake;
  struct why why;
};

/* The server serves so. */
void lone_begin(struct lone *s, uint32_t flags, fake_serve_fn *serve, void *context);
void lone_end(struct lone *s);
/* Opens it, and expects the status and, if that is not DK_OK, the words. */
void expect_open(struct lone *s, dk_status expected, const char *words, const char *name);

/* A server that never answers. */
void serve_silence(int fd, void *context);

#endif
