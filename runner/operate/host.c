/* SPDX-License-Identifier: Apache-2.0 */
/* Loads the plugin, opens the store, and reports failures: see host.h. */
#include "runner/operate/host.h"

#include <durakit/manage.h>

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runner/cli/message.h"
#include "runner/cli/resolve.h"
#include "runner/cli/settings.h"
#include "runner/cli/suggest.h"
#include "runner/cli/when.h"
#include "runner/operate/patience.h"
#include "runner/operate/signals.h"
#include "runner/operate/targets.h"

enum { SLICE_MS = 1000, PAUSE_MS = 500 };

/* ---- words ----------------------------------------------------------------------------------- */

int
host_refuse(const struct host *host, int code, const char *where, const char *what,
            const char *expected, const char *next)
{
  message_problem(&(struct problem){where, what, expected, NULL, next}, &host->secrets);
  return code;
}

/* Secrets are never printed: values that look like one, and those that the plugin declares so. */
static void
mask_settings(struct host *host)
{
  for (size_t i = 0; i < host->options->n_settings; i++) {
    const struct given *given = &host->options->settings[i];
    secrets_add_passwords(&host->secrets, given->value, strlen(given->value));
  }
}

static void
mask_secrets(struct host *host)
{
  const struct dk_param *params = dk_library_provider(host->library)->params;

  for (const struct dk_param *param = params; param && param->key; param++) {
    const struct given *given = settings_find(host->options, param->key);
    if (given && param->flags & DK_PARAM_SECRET)
      secrets_add(&host->secrets, given->value, strlen(given->value));
  }
}

int
host_code_of(dk_status status)
{
  switch (status) {
  case DK_OK:
    return EXIT_PASSED;
  case DK_CALL_CANCELLED:
    return EXIT_INCOMPLETE;
  case DK_INVALID:
  case DK_TOO_LARGE:
    return EXIT_USAGE;
  case DK_NOT_FOUND:
  case DK_DUPLICATE:
    return EXIT_VIOLATED;
  case DK_UNSUPPORTED:
    return EXIT_PLUGIN;
  default:
    return EXIT_ENVIRONMENT;
  }
}

/* The provider's own words name the cause; these words hold for every failure of this status. */
static const char *
next_of_status(dk_status status)
{
  switch (status) {
  case DK_BUSY:
    return "another client holds a lock that this needs: try again";
  case DK_UNAVAILABLE:
    return "check that the store is reachable and has free space, and try again";
  case DK_NO_MEMORY:
    return "check the free memory, and try again";
  case DK_INVALID:
  case DK_TOO_LARGE:
    return "nothing was done for it; durakit COMMAND --help describes what is valid";
  case DK_OUTCOME_UNKNOWN:
    return "it may have happened or not: check with durakit status; you can repeat it";
  case DK_REFUSED:
    return "check that the store still exists and is writable, and which rights you have on it";
  case DK_CORRUPT:
    return "check whether a newer version has written the store; if not, check the disk, and "
           "restore an intact copy of the store";
  case DK_UNSUPPORTED:
    return "durakit probe PLUGIN shows what the provider offers";
  default:
    return "this is a bug of the provider, or of durakit: report it with these words";
  }
}

/* While the store is opened: the settings might name something else.  `source` has them. */
static void
tell_next_of_open(dk_status status, const char *source, struct dk_text *next)
{
  switch (status) {
  case DK_NOT_FOUND:
    dk_text_printf(next, "check %s; durakit start --create makes a store", source);
    break;
  case DK_INVALID:
    dk_text_printf(next, "check %s; durakit probe PLUGIN lists the settings", source);
    break;
  case DK_UNAVAILABLE:
    dk_text_printf(next, "check %s, and that the store it names is reachable and has free space; "
                         "try again", source);
    break;
  case DK_OUTCOME_UNKNOWN:
    dk_text_puts(next, "the store may have been made or not: try again");
    break;
  case DK_REFUSED:
    dk_text_printf(next, "check that %s names a store of this provider, in a version that it "
                         "knows, and which rights you have on it", source);
    break;
  case DK_CORRUPT:
    dk_text_printf(next, "check that %s names a store of this provider; if so, check the disk, "
                         "and restore an intact copy", source);
    break;
  default:
    dk_text_puts(next, next_of_status(status));
  }
}

static const char *
what_of(dk_status status)
{
  switch (status) {
  case DK_INVALID:
  case DK_TOO_LARGE:
  case DK_UNSUPPORTED:
    return "this cannot be done";
  case DK_OUTCOME_UNKNOWN:
    return "the store did not answer";
  default:
    return "the store reported a failure";
  }
}

