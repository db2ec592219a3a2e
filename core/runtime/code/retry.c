/* SPDX-License-Identifier: Apache-2.0 */
/* An activity that is tried until it succeeds, built from the public calls.  See runtime.h. */
#include "core/runtime/code/orch.h"

enum { USUAL_FACTOR = 200 };

static struct dk_retry
read_retry(struct dk_orch *o, const struct dk_retry *given)
{
  struct dk_retry retry = {.struct_size = 0};

  if (!given)
    orch_wrong(o, "its struct dk_retry is NULL");
  if (given->struct_size < 2 * sizeof(uint32_t) || given->struct_size > sizeof(retry))
    orch_wrong(o, "struct_size of its struct dk_retry is %u, expected 8 to %zu: set it to sizeof, "
                  "and use the runtime.h of this library", given->struct_size, sizeof(retry));
  memcpy(&retry, given, given->struct_size);
  if (retry.attempts == 0)
    orch_wrong(o, "attempts is 0; give 1 or more");
  if (retry.timeout_ms < 0 || retry.first_delay_ms < 0 || retry.max_delay_ms < 0)
    orch_wrong(o, "a time in its struct dk_retry is negative; give 0 or more");
  return retry;
}

/* The next delay: `factor_percent` of this one, without overflow. */
static int64_t
longer(int64_t delay, const struct dk_retry *retry)
{
  int64_t factor = retry->factor_percent == 0 ? USUAL_FACTOR : retry->factor_percent;
  int64_t product;

  return __builtin_mul_overflow(delay, factor, &product) ? INT64_MAX : product / 100;
}

static int64_t
capped(int64_t delay, const struct dk_retry *retry)
{
  return retry->max_delay_ms > 0 && delay > retry->max_delay_ms ? retry->max_delay_ms : delay;
}

/* One attempt; DK_DROPPED: it took too long. */
static int32_t
retry_attempt(dk_orch *o, const char *name, dk_str input, const struct dk_activity_options *options,
              int64_t timeout_ms, dk_str *ret_value)
{
  dk_future *activity = dk_activity_with(o, name, input, options);

  if (timeout_ms > 0) {
    dk_future *limit = dk_timer(o, timeout_ms);
    if (dk_select(o, activity, limit) == limit)
      return DK_DROPPED;
  }
  return dk_outcome(o, activity, ret_value);
}

static bool
is_the_end(const struct dk_retry *retry, uint32_t attempts, int32_t outcome)
{
  return outcome == DK_SUCCEEDED || attempts == retry->attempts ||
         (outcome == DK_DROPPED && !retry->retry_timeouts);
}

int32_t
dk_activity_retried(dk_orch *given, const char *name, dk_str input,
                    const struct dk_activity_options *options, const struct dk_retry *retry,
                    dk_str *ret_value)
{
  struct dk_orch *o = orch_begin(given, "dk_activity_retried");
  dk_str value = dk_str_of("");
  int32_t outcome;

  if (!o)
    return DK_PENDING;
  struct dk_retry how = read_retry(o, retry);
  int64_t delay = capped(how.first_delay_ms, &how);
  uint32_t attempts = 1;
  while (outcome = retry_attempt(o, name, input, options, how.timeout_ms, &value),
         !is_the_end(&how, attempts, outcome)) {
    if (delay > 0)
      dk_await(o, dk_timer(o, delay));
    delay = capped(longer(delay, &how), &how);
    attempts++;
  }
  if (outcome == DK_DROPPED)
    value = dk_format(o, "activity %s took longer than %lld ms (attempt %u of %u)", name,
                      (long long)how.timeout_ms, attempts, how.attempts);
  if (ret_value)
    *ret_value = value;
  return outcome == DK_SUCCEEDED ? DK_SUCCEEDED : DK_FAULTED;
}
