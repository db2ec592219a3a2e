/* SPDX-License-Identifier: Apache-2.0 */
/* The message while a call takes long: again and again, until the call has ended. */
#include "runner/operate/signals.h"

#include <string.h>
#include <unistd.h>

#include "conformance/tap/tap.h"

/* The next line of standard error, which is the other end of the pipe. */
static void
hears(int fd, const char *expected, const char *name)
{
  char line[80] = "";

  for (size_t n = 0; n + 1 < sizeof(line) && read(fd, &line[n], 1) == 1; n++) {
    if (line[n] == '\n') {
      line[n] = '\0';
      break;
    }
  }
  is(line, expected, "%s", name);
}

int
main(void)
{
  struct dk_canceller *canceller = dk_canceller_new(NULL);
  int ends[2];

  plan(NO_PLAN);
  struct host_signals *signals = canceller ? signals_watch(canceller) : NULL;
  int before = dup(STDERR_FILENO);
  ok(signals && before >= 0 && pipe(ends) == 0 && dup2(ends[1], STDERR_FILENO) >= 0,
     "signals are watched");
  signals_tell(signals, "still at work", 1);
  hears(ends[0], "durakit: still at work", "the message is printed after a while");
  hears(ends[0], "durakit: still at work", "and again");
  signals_tell(signals, "", -1);
  ok(!signals_came(signals), "no signal came");
  signals_done(signals);
  signals_tell(NULL, "no thread", 1);
  dup2(before, STDERR_FILENO);
  dk_canceller_free(canceller);
  return done_testing();
}
