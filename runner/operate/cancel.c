/* SPDX-License-Identifier: Apache-2.0 */
/* `durakit cancel`: requests the cancellation of instances that ids name or conditions select, and
 * reports the outcome of each. */
#include <errno.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/grow.h"
#include "core/base/utf8.h"
#include "runner/cli/printer.h"
#include "runner/cli/status-words.h"
#include "runner/cli/usage.h"
#include "runner/cli/when.h"
#include "runner/operate/host.h"
#include "runner/operate/operate.h"
#include "runner/operate/show.h"
#include "runner/operate/signals.h"
#include "runner/operate/targets.h"

enum { MOST_REASON = 1024, MOST_BY = 256 };

struct cancelling {
  struct host host;
  struct printer printer;
  struct ids ids;
  char by[MOST_BY + 1];               /* if it was not given */
  struct dk_cancel_options options;
  struct dk_cancel_counts counts;
  uint64_t not_cancelled;             /* have ended otherwise */
  bool store_failed;                  /* a request could not be stored */
  bool is_other_number;               /* not the number of --expect: nothing was done */
  uint64_t found;                     /* then: the number that was found */
  char **waited;                      /* --wait: the requested ones */
  size_t n_waited, room;
  bool no_memory;
  uint64_t ended[DK_CANCELLED + 1];   /* --wait: how many ended with this status */
  uint64_t unfinished;
};

/* ---- who and why ----------------------------------------------------------------------------- */

static int
check_words(const struct options *o, const char *option, const char *value, size_t most)
{
  size_t length = value ? strlen(value) : 0;
  struct dk_text what = DK_TEXT_EMPTY;

  if (length > most)
    dk_text_printf(&what, "has %zu bytes", length);
  else if (!dk_utf8_valid(value, length))
    dk_text_puts(&what, "is not UTF-8");
  for (size_t i = 0, n; i < length && what.length == 0; i += n) {
    uint32_t character = 0;

    n = dk_utf8_next(value + i, length - i, &character);
    if (character < 0x20 || (character >= 0x7f && character < 0xa0))
      dk_text_printf(&what, "has the control character U+%04X", (unsigned)character);
  }
  if (what.length == 0)
    return EXIT_PASSED;
  struct dk_text expected = DK_TEXT_EMPTY;
  dk_text_printf(&expected, "at most %zu bytes of text in one line", most);
  int code = usage(o, option, dk_text_str(&what), dk_text_str(&expected), NULL);
  dk_text_done(&what);
  dk_text_done(&expected);
  return code;
}

/* The reasons that mean "no such user" on some system; any other is a failure. */
static bool
is_no_user(int reason)
{
  return reason == 0 || reason == ENOENT || reason == ESRCH || reason == EBADF || reason == EPERM;
}

/* The name of the user, or the number if the user has no name; 0 or a reason. */
static int
find_login(char *login, size_t size)
{
  char buffer[16384];
  struct passwd entry, *found = NULL;

  errno = 0;
  int reason = getpwuid_r(getuid(), &entry, buffer, sizeof(buffer), &found);
  if (reason == 0 && !found)
    reason = errno == ENOMEM ? ENOMEM : 0; /* a source of names may forget it on its way */
  if (found)
    snprintf(login, size, "%s", found->pw_name);
  else
    snprintf(login, size, "%ju", (uintmax_t)getuid());
  return is_no_user(reason) ? 0 : reason;
}

/* user:LOGIN@HOST.  This name is a claim, and proves nothing. */
static int
name_caller(char by[MOST_BY + 1])
{
  char host[65] = "", login[128];
  int reason = find_login(login, sizeof(login));

  if (reason != 0) {
    message_problem(&(struct problem){"--by", "the name of the user cannot be found", NULL,
                                      strerror(reason), "give the name with --by"}, NULL);
    return EXIT_ENVIRONMENT;
  }
  if (gethostname(host, sizeof(host) - 1) != 0)
    host[0] = '\0';
  snprintf(by, MOST_BY + 1, "user:%s%s%s", login, host[0] ? "@" : "", host);
  return EXIT_PASSED;
}

static int
take_options(struct cancelling *c, const struct options *o)
{
  const struct operating *operating = &o->operating;
  int code = check_words(o, "--reason", operating->reason, MOST_REASON);

  if (code == EXIT_PASSED)
    code = check_words(o, "--by", operating->by, MOST_BY);
  if (code == EXIT_PASSED && !operating->by)
    code = name_caller(c->by);
  c->options = (struct dk_cancel_options){
    .struct_size = sizeof(c->options),
    .flags = operating->dry_run ? DK_CANCEL_DRY_RUN : 0,
    .reason = operating->reason,
    .by = operating->by ? operating->by : c->by,
    .expect = operating->expect,
  };
  return code;
}

