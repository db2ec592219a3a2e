/* SPDX-License-Identifier: Apache-2.0 */
/* Puts messages together and writes each with one call: those of two processes do not mix. */
#include "runner/cli/message.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "runner/cli/wrap.h"

static void
add_line(struct dk_text *out, const char *label, const char *text, const struct secrets *secrets)
{
  struct dk_text masked = DK_TEXT_EMPTY;

  if (!text || !*text)
    return;
  secrets_mask(secrets, &masked, text, strlen(text));
  dk_text_puts(out, label);
  dk_text_add_escaped(out, dk_text_str(&masked), masked.length, DK_ESCAPE_VISIBLE);
  if (dk_text_failed(&masked))
    dk_text_fail(out);
  dk_text_done(&masked);
}

/* One call of write, if the system can do that.  If memory runs out, the message says that it is
 * incomplete. */
static void
put_message(struct dk_text *text)
{
  struct dk_text lines = DK_TEXT_EMPTY;

  wrap_text(&lines, dk_text_str(text), text->length, wrap_width(STDERR_FILENO));
  fputs(dk_text_str(dk_text_failed(&lines) ? text : &lines), stderr);
  if (dk_text_failed(text))
    fputs(" (out of memory: this message is incomplete)\n", stderr);
  fflush(stderr);
  dk_text_done(&lines);
  dk_text_done(text);
}

void
message_problem_text(struct dk_text *out, const struct problem *problem,
                     const struct secrets *secrets)
{
  bool has_where = problem->where && *problem->where;

  if (has_where)
    add_line(out, "", problem->where, secrets);
  add_line(out, has_where ? ": " : "", problem->what, secrets);
  add_line(out, "\n  expected  ", problem->expected, secrets);
  add_line(out, "\n  found     ", problem->found, secrets);
  add_line(out, "\n  next      ", problem->next, secrets);
}

void
message_problem(const struct problem *problem, const struct secrets *secrets)
{
  struct dk_text text = DK_TEXT_EMPTY;

  dk_text_puts(&text, "durakit: ");
  message_problem_text(&text, problem, secrets);
  dk_text_puts(&text, "\n");
  put_message(&text);
}

void
message_print(const char *format, ...)
{
  struct dk_text text = DK_TEXT_EMPTY;
  va_list args;

  dk_text_puts(&text, "durakit: ");
  va_start(args, format);
  dk_text_vprintf(&text, format, args);
  va_end(args);
  dk_text_puts(&text, "\n");
  put_message(&text);
}

struct problem
message_problem_of(const struct dk_refusal *refusal)
{
  return (struct problem){.where = refusal->where,
                          .what = refusal->what,
                          .expected = refusal->expected,
                          .found = refusal->found,
                          .next = refusal->next};
}

const char *
message_did_you_mean(struct dk_text *buffer, const char *best, const char *otherwise)
{
  if (!best)
    return otherwise;
  dk_text_reset(buffer);
  dk_text_printf(buffer, "did you mean %s?", best);
  return dk_text_str(buffer);
}
