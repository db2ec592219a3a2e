/* SPDX-License-Identifier: Apache-2.0 */
/* The part of the process's state that has to do with signals: handlers, the mask, the alternate
 * stack, and the timers that send them. */
#include "conformance/kit/state.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>

enum { SIGNALS = 64, ROOM = 512 };

/* ---- handlers -------------------------------------------------------------------------------- */

static void
add_words(char *text, size_t size, const char *separator, const char *words)
{
  size_t used = strlen(text);

  snprintf(text + used, size - used, "%s%s", used > 0 ? separator : "", words);
}

static void
add_numbers(char *text, size_t size, const sigset_t *set, int but)
{
  char number[16];

  for (int i = 1; i <= SIGNALS; i++) {
    if (i == but || sigismember(set, i) != 1)
      continue;
    snprintf(number, sizeof(number), "%d", i);
    add_words(text, size, " ", number);
  }
}

/* When signal() restores SIG_DFL or SIG_IGN, it sets SA_RESTART and adds the signal to the mask.
 * Neither has an effect there, so neither counts.  SA_RESTORER is the C library's. */
static void
add_flags(char *text, size_t size, int signal, const struct sigaction *action, bool is_function)
{
  static const struct {
    int flag;
    const char *name;
  } known[] = {{SA_NOCLDSTOP, "SA_NOCLDSTOP"}, {SA_NOCLDWAIT, "SA_NOCLDWAIT"},
               {SA_SIGINFO, "SA_SIGINFO"},     {SA_ONSTACK, "SA_ONSTACK"},
               {SA_RESTART, "SA_RESTART"},     {SA_NODEFER, "SA_NODEFER"},
               {(int)SA_RESETHAND, "SA_RESETHAND"}};
  char mask[ROOM] = "";

  for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
    if ((action->sa_flags & known[i].flag) != 0 && (is_function || known[i].flag != SA_RESTART))
      add_words(text, size, " ", known[i].name);
  }
  add_numbers(mask, sizeof(mask), &action->sa_mask, is_function ? 0 : signal);
  if (mask[0] != '\0') {
    add_words(text, size, " and ", "the mask ");
    add_words(text, size, "", mask);
  }
}

/* "SIG_DFL", "a function of libx.so (0x7f...) with SA_RESTART" */
static void
say_action(char *text, size_t size, int signal, const struct sigaction *action)
{
  void *function = (void *)(uintptr_t)action->sa_handler;
  bool is_function = action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN;
  char flags[ROOM] = "";
  Dl_info info;

  if (!is_function)
    snprintf(text, size, "%s", action->sa_handler == SIG_DFL ? "SIG_DFL" : "SIG_IGN");
  else if (dladdr(function, &info) != 0 && info.dli_fname != NULL)
    snprintf(text, size, "a function of %.200s (%p)", info.dli_fname, function);
  else
    snprintf(text, size, "a function that is not mapped (%p)", function);
  add_flags(flags, sizeof(flags), signal, action, is_function);
  if (flags[0] != '\0') {
    add_words(text, size, " ", "with ");
    add_words(text, size, "", flags);
  }
}

void
state_take_handlers(struct kit_state *state)
{
  struct sigaction action;
  char key[96], text[2 * ROOM];

  for (int i = 1; i <= SIGNALS; i++) {
    if (sigaction(i, NULL, &action) != 0)
      continue;
    say_action(text, sizeof(text), i, &action);
    snprintf(key, sizeof(key), "the handler of signal %d (%s)", i, strsignal(i));
    state_add(state, key, "%s", text);
  }
}

/* A handler that runs on the alternate stack harms no thread whose own stack is small. */
bool
state_handler_is_of_runtime(const struct state_entry *was, const struct state_entry *is)
{
  return was != NULL && strstr(is->value, "SA_ONSTACK") != NULL;
}

/* ---- the mask -------------------------------------------------------------------------------- */

static void
take_set(struct kit_state *state, const char *key, const sigset_t *set)
{
  char text[ROOM] = "";

  add_numbers(text, sizeof(text), set, 0);
  state_add(state, key, "%s", text[0] == '\0' ? "empty" : text);
}

void
state_take_mask(struct kit_state *state)
{
  sigset_t set;

  pthread_sigmask(SIG_SETMASK, NULL, &set);
  take_set(state, "the signal mask", &set);
  if (sigpending(&set) == 0)
    take_set(state, "the set of pending signals", &set);
}

void
state_take_signal_stack(struct kit_state *state)
{
  const char *key = "the alternate signal stack";
  stack_t stack;

  if (sigaltstack(NULL, &stack) != 0 || (stack.ss_flags & SS_DISABLE) != 0)
    state_add(state, key, "none");
  else
    state_add(state, key, "%zu bytes at %p", stack.ss_size, stack.ss_sp);
}

bool
state_stack_is_of_runtime(const struct state_entry *was, const struct state_entry *is)
{
  (void)is;
  return was != NULL;
}

/* ---- timers ---------------------------------------------------------------------------------- */

void
state_take_alarms(struct kit_state *state)
{
  static const struct {
    __itimer_which_t which;
    const char *key;
  } alarms[] = {{ITIMER_REAL, "the timer ITIMER_REAL (alarm, setitimer)"},
                {ITIMER_VIRTUAL, "the timer ITIMER_VIRTUAL (setitimer)"},
                {ITIMER_PROF, "the timer ITIMER_PROF (setitimer)"}};
  struct itimerval timer;

  for (size_t i = 0; i < sizeof(alarms) / sizeof(alarms[0]); i++) {
    if (getitimer(alarms[i].which, &timer) != 0)
      continue;
    state_add(state, alarms[i].key, "%s", timer.it_value.tv_sec == 0 && timer.it_value.tv_usec == 0
                                            ? "not armed" : "armed");
  }
}

/* "ID: 3\nsignal: 14/0x...\nnotify: ...", for each of them. */
void
state_take_timers(struct kit_state *state)
{
  enum { MOST = 8192 };
  const char *line = state_file(state, "/proc/self/timers", MOST);
  char key[48];
  int id;

  for (; line != NULL; line = strchr(line, '\n')) {
    line += *line == '\n' ? 1 : 0;
    if (sscanf(line, "ID: %d", &id) != 1)
      continue;
    snprintf(key, sizeof(key), "the timer %d", id);
    state_add(state, key, "timer_create");
  }
}