/* ---- one outcome ----------------------------------------------------------------------------- */

static const char *
outcome_word(int32_t outcome)
{
  static const char *const words[] = {"unknown", "requested", "already_requested", "over",
                                      "not_found", "failed"};

  return outcome > 0 && outcome <= DK_CANCEL_FAILED ? words[outcome] : words[0];
}

static void
show_outcome(struct dk_text *out, const struct cancelling *c, const struct dk_cancel_outcome *o)
{
  bool dry = c->options.flags & DK_CANCEL_DRY_RUN;

  show_text(out, o->instance);
  dk_text_puts(out, ": ");
  switch (o->outcome) {
  case DK_CANCEL_REQUESTED:
    dk_text_puts(out, dry ? "would be requested" : "requested");
    break;
  case DK_CANCEL_ALREADY_REQUESTED:
    dk_text_puts(out, "already requested");
    break;
  case DK_CANCEL_OVER:
    dk_text_printf(out, "already %s", status_words(o->status));
    break;
  case DK_CANCEL_NOT_FOUND:
    dk_text_puts(out, host_has_admin(&c->host)
                        ? "not found"
                        : "not found, or not started: the provider does not know which");
    break;
  default:
    dk_text_puts(out, "failed: ");
    show_text(out, o->text);
  }
  dk_text_puts(out, "\n");
}

static json_t *
json_of_outcome(const struct dk_cancel_outcome *o)
{
  json_t *object = json_object();
  char name[32];

  show_json_text(object, "instance", o->instance);
  show_json_string(object, "outcome", outcome_word(o->outcome));
  if (o->outcome != DK_CANCEL_NOT_FOUND && o->outcome != DK_CANCEL_FAILED)
    show_json_string(object, "status", status_word(o->status));
  if (o->outcome == DK_CANCEL_FAILED) {
    show_json_string(object, "error", dk_status_name(o->error, name, sizeof(name)));
    show_json_text(object, "text", o->text);
  }
  return object;
}

static void
remember(struct cancelling *c, dk_str id)
{
  char **grown = dk_grown(c->waited, c->n_waited, &c->room, sizeof(*grown));

  c->no_memory = c->no_memory || !grown;
  if (!grown)
    return;
  c->waited = grown;
  char *copy = strndup(id.ptr, id.len); /* an id has no NUL */
  c->no_memory = c->no_memory || !copy;
  if (copy)
    c->waited[c->n_waited++] = copy;
}

/* Neither a signal nor a reader that has closed the output ends it here: requests that were stored
 * are reported.  A signal has cancelled the client, which ends when the batch is reported. */
static int32_t
take_outcome(void *context, const struct dk_cancel_outcome *o)
{
  struct cancelling *c = context;
  struct dk_text line = DK_TEXT_EMPTY;

  show_outcome(&line, c, o);
  printer_text(&c->printer, &line);
  if (!printer_is_text(&c->printer))
    printer_item(&c->printer, json_of_outcome(o));
  if (o->outcome == DK_CANCEL_OVER && o->status != DK_CANCELLED)
    c->not_cancelled++;
  if (o->outcome == DK_CANCEL_FAILED && dk_status_class(o->error) % 2 == 1)
    c->store_failed = true;
  if (c->host.options->operating.wait_ms >= 0
      && (o->outcome == DK_CANCEL_REQUESTED || o->outcome == DK_CANCEL_ALREADY_REQUESTED))
    remember(c, o->instance);
  return 0;
}

/* ---- all ------------------------------------------------------------------------------------- */

/* An instance that has ended needs no cancellation. */
static struct dk_instance_filter
filter_for_cancel(const struct operating *operating)
{
  struct dk_instance_filter filter = targets_filter(&operating->chosen);

  if (filter.statuses == 0)
    filter.statuses = 1u << DK_NOT_STARTED | 1u << DK_RUNNING | 1u << DK_CONTINUED_AS_NEW;
  return filter;
}