/* The call was cancelled: it was not done, unless its outcome is unknown. */
static int
lose_patience(const struct host *host, const char *where, dk_status status, const char *words)
{
  char what[PATIENCE_WORDS], next[160];
  const char *option = patience_words(host->patience, what);

  snprintf(next, sizeof(next),
           "it was not done; check that the store is reachable, and what it waits for; "
           "or give a longer %s", option);
  message_problem(&(struct problem){where ? where : host->options->operating.provider, what, NULL,
                                    words,
                                    dk_status_class(status) == 3 ? next_of_status(status) : next},
                  &host->secrets);
  return EXIT_ENVIRONMENT;
}

int
host_failed_as(const struct host *host, const char *where, const char *what, dk_status status,
               const char *words)
{
  char name[32];

  if (host_interrupted(host)) /* reported once, at the end */
    return EXIT_INCOMPLETE;
  if (patience_is_over(host->patience) && dk_status_class(status) != 2)
    return lose_patience(host, where, status, words);
  dk_status_name(status, name, sizeof(name));
  message_problem(&(struct problem){where ? where : host->options->operating.provider, what, NULL,
                                    words && *words ? words : name, next_of_status(status)},
                  &host->secrets);
  return host_code_of(status);
}

int
host_failed(const struct host *host, const char *where, dk_status status)
{
  return host_failed_as(host, where, what_of(status), status, dk_client_error(host->client));
}

/* Takes the log lines of the plugin, from any thread: each line is written at once. */
static void
log_line(void *context, int32_t level, struct dk_bytes line)
{
  const struct host *host = context;
  struct dk_text text = DK_TEXT_EMPTY;

  if (level >= DK_LEVEL_WARNING) /* shown if the store does not answer */
    patience_heard(host->patience, line);
  if (level < DK_LEVEL_ERROR) /* warnings are for the runtimes, each time they open the store */
    return;
  dk_text_add(&text, line.ptr, line.len);
  message_problem(&(struct problem){.where = host->options->operating.provider,
                                    .what = dk_text_str(&text)},
                  &host->secrets);
  dk_text_done(&text);
}

/* ---- the plugin and its settings ------------------------------------------------------------- */

static int
load(struct host *host)
{
  const char *name = host->options->operating.provider;
  struct dk_text words[3] = {DK_TEXT_EMPTY, DK_TEXT_EMPTY, DK_TEXT_EMPTY};
  struct problem problem;
  struct dk_refusal refusal;
  int code = EXIT_PASSED;

  host->plugin = resolve_plugin(name, &problem, words);
  if (!host->plugin) {
    message_problem(&problem, &host->secrets);
    code = EXIT_PLUGIN;
  } else if (dk_library_open(host->plugin, 0, &host->library, &refusal) != 0) {
    problem = message_problem_of(&refusal);
    message_problem(&problem, &host->secrets);
    code = EXIT_PLUGIN;
  }
  for (size_t i = 0; i < 3; i++)
    dk_text_done(&words[i]);
  return code;
}

static int
refuse_key(const struct host *host, const struct given *given)
{
  const char *key = given->key;
  const struct dk_param *params = dk_library_provider(host->library)->params;
  struct suggest nearest = {.word = key};
  struct dk_text where = DK_TEXT_EMPTY, list = DK_TEXT_EMPTY, next = DK_TEXT_EMPTY;

  if (given->file)
    dk_text_printf(&where, "%s:%u: ", given->file, given->line);
  dk_text_puts(&where, key);
  for (const struct dk_param *param = params; param && param->key; param++) {
    suggest_try(&nearest, param->key);
    dk_text_printf(&list, "%s%s", param == params ? "" : ", ", param->key);
  }
  int code = host_refuse(host, EXIT_USAGE, dk_text_str(&where), "the plugin has no such setting",
                         list.length ? dk_text_str(&list) : "no setting at all",
                         message_did_you_mean(&next, nearest.best,
                                              "durakit probe PLUGIN shows them"));
  dk_text_done(&where);
  dk_text_done(&list);
  dk_text_done(&next);
  return code;
}

static const struct dk_param *
param_of(const struct host *host, const char *key)
{
  const struct dk_param *param = dk_library_provider(host->library)->params;

  while (param && param->key && strcmp(param->key, key) != 0)
    param++;
  return param && param->key ? param : NULL;
}

