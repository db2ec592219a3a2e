/* SPDX-License-Identifier: Apache-2.0 */
/* Valgrind's XML: whose a finding is, what of it counts, and a file that is cut. */
#include <stdlib.h>
#include <string.h>

#include "conformance/kit/engine.h"
#include "conformance/tap/tap.h"
#include "runner/findings.h"

#define FRAME(object, function) \
  "<frame><ip>0x" function "</ip><obj>" object "</obj><fn>" function "</fn>" \
  "<dir>d</dir><file>f.c</file><line>7</line></frame>"
#define ERROR(kind, words, frames) \
  "<error><unique>0x1</unique><tid>1</tid><kind>" kind "</kind>" words "<stack>" frames \
  "</stack></error>"
#define LEAK(kind, frames) \
  ERROR(kind, "<xwhat><text>8 bytes in 1 blocks are lost in loss record 1 of 2</text>" \
              "<leakedbytes>8</leakedbytes><leakedblocks>1</leakedblocks></xwhat>", frames)
#define SAID(words) \
  "<clientmsg><tid>1</tid><text>" KIT_MEMORY_SAID words "\n</text></clientmsg>"
#define LIBC FRAME("/lib/libc.so.6", "malloc")
#define OURS FRAME("/p.so", "mine")
#define KITS FRAME("/bin/kit", "run")

static const char head[] = "<?xml version=\"1.0\"?><valgrindoutput><pid>1</pid>";
static const char tail[] = "</valgrindoutput>";

/* Parses head and body, with the tail or without; judged for /p.so. */
static void
read_it(struct findings *findings, const char *body, bool whole, bool cycles)
{
  struct dk_text text = DK_TEXT_EMPTY;

  *findings = (struct findings){.n = 0};
  dk_text_printf(&text, "%s%s%s", head, body, whole ? tail : "<error><kind>Inv");
  bool well = findings_parse(findings, dk_text_str(&text), text.length, true);
  ok(well, "it is XML as far as it goes");
  findings_judge(findings, "/p.so", "/bin/kit", cycles);
  dk_text_done(&text);
}

static void
release(struct findings *findings)
{
  struct findings *copy = calloc(1, sizeof(*copy));

  if (!copy)
    BAIL_OUT("out of memory");
  *copy = *findings;
  findings_free(copy);
}

static void
errors(void)
{
  struct findings f;
  struct dk_text text = DK_TEXT_EMPTY;

  read_it(&f, ERROR("InvalidWrite", "<what>Invalid write of size 1</what>", LIBC KITS OURS)
                SAID(KIT_MEMORY_JUDGED), true, false);
  ok(f.whole && f.judged, "the whole file, with the last word");
  const struct finding *first = findings_first(&f, OWNER_PROVIDER);
  ok(first != NULL, "an error with a frame of the plugin is the provider's");
  is(first ? finding_clause(first) : "", "MEM-2", "its clause");
  if (first)
    frame_text(&text, finding_frame(first, "/p.so"));
  is(dk_text_str(&text), "mine (f.c:7)", "and its place");
  dk_text_done(&text);
  release(&f);

  read_it(&f, ERROR("UninitValue", "<what>Use of uninitialised value of size 8</what>", KITS), true,
          false);
  first = findings_first(&f, OWNER_KIT);
  is(first ? finding_clause(first) : "", "MEM-1", "one with frames of the kit only is the kit's");
  release(&f);

  read_it(&f, ERROR("InvalidRead", "<what>Invalid read</what>", LIBC), true, false);
  ok(findings_first(&f, OWNER_UNKNOWN) != NULL, "one without either is nobody's, and counts");
  release(&f);
}

static void
leaks(void)
{
  struct findings f;

  read_it(&f, LEAK("Leak_DefinitelyLost", LIBC OURS KITS) SAID(KIT_MEMORY_JUDGED), true, false);
  const struct finding *first = findings_first(&f, OWNER_PROVIDER);
  is(first ? first->what : "", "8 bytes in 1 blocks are lost", "a leak, without its record");
  release(&f);

  read_it(&f, LEAK("Leak_DefinitelyLost", LIBC KITS OURS) SAID(KIT_MEMORY_JUDGED), true, false);
  ok(findings_first(&f, OWNER_PROVIDER) == NULL && findings_first(&f, OWNER_KIT) != NULL,
     "a block that the kit allocates in an upcall is the kit's");
  release(&f);

  read_it(&f, LEAK("Leak_StillReachable", LIBC OURS) SAID(KIT_MEMORY_JUDGED), true, false);
  ok(!findings_any(&f), "what can still be reached does not count");
  release(&f);

  read_it(&f, SAID(KIT_MEMORY_JUDGED) LEAK("Leak_DefinitelyLost", LIBC OURS), true, false);
  ok(!findings_any(&f), "nor what is lost after the last word");
  release(&f);

  read_it(&f, LEAK("Leak_DefinitelyLost", LIBC OURS), true, false);
  ok(!findings_any(&f), "nor any leak of a check that did not come to its end");
  release(&f);
}

#define CYCLE(n, what) what SAID(KIT_MEMORY_CYCLE n)

static void
cycles(void)
{
  static const char leak[] =
    CYCLE("1", LEAK("Leak_StillReachable", LIBC OURS))
    CYCLE("2", LEAK("Leak_StillReachable", LIBC OURS))
    CYCLE("3", LEAK("Leak_StillReachable", LIBC OURS))
    CYCLE("4", LEAK("Leak_StillReachable", LIBC OURS))
    CYCLE("5", LEAK("Leak_StillReachable", LIBC OURS)) SAID(KIT_MEMORY_JUDGED);
  static const char cache[] =
    CYCLE("1", LEAK("Leak_StillReachable", LIBC OURS)) CYCLE("2", "") CYCLE("3", "")
    SAID(KIT_MEMORY_JUDGED);
  struct findings f;

  read_it(&f, leak, true, true);
  const struct finding *first = findings_first(&f, OWNER_PROVIDER);
  cmp_ok(first ? first->cycles : 0, "==", KIT_MEMORY_CYCLES, "what every cycle adds to, grows");
  release(&f);
  read_it(&f, cache, true, true);
  ok(!findings_any(&f), "what is made once does not");
  release(&f);
}

static void
cut(void)
{
  struct findings f;

  read_it(&f, "<fatal_signal><tid>1</tid><signo>15</signo><signame>SIGTERM</signame>"
              "<event>sent</event><stack>" OURS "</stack></fatal_signal>"
              "<suppcounts><pair><count>3</count><name>libc: x</name></pair></suppcounts>",
          false, false);
  ok(!f.whole && !f.judged, "a file that is cut is not whole");
  is(f.stopped, "SIGTERM: sent", "but tells what ended it");
  is(f.stopped_at.n == 1 ? f.stopped_at.frames[0].function : "", "mine", "and where");
  is(f.n_suppressed == 1 ? f.suppressed[0].name : "", "libc: x", "and what was suppressed");
  ok(findings_any(&f), "which is something to tell");
  release(&f);

  f = (struct findings){.n = 0};
  ok(!findings_parse(&f, "<a></b>", 7, true), "what is no XML is refused");
  release(&f);
}

int
main(void)
{
  plan(NO_PLAN);
  errors();
  leaks();
  cycles();
  cut();
  return done_testing();
}