/* Asks at the terminal, with the number. */
static int
ask_before_cancelling(struct cancelling *c)
{
  const struct operating *operating = &c->host.options->operating;
  const struct dk_instance_filter filter = filter_for_cancel(operating);
  struct dk_cancel_options dry = c->options;
  struct dk_cancel_counts counts = {.struct_size = sizeof(counts)};

  if (operating->yes || operating->dry_run || operating->expect != UINT64_MAX)
    return EXIT_PASSED;
  dry.flags |= DK_CANCEL_DRY_RUN;
  signals_tell(c->host.signals, "still searching for the selected instances", SIGNALS_A_MINUTE);
  dk_status status = dk_cancel_matching(c->host.client, &filter, &dry, NULL, NULL, &counts);
  signals_tell(c->host.signals, "", -1); /* not in the middle of a question */
  if (host_interrupted(&c->host))
    return host_say_interrupted();
  if (status != DK_OK)
    return host_failed(&c->host, NULL, status);
  if (counts.requested == 0)
    return EXIT_PASSED;
  return targets_confirm(&c->host, "this cancels %" PRIu64 " instance%s. Continue?",
                         counts.requested, counts.requested == 1 ? "" : "s");
}

/* The counts are those of the search: no request was sent. */
static int
refuse_number(struct cancelling *c)
{
  struct dk_text what = DK_TEXT_EMPTY, expected = DK_TEXT_EMPTY;

  c->is_other_number = true;
  c->found = c->counts.requested;
  c->counts = (struct dk_cancel_counts){.struct_size = sizeof(c->counts)};
  dk_text_printf(&what, "%" PRIu64 " would be requested; nothing was done", c->found);
  dk_text_printf(&expected, "%" PRIu64, c->options.expect);
  int code = host_refuse(&c->host, EXIT_VIOLATED, "--expect", dk_text_str(&what),
                         dk_text_str(&expected), "--dry-run lists them");
  dk_text_done(&what);
  dk_text_done(&expected);
  return code;
}

static int
send_cancellations(struct cancelling *c)
{
  const struct operating *operating = &c->host.options->operating;
  dk_status status;

  c->counts = (struct dk_cancel_counts){.struct_size = sizeof(c->counts)};
  if (!isatty(STDOUT_FILENO)) /* a terminal shows each */
    signals_tell(c->host.signals, "still cancelling", SIGNALS_A_MINUTE);
  if (targets_are_many(c->host.options)) {
    const struct dk_instance_filter filter = filter_for_cancel(operating);
    status = dk_cancel_matching(c->host.client, &filter, &c->options, take_outcome, c, &c->counts);
  } else {
    status = dk_cancel_many(c->host.client, c->ids.items, c->ids.n, &c->options, take_outcome, c,
                            &c->counts);
  }
  if (status == DK_INVALID && c->options.expect != UINT64_MAX
      && c->counts.requested != c->options.expect)
    return refuse_number(c);
  if (status != DK_OK)
    return host_failed(&c->host, NULL, status);
  if (c->store_failed)
    return EXIT_ENVIRONMENT;
  return c->counts.failed + c->counts.not_found + c->not_cancelled > 0 ? EXIT_VIOLATED
                                                                       : EXIT_PASSED;
}

/* ---- --wait ---------------------------------------------------------------------------------- */

static void
tell_unfinished(struct cancelling *c, const char *id)
{
  struct dk_text line = DK_TEXT_EMPTY;

  c->unfinished++;
  show_string(&line, id);
  dk_text_puts(&line, ": has not ended in time\n");
  printer_text(&c->printer, &line);
}

/* EXIT_PASSED if all of them are cancelled in time. */
static int
wait_for_all(struct cancelling *c)
{
  printer_flush(&c->printer);
  host_waits_until(&c->host, when_until(c->host.options->operating.wait_ms), "--wait");
  for (size_t i = 0; i < c->n_waited; i++) {
    struct dk_instance_info info = {.struct_size = sizeof(info)};
    dk_status status = host_wait(&c->host, dk_str_of(c->waited[i]), &info);
    if (host_interrupted(&c->host))
      return EXIT_INCOMPLETE;
    if (status == DK_NOTHING)
      tell_unfinished(c, c->waited[i]);
    else if (status != DK_OK)
      return host_failed(&c->host, c->waited[i], status);
    else if (info.status >= 0 && info.status <= DK_CANCELLED)
      c->ended[info.status]++;
  }
  if (c->no_memory) {
    message_print("out of memory: the command has not waited for all of them");
    return EXIT_ENVIRONMENT;
  }
  return c->ended[DK_CANCELLED] == c->n_waited ? EXIT_PASSED : EXIT_VIOLATED;
}

/* ---- the sums -------------------------------------------------------------------------------- */

