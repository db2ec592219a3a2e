/* SPDX-License-Identifier: Apache-2.0 */
/* A command that operates a store is a host like any program that uses it: the plugin is loaded
 * into the process of the command.  (The kit never loads a plugin that it judges into its process.)
 *
 * SIGINT, SIGTERM and SIGHUP, if they are not ignored, cancel the running call of the store, and
 * the command ends as soon as it has reported what it has done; the second one ends it at once.
 */
#ifndef DK_RUNNER_OPERATE_HOST_H
#define DK_RUNNER_OPERATE_HOST_H

#include <durakit/runtime.h>

#include <stdbool.h>

#include "runner/cli/options.h"
#include "runner/cli/secrets.h"

struct host_signals;
struct patience;

struct host {
  const struct options *options;
  struct secrets secrets;
  char *plugin;                  /* absolute */
  struct dk_library *library;
  struct dk_setting *settings;
  size_t n_settings;
  struct dk_canceller *canceller;
  struct dk_caller *caller;
  struct dk_store *store;
  struct dk_client *client;
  struct host_signals *signals;  /* NULL: they end the process */
  struct patience *patience;     /* with a store that does not answer */
  const char *needs_admin;       /* what needs durakit.admin/1; NULL: nothing */
  bool waits;                    /* until this tick, even for an unreachable store */
  int64_t waits_until;
};

/* Loads the plugin, takes its settings, and checks that names are valid for it.  What `needs_admin`
 * names (NULL: nothing) is refused if there is no durakit.admin/1.  EXIT_PASSED, or another code
 * after a message; host_close must follow in any case. */
int host_load(struct host *host, const struct options *options, const char *needs_admin);
/* Then opens the store and makes a client; flags: DK_OPEN_...  The same codes.  Files are read
 * between the two: if one is wrong, no store is opened, and none is made. */
int host_open(struct host *host, uint32_t flags);
void host_close(struct host *host);

bool host_has_admin(const struct host *host);

bool host_interrupted(const struct host *host);
/* Reports that the command was interrupted before it changed anything; EXIT_INCOMPLETE. */
int host_say_interrupted(void);
/* Readable when it was interrupted; -1: signals are not watched. */
int host_interrupt_fd(const struct host *host);

/* From now on, after host_load, the command waits for an unreachable store until this tick
 * (when_ticks; INT64_MAX: without end), the limit of the option; then --patience counts again. */
void host_waits_until(struct host *host, int64_t until, const char *option);
void host_waits_no_more(struct host *host);
/* After this answer of the store, with its words: true, after a pause, if the command waits for the
 * store and must ask it again. */
bool host_waits_on(const struct host *host, dk_status status, const char *words);
/* As dk_client_wait, until that tick. */
dk_status host_wait(const struct host *host, dk_str id, struct dk_instance_info *ret_info);

/* A call of the client has failed: reports it for `where` (an id, or NULL: the provider), and
 * returns the exit code for that status. */
int host_failed(const struct host *host, const char *where, dk_status status);
/* The same with other words: `what` has failed, and the provider's words for it. */
int host_failed_as(const struct host *host, const char *where, const char *what, dk_status status,
                   const char *words);
int host_refuse(const struct host *host, int code, const char *where, const char *what,
                const char *expected, const char *next);
int host_code_of(dk_status status);

#endif
