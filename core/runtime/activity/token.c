/* SPDX-License-Identifier: Apache-2.0 */
/* The token: see token.h.
 *
 * Locking: `lock` guards the making of the descriptor and the wait for `is_set`; nothing that waits
 * is called under it.  The cause is atomic, so that a body may read it in its innermost loop.
 */
#include "core/runtime/activity/token.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "core/plugin/look.h"
#include "core/runtime/shared/ticks.h"

struct dk_token {
  atomic_uint references;
  _Atomic int32_t cause;
  struct dk_lock lock;
  pthread_cond_t is_set;
  int fd; /* an eventfd, made when it is first requested; -1: not yet */
};

dk_token *
token_new(void)
{
  dk_token *token = calloc(1, sizeof(*token));

  if (!token)
    return NULL;
  atomic_init(&token->references, 1);
  atomic_init(&token->cause, DK_CAUSE_NONE);
  dk_lock_init(&token->lock);
  ticks_cond_init(&token->is_set);
  token->fd = -1;
  return token;
}

dk_token *
token_clone(dk_token *token)
{
  atomic_fetch_add(&token->references, 1);
  return token;
}

void
dk_token_free(dk_token *token)
{
  if (!token || atomic_fetch_sub(&token->references, 1) > 1)
    return;
  if (token->fd >= 0)
    close(token->fd);
  pthread_cond_destroy(&token->is_set);
  dk_lock_done(&token->lock);
  free(token);
}

bool
token_set(dk_token *token, int32_t cause)
{
  int32_t none = DK_CAUSE_NONE;

  dk_lock(&token->lock);
  bool is_first = atomic_compare_exchange_strong(&token->cause, &none, cause);
  if (is_first && token->fd >= 0)
    dk_ring(token->fd);
  pthread_cond_broadcast(&token->is_set);
  dk_unlock(&token->lock);
  return is_first;
}

int32_t
dk_token_cancelled(const dk_token *token)
{
  return atomic_load(&token->cause);
}

/* The public calls take a const token, but must be able to lock it. */
static dk_token *
own(const dk_token *token)
{
  return (dk_token *)(uintptr_t)token;
}

int32_t
dk_token_fd(const dk_token *looked_at)
{
  dk_token *token = own(looked_at);

  dk_lock(&token->lock);
  if (token->fd < 0) {
    token->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (token->fd >= 0 && atomic_load(&token->cause) != DK_CAUSE_NONE)
      dk_ring(token->fd);
  }
  int fd = token->fd;
  dk_unlock(&token->lock);
  return fd;
}

int32_t
dk_token_sleep(const dk_token *looked_at, int64_t ms)
{
  dk_token *token = own(looked_at);
  int64_t until = ticks_after(ticks_now(), ms > 0 ? ms : 0);

  dk_lock(&token->lock);
  while (atomic_load(&token->cause) == DK_CAUSE_NONE && ticks_now() < until)
    ticks_cond_wait(&token->is_set, &token->lock, until);
  int32_t cause = atomic_load(&token->cause);
  dk_unlock(&token->lock);
  return cause;
}