static int
take_setting(const struct host *host, struct given *given)
{
  const struct dk_param *param = param_of(host, given->key);

  if (!param)
    return refuse_key(host, given);
  return strcmp(param->type, "path") == 0 ? settings_place(given) : EXIT_PASSED;
}

/* A missing setting might be in the file that DURAKIT_SETTINGS names and that is ignored. */
static int
refuse_settings(const struct host *host, const struct dk_refusal *refusal)
{
  const struct environment *environment = &host->options->environment;
  const char *file = getenv("DURAKIT_SETTINGS");
  struct problem problem = message_problem_of(refusal);

  if (file && *file && !environment->settings)
    problem.next = "with --provider the variable DURAKIT_SETTINGS is ignored: add "
                   "--settings \"$DURAKIT_SETTINGS\", or omit --provider";
  message_problem(&problem, &host->secrets);
  return EXIT_USAGE;
}

static int
take_settings_of_host(struct host *host)
{
  struct dk_refusal refusal;

  mask_secrets(host);
  for (size_t i = 0; i < host->options->n_settings; i++) {
    int code = take_setting(host, &host->options->settings[i]);
    if (code != EXIT_PASSED)
      return code;
  }
  host->settings = settings_for_provider(host->options, NULL, &host->n_settings);
  if (!host->settings) {
    message_print("out of memory");
    return EXIT_ENVIRONMENT;
  }
  if (dk_settings_check(host->library, host->settings, host->n_settings, &refusal) == 0)
    return EXIT_PASSED;
  return refuse_settings(host, &refusal);
}

/* ---- the store ------------------------------------------------------------------------------- */

/* The source of the setting that names the store; otherwise of any setting. */
static void
tell_source(const struct host *host, struct dk_text *source)
{
  const struct dk_param *param = dk_library_provider(host->library)->params;

  while (param && param->key && !(param->flags & DK_PARAM_STORE))
    param++;
  const struct given *given = settings_find(host->options, param ? param->key : NULL);
  if (!given && host->options->n_settings > 0)
    given = &host->options->settings[0];
  settings_tell_source(given, source);
}

static int
refuse_open(const struct host *host, dk_status status)
{
  struct dk_text source = DK_TEXT_EMPTY, next = DK_TEXT_EMPTY;
  bool is_missing = status == DK_NOT_FOUND;
  char name[32], found[640];

  if (host_interrupted(host))
    return host_say_interrupted();
  if (patience_is_over(host->patience) && dk_status_class(status) != 2)
    return lose_patience(host, NULL, status, dk_caller_failure(host->caller)->text);
  snprintf(found, sizeof(found), "%s: %.600s", dk_status_name(status, name, sizeof(name)),
           dk_caller_failure(host->caller)->text);
  tell_source(host, &source);
  tell_next_of_open(status, dk_text_str(&source), &next);
  message_problem(
    &(struct problem){
      host->options->operating.provider,
      is_missing ? "there is no such store" : "the store cannot be opened",
      is_missing ? "a store that exists: none was made" : NULL, found,
      dk_text_str(&next)},
    &host->secrets);
  dk_text_done(&source);
  dk_text_done(&next);
  return status == DK_INVALID ? EXIT_USAGE : EXIT_ENVIRONMENT;
}

static int
open_store_of_host(struct host *host, uint32_t flags)
{
  const struct dk_host_options options = {
    .struct_size = sizeof(options), .context = host, .log = log_line};

  host->caller = dk_caller_new(NULL, 0);
  if (!host->caller) {
    message_print("out of memory");
    return EXIT_ENVIRONMENT;
  }
  dk_caller_set_canceller(host->caller, host->canceller);
  patience_opens(host->patience);
  dk_status status;
  do {
    dk_caller_reset(host->caller);
    status = dk_store_open(host->library, &options, host->caller, flags, host->settings,
                           host->n_settings, &host->store);
  } while (host_waits_on(host, status, dk_caller_failure(host->caller)->text));
  patience_opened(host->patience, host->store);
  if (status != DK_OK)
    return refuse_open(host, status);
  host->client = dk_client_new(host->store, host->canceller);
  if (host->client)
    return EXIT_PASSED;
  message_print("out of memory");
  return EXIT_ENVIRONMENT;
}

/* The provider never offers it, or not for this store. */
static int
refuse_admin(const struct host *host, const char *what)
{
  return host_refuse(host, EXIT_PLUGIN, what,
                     host->store ? "the provider does not offer " DK_ADMIN " for this store"
                                 : "the provider does not offer " DK_ADMIN,
                     host->store ? "a store of a newer version of the provider"
                                 : "a provider that lists, counts and removes instances",
                     "these work without it: start, status, wait, history, raise, enqueue, and "
                     "cancel by ids");
}