/* Without any count no instance is selected, unless the command ended before it could know. */
static void
show_counts(struct dk_text *out, const struct cancelling *c, int code)
{
  const struct {
    uint64_t n;
    const char *words;
  } counts[] = {
    {c->counts.requested,
     c->options.flags & DK_CANCEL_DRY_RUN ? "would be requested" : "requested"},
    {c->counts.already_requested, "already requested"},
    {c->counts.over, "already ended"},
    {c->counts.not_found, "not found"},
    {c->counts.failed, "failed"},
    {c->ended[DK_CANCELLED], "cancelled by now"},
    {c->ended[DK_COMPLETED] + c->ended[DK_FAILED], "ended by themselves"},
    {c->unfinished, "not ended in time"},
  };
  bool first = true;

  for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
    if (counts[i].n == 0)
      continue;
    dk_text_printf(out, "%s%" PRIu64 " %s", first ? "" : ", ", counts[i].n, counts[i].words);
    first = false;
  }
  if (!first || code <= EXIT_VIOLATED)
    dk_text_puts(out, first ? "no instance is selected\n" : "\n");
}

static json_t *
json_of_counts(const struct cancelling *c)
{
  json_t *object = json_object();

  show_json_number(object, "requested", c->counts.requested);
  show_json_number(object, "already_requested", c->counts.already_requested);
  show_json_number(object, "over", c->counts.over);
  show_json_number(object, "not_found", c->counts.not_found);
  show_json_number(object, "failed", c->counts.failed);
  return object;
}

static void
print_cancel_sums(struct cancelling *c, int code)
{
  struct dk_text line = DK_TEXT_EMPTY;
  json_t *rest = json_object();

  if (!c->is_other_number)
    show_counts(&line, c, code);
  printer_text(&c->printer, &line);
  show_json_bool(rest, "dry_run", c->host.options->operating.dry_run);
  show_json_string(rest, "reason", c->options.reason);
  show_json_string(rest, "by", c->options.by);
  json_object_set_new(rest, "counts", json_of_counts(c));
  if (c->is_other_number)
    show_json_number(rest, "found", c->found);
  if (c->host.options->operating.wait_ms >= 0) {
    json_t *waited = json_object();
    show_json_number(waited, "cancelled", c->ended[DK_CANCELLED]);
    show_json_number(waited, "completed", c->ended[DK_COMPLETED]);
    show_json_number(waited, "failed", c->ended[DK_FAILED]);
    show_json_number(waited, "not_over", c->unfinished);
    json_object_set_new(rest, "waited", waited);
  }
  show_json_bool(rest, "complete", code <= EXIT_VIOLATED);
  printer_end(&c->printer, rest);
  if (c->counts.not_found > 0)
    targets_ids_hint(&c->host, &c->ids);
  if (code == EXIT_INCOMPLETE && host_interrupted(&c->host))
    message_print("interrupted: what is reported was done; you can repeat the same command");
}

/* ---- the command ----------------------------------------------------------------------------- */

/* With --wait the command waits for an unreachable store from the beginning. */
static int
open_store_to_cancel(struct cancelling *c, const struct options *options)
{
  if (options->operating.wait_ms >= 0)
    host_waits_until(&c->host, when_until(options->operating.wait_ms), "--wait");
  int code = host_open(&c->host, options->operating.dry_run ? DK_OPEN_READ_ONLY : 0);
  host_waits_no_more(&c->host);
  return code;
}

static int
begin_cancelling(struct cancelling *c, const struct options *options)
{
  bool many = targets_are_many(options);
  int code = take_options(c, options);

  c->host = (struct host){.options = options};
  if (code == EXIT_PASSED && many)
    code = targets_check_may_ask(options);
  if (code == EXIT_PASSED)
    code = host_load(&c->host, options, many ? "cancel by conditions" : NULL);
  if (code == EXIT_PASSED && !many)
    code = targets_ids_take(&c->host, &c->ids);
  if (code == EXIT_PASSED)
    code = open_store_to_cancel(c, options);
  return code == EXIT_PASSED && many ? ask_before_cancelling(c) : code;
}

int
operate_cancel(const struct options *options)
{
  struct cancelling c = {.printer = printer_of(options, "durakit.cancel/1", "instances")};
  int code = begin_cancelling(&c, options);

  if (code == EXIT_PASSED) {
    code = send_cancellations(&c);
    if (code <= EXIT_VIOLATED && options->operating.wait_ms >= 0) {
      int waited = wait_for_all(&c);
      code = waited > code ? waited : code;
    }
    print_cancel_sums(&c, code);
  }
  host_close(&c.host);
  targets_ids_done(&c.ids);
  for (size_t i = 0; i < c.n_waited; i++)
    free(c.waited[i]);
  free(c.waited);
  return printer_done(&c.printer, code);
}