static bool
declares_admin(const struct host *host)
{
  const char *const *extension = dk_library_provider(host->library)->extensions;

  while (extension && *extension && strcmp(*extension, DK_ADMIN) != 0)
    extension++;
  return extension && *extension;
}

int
host_load(struct host *host, const struct options *options, const char *needs_admin)
{
  *host = (struct host){.options = options, .needs_admin = needs_admin};
  mask_settings(host);
  host->canceller = dk_canceller_new(NULL);
  host->signals = host->canceller ? signals_watch(host->canceller) : NULL;
  if (!host->signals) {
    message_print("signals cannot be watched: %s", strerror(errno));
    return EXIT_ENVIRONMENT;
  }
  host->patience = patience_begin(options->operating.provider, &host->secrets,
                                  options->operating.patience_ms, host->canceller);
  if (!host->patience) {
    message_print("the store cannot be watched: %s", strerror(errno));
    return EXIT_ENVIRONMENT;
  }
  int code = load(host);
  if (code == EXIT_PASSED)
    code = take_settings_of_host(host);
  if (code == EXIT_PASSED && needs_admin && !declares_admin(host))
    code = refuse_admin(host, needs_admin);
  return code == EXIT_PASSED ? targets_check_names(host) : code;
}

int
host_open(struct host *host, uint32_t flags)
{
  int code = open_store_of_host(host, flags);

  if (code == EXIT_PASSED && host->needs_admin && !host_has_admin(host))
    code = refuse_admin(host, host->needs_admin);
  return code;
}

void
host_close(struct host *host)
{
  dk_client_free(host->client);
  if (host->patience)
    patience_opened(host->patience, NULL); /* closing has a limit of its own */
  if (host->store) {
    const char *hangs = dk_store_close(host->store);
    if (hangs)
      message_print("the store cannot be closed: %s does not return", hangs);
  }
  dk_caller_free(host->caller);
  if (host->library)
    dk_library_close(host->library);
  patience_end(host->patience);
  signals_done(host->signals);
  dk_canceller_free(host->canceller);
  free(host->settings);
  free(host->plugin);
  secrets_done(&host->secrets);
}

/* ---- waiting --------------------------------------------------------------------------------- */

void
host_waits_until(struct host *host, int64_t until, const char *option)
{
  host->waits_until = until;
  host->waits = true;
  patience_waits(host->patience, until, option);
}

void
host_waits_no_more(struct host *host)
{
  host->waits = false;
  patience_resumes(host->patience);
}

bool
host_waits_on(const struct host *host, dk_status status, const char *words)
{
  struct pollfd interrupted = {.fd = host_interrupt_fd(host), .events = POLLIN};
  int64_t left = host->waits ? host->waits_until - when_ticks() : 0;

  if (dk_status_class(status) != 1 || left <= 0 || patience_is_over(host->patience))
    return false;
  patience_heard(host->patience, (struct dk_bytes){words, strlen(words)});
  return poll(&interrupted, 1, (int)(left < PAUSE_MS ? left : PAUSE_MS)) == 0;
}

/* In slices, so that an unreachable store is reported. */
dk_status
host_wait(const struct host *host, dk_str id, struct dk_instance_info *ret_info)
{
  for (;;) {
    int64_t left = host->waits_until - when_ticks();
    int64_t slice = left < 0 ? 0 : left < SLICE_MS ? left : SLICE_MS;
    dk_status status = dk_client_wait(host->client, id, slice, ret_info);
    bool is_away = dk_status_class(status) == 1 || dk_status_class(status) == 3;
    if (slice == left || left <= 0 || (status != DK_NOTHING && !is_away) ||
        patience_is_over(host->patience) || host_interrupted(host))
      return status;
    if (is_away)
      patience_heard(host->patience, (struct dk_bytes){dk_client_error(host->client),
                                                       strlen(dk_client_error(host->client))});
  }
}

/* ---- questions about the host ---------------------------------------------------------------- */

bool
host_has_admin(const struct host *host)
{
  return dk_store_extension(host->store, DK_ADMIN) != NULL;
}

bool
host_interrupted(const struct host *host)
{
  return signals_came(host->signals);
}

int
host_say_interrupted(void)
{
  message_print("interrupted: no instance was changed");
  return EXIT_INCOMPLETE;
}

int
host_interrupt_fd(const struct host *host)
{
  return signals_fd(host->signals);
}
