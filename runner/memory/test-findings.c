/* SPDX-License-Identifier: Apache-2.0 */
/* Valgrind's XML: the owner of a finding, which findings count, which an author's suppression
 * hides, and a file that is cut off. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/kit/engine.h"
#include "conformance/tap/tap.h"
#include "runner/memory/findings.h"
#include "runner/memory/suppressions.h"

#define FRAME_IN(folder, object, function) \
  "<frame><ip>0x" function "</ip><obj>" object "</obj><fn>" function "</fn>" \
  "<dir>" folder "</dir><file>f.c</file><line>7</line></frame>"
#define FRAME(object, function) FRAME_IN("d", object, function)
#define ERROR(kind, words, frames) \
  "<error><unique>0x1</unique><tid>1</tid><kind>" kind "</kind>" words "<stack>" frames \
  "</stack></error>"
#define LEAK(kind, frames) \
  ERROR(kind, "<xwhat><text>8 bytes in 1 blocks are lost in loss record 1 of 2</text>" \
              "<leakedbytes>8</leakedbytes><leakedblocks>1</leakedblocks></xwhat>", frames)
#define SAID(words) \
  "<clientmsg><tid>1</tid><text>" KIT_MEMORY_SAID words "\n</text></clientmsg>"
/* The seals of the child whose file is read; that of a cycle ends in its number. */
#define SEAL_MEMORY "00000000000000a0"
#define SEAL_CYCLE(n) "00000000000000b" n
#define JUDGED SAID(SEAL_MEMORY " " KIT_MEMORY_JUDGED)
#define LIBC FRAME("/lib/libc.so.6", "malloc")
#define OURS FRAME("/p.so", "mine")
#define KITS FRAME("/bin/kit", "run")
#define STANDARD FRAME_IN("/rustc/5980/library/alloc/src", "/p.so", "std")
#define THIRD FRAME("/lib/libthird.so.1", "third")

static const char head[] = "<?xml version=\"1.0\"?><valgrindoutput><pid>1</pid>";
static const char tail[] = "</valgrindoutput>";

/* Parses head and body, with the tail or without; judged for /p.so, under these suppressions. */
static void
read_under(struct findings *findings, const struct suppressions *authors, const char *body,
           bool whole, bool cycles)
{
  struct dk_text text = DK_TEXT_EMPTY;

  *findings = (struct findings){.parties = {"/p.so", "/bin/kit", authors}};
  findings->seals.numbers[KIT_SEAL_MEMORY] = 0xa0;
  for (uint64_t i = 0; i <= KIT_MEMORY_CYCLES; i++)
    findings->seals.numbers[KIT_SEAL_CYCLE + i] = 0xb1 + i;
  dk_text_printf(&text, "%s%s%s", head, body, whole ? tail : "<error><kind>Inv");
  bool well = findings_parse(findings, dk_text_str(&text), text.length, true);
  ok(well, "it is XML, perhaps cut off");
  findings_judge(findings, cycles);
  dk_text_done(&text);
}

static void
read_it(struct findings *findings, const char *body, bool whole, bool cycles)
{
  read_under(findings, NULL, body, whole, cycles);
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
                JUDGED, true, false);
  ok(f.whole && f.judged, "the whole file, with the last word");
  const struct finding *first = findings_first(&f, OWNER_PROVIDER);
  ok(first != NULL, "an error with a frame of the plugin is the provider's");
  is(first ? finding_clause(first) : "", "MEM-2", "its clause");
  if (first)
    finding_frame_text(&text, finding_frame(first, "/p.so"));
  is(dk_text_str(&text), "mine (f.c:7)", "and its place");
  dk_text_done(&text);
  release(&f);

  read_it(&f, ERROR("UninitValue", "<what>Use of uninitialised value of size 8</what>", KITS), true,
          false);
  first = findings_first(&f, OWNER_KIT);
  is(first ? finding_clause(first) : "", "MEM-1", "one with frames of the kit only is the kit's");
  release(&f);

  read_it(&f, ERROR("InvalidRead", "<what>Invalid read</what>", LIBC), true, false);
  ok(findings_first(&f, OWNER_UNKNOWN) != NULL, "one without either has no owner, and counts");
  release(&f);
}

static void
leaks(void)
{
  struct findings f;

  read_it(&f, LEAK("Leak_DefinitelyLost", LIBC OURS KITS) JUDGED, true, false);
  const struct finding *first = findings_first(&f, OWNER_PROVIDER);
  is(first ? first->what : "", "8 bytes in 1 blocks are lost", "a leak, without its record");
  release(&f);

  read_it(&f, LEAK("Leak_DefinitelyLost", LIBC KITS OURS) JUDGED, true, false);
  ok(findings_first(&f, OWNER_PROVIDER) == NULL && findings_first(&f, OWNER_KIT) != NULL,
     "a block that the kit allocates in an upcall is the kit's");
  release(&f);

  read_it(&f, LEAK("Leak_StillReachable", LIBC OURS) JUDGED, true, false);
  ok(!findings_any(&f), "a block that can still be reached does not count");
  release(&f);

  read_it(&f, JUDGED LEAK("Leak_DefinitelyLost", LIBC OURS), true, false);
  ok(!findings_any(&f), "nor one that is lost after the last word");
  release(&f);

  read_it(&f, JUDGED LEAK("Leak_DefinitelyLost", LIBC OURS) JUDGED, true, false);
  ok(findings_first(&f, OWNER_PROVIDER) != NULL, "but between two last words it counts");
  release(&f);

  read_it(&f, LEAK("Leak_DefinitelyLost", LIBC OURS), true, false);
  ok(!findings_any(&f), "nor any leak of a check that did not reach its end");
  release(&f);
}

/* What is held by a pointer into its middle. */
static void
possible_leaks(void)
{
  static const char once[] = LEAK("Leak_PossiblyLost", LIBC OURS) JUDGED;
  struct findings f;

  read_it(&f, once, true, false);
  ok(!findings_any(&f), "a block that is possibly lost can be reached, and does not count");
  f.unloads = true;
  findings_judge(&f, false);
  ok(findings_first(&f, OWNER_PROVIDER) != NULL, "but it counts when the plugin was unloaded");
  release(&f);
}

/* The author's place, in a plugin that has a language's library linked in. */
static void
places(void)
{
  static const char *const folders[] = {
    "/rustc/5980/library/std/src", "library/core/src", "/r/lib/rustlib/src/rust/library/std/src",
    "/a/.cargo/registry/src/x-1.0/src", "/a/.cargo/git/checkouts/x/src", "/usr/include/c++/12"};
  static const char *const own[] = {"/a/library/src", "/a/rustc/src", "src"};
  struct findings f;
  struct dk_text body = DK_TEXT_EMPTY;
  struct dk_text text = DK_TEXT_EMPTY;

  for (size_t i = 0; i < 6 + 3; i++) {
    const char *folder = i < 6 ? folders[i] : own[i - 6];
    dk_text_reset(&body);
    dk_text_printf(&body, LEAK("Leak_DefinitelyLost", FRAME_IN("%s", "/p.so", "std") OURS) JUDGED,
                   folder);
    read_it(&f, dk_text_str(&body), true, false);
    const struct finding *first = findings_first(&f, OWNER_PROVIDER);
    is(first ? finding_frame(first, "/p.so")->function : "", i < 6 ? "mine" : "std",
       "%s is %s a library", folder, i < 6 ? "that of" : "not that of");
    release(&f);
  }
  read_it(&f, LEAK("Leak_DefinitelyLost", LIBC STANDARD FRAME("/p.so", "runtime.mallocgc") STANDARD
                   STANDARD OURS KITS) JUDGED, true, false);
  finding_text(&text, &f.items[0], 2);
  is(dk_text_str(&text), "8 bytes in 1 blocks are lost: malloc (f.c:7) < std (f.c:7) < ... "
     "< mine (f.c:7) < ...", "the author's first frame is shown, however far down it is");
  dk_text_reset(&text);
  finding_text(&text, &f.items[0], 5);
  is(dk_text_str(&text), "8 bytes in 1 blocks are lost: malloc (f.c:7) < std (f.c:7) < "
     "runtime.mallocgc (f.c:7) < std (f.c:7) < std (f.c:7) < mine (f.c:7) < ...",
     "without a gap if there is none");
  release(&f);
  dk_text_reset(&text);
  read_it(&f, LEAK("Leak_DefinitelyLost", STANDARD STANDARD KITS) JUDGED, true, false);
  finding_text(&text, &f.items[0], 1);
  is(dk_text_str(&text), "8 bytes in 1 blocks are lost: std (f.c:7) < ...",
     "if the author has no frame, none is added");
  release(&f);
  dk_text_done(&text);
  dk_text_done(&body);
}

static void
names(void)
{
  static const struct {
    const char *name, *shown;
  } rows[] = {
    {"push", "push (f.c:7)"},
    {"push<u8, Global>", "push<u8, Global> (f.c:7)"},
    {"<Thread>::new", "<Thread>::new (f.c:7)"},
    {"a<core::mem::maybe_uninit::MaybeUninit<Inner>, fn(*mut u8) -> *mut u8>::b<T>",
     "a<...>::b<T> (f.c:7)"},
    {"cut<core::mem::maybe_uninit", "cut<...> (f.c:7)"},
    {"operator<<", "operator<< (f.c:7)"},
  };

  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    struct frame frame = {.file = "f.c", .line = 7};
    struct dk_text text = DK_TEXT_EMPTY;

    snprintf(frame.function, sizeof(frame.function), "%s", rows[i].name);
    finding_frame_text(&text, &frame);
    is(dk_text_str(&text), rows[i].shown, "long type parameters are left out");
    dk_text_done(&text);
  }
}

#define CYCLE(n, what) what SAID(SEAL_CYCLE(n) " " KIT_MEMORY_CYCLE n)

static void
cycles(void)
{
  static const char leak[] =
    CYCLE("1", LEAK("Leak_StillReachable", LIBC OURS))
    CYCLE("2", LEAK("Leak_StillReachable", LIBC OURS))
    CYCLE("3", LEAK("Leak_StillReachable", LIBC OURS))
    CYCLE("4", LEAK("Leak_StillReachable", LIBC OURS))
    CYCLE("5", LEAK("Leak_StillReachable", LIBC OURS)) JUDGED;
  static const char cache[] =
    CYCLE("1", LEAK("Leak_StillReachable", LIBC OURS)) CYCLE("2", "") CYCLE("3", "")
    JUDGED;
  static const char by_middle[] =
    CYCLE("1", "") CYCLE("2", LEAK("Leak_PossiblyLost", LIBC OURS))
    CYCLE("3", LEAK("Leak_PossiblyLost", LIBC OURS))
    CYCLE("4", LEAK("Leak_PossiblyLost", LIBC OURS)) CYCLE("5", "") JUDGED;
  static const char middle[] =
    CYCLE("1", LEAK("Leak_PossiblyLost", LIBC OURS)) CYCLE("2", "") JUDGED;
  struct findings f;

  read_it(&f, by_middle, true, true);
  ok(findings_first(&f, OWNER_PROVIDER) != NULL, "what is possibly lost and grows, counts");
  release(&f);
  read_it(&f, middle, true, true);
  f.unloads = true;
  findings_judge(&f, true);
  ok(!findings_any(&f), "what is possibly lost once, in a cycle, does not");
  release(&f);
  read_it(&f, leak, true, true);
  const struct finding *first = findings_first(&f, OWNER_PROVIDER);
  cmp_ok(first ? first->cycles : 0, "==", KIT_MEMORY_CYCLES, "a leak of every cycle grows");
  release(&f);
  read_it(&f, cache, true, true);
  ok(!findings_any(&f), "one that is made once does not");
  release(&f);
}

/* Lines that the plugin itself prints do not count: they have no seal, or that of another word. */
static void
forged(void)
{
  static const char *const words[] = {
    SAID(KIT_MEMORY_JUDGED),
    SAID("0000000000000000 " KIT_MEMORY_JUDGED),
    SAID("a0 " KIT_MEMORY_JUDGED),
    SAID(SEAL_CYCLE("1") " " KIT_MEMORY_JUDGED),
    SAID("-0000000000000a0 " KIT_MEMORY_JUDGED)};
  static const char grown[] =
    CYCLE("1", LEAK("Leak_StillReachable", LIBC OURS)) SAID(KIT_MEMORY_CYCLE "0")
    CYCLE("2", LEAK("Leak_StillReachable", LIBC OURS)) SAID(SEAL_CYCLE("2") " cycle 1")
    CYCLE("3", LEAK("Leak_StillReachable", LIBC OURS)) SAID("0000000000000000 cycle 0")
    CYCLE("4", LEAK("Leak_StillReachable", LIBC OURS)) SAID(SEAL_CYCLE("4") " cycle -1")
    CYCLE("5", LEAK("Leak_StillReachable", LIBC OURS)) JUDGED;
  struct findings f;

  for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
    struct dk_text body = DK_TEXT_EMPTY;

    dk_text_printf(&body, "%s%s", words[i], LEAK("Leak_DefinitelyLost", LIBC OURS));
    read_it(&f, dk_text_str(&body), true, false);
    ok(!f.judged, "word %zu is not the kit's last word", i);
    release(&f);
    dk_text_puts(&body, JUDGED);
    read_it(&f, dk_text_str(&body), true, false);
    ok(f.judged && findings_first(&f, OWNER_PROVIDER), "and hides no leak between the two");
    release(&f);
    dk_text_done(&body);
  }
  read_it(&f, grown, true, true);
  const struct finding *first = findings_first(&f, OWNER_PROVIDER);
  cmp_ok(first ? first->cycles : 0, "==", KIT_MEMORY_CYCLES, "nor do other words count as cycles");
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
  ok(!f.whole && !f.judged, "a file that is cut off is incomplete");
  is(f.stopped, "SIGTERM: sent", "but says what ended it");
  is(f.stopped_at.n == 1 ? f.stopped_at.frames[0].function : "", "mine", "and where");
  is(f.n_suppressed == 1 ? f.suppressed[0].name : "", "libc: x", "and what was suppressed");
  ok(findings_any(&f), "which is reported");
  release(&f);

  f = (struct findings){.n = 0};
  ok(!findings_parse(&f, "<a></b>", 7, true), "a text that is not XML is refused");
  release(&f);
}

/* ---- suppressions ---------------------------------------------------------------------------- */

#define READ(frames) ERROR("InvalidRead", "<what>Invalid read of size 2</what>", frames)
#define WRITES \
  ERROR("SyscallParam", "<what>Syscall param write(buf) points to uninitialised byte(s)</what>", \
        THIRD)
#define LOST(frames) LEAK("Leak_DefinitelyLost", frames) JUDGED
#define ENTRY(of_kind, ...) \
  ((struct suppression){.name = "entry", .kind = of_kind, .leaks = ~0u, .frames = {__VA_ARGS__}})

/* The result of one entry and one finding. */
struct came {
  size_t findings;           /* that remain */
  unsigned used, provider, nobody;
};

static struct came
apply(struct suppression entry, const char *body)
{
  struct suppressions authors = {&entry, 1};
  struct findings f;
  struct came came = {.findings = 0};

  while (entry.n_frames < SUPPRESSION_FRAMES && entry.frames[entry.n_frames])
    entry.n_frames++;
  read_under(&f, &authors, body, true, false);
  came.findings = f.n;
  if (f.n_suppressed > 0) {
    came.used = f.suppressed[0].count;
    came.provider = f.suppressed[0].provider;
    came.nobody = f.suppressed[0].nobody;
  }
  release(&f);
  return came;
}

static void
hides(struct suppression entry, const char *body, const char *what)
{
  struct came came = apply(entry, body);

  ok(came.findings == 0 && came.used == 1 && came.provider == 0 && came.nobody == 0,
     "hidden and counted: %s", what);
}

static void
leaves(struct suppression entry, const char *body, const char *what)
{
  struct came came = apply(entry, body);

  ok(came.findings == 1 && came.used == 0 && came.provider == 0 && came.nobody == 0,
     "not matching: %s", what);
}

/* It matches, and still hides nothing. */
static void
refuses(struct suppression entry, const char *body, bool provider, const char *what)
{
  struct came came = apply(entry, body);

  ok(came.findings == 1 && came.used == 0 && came.provider == (provider ? 1 : 0)
     && came.nobody == (provider ? 0 : 1), "matching, and nothing is hidden: %s", what);
}

static void
hidden(void)
{
  hides(ENTRY("Leak", "fun:malloc", "obj:*/libthird.so*"), LOST(LIBC THIRD),
        "a leak in another library");
  hides(ENTRY("Leak", "fun:m?ll*", "fun:third"), LOST(LIBC THIRD KITS),
        "one above frames of the kit");
  hides(ENTRY("Leak", "...", "fun:third"), LOST(LIBC LIBC LIBC THIRD), "any frames before it");
  hides(ENTRY("Leak", "...", "fun:third", "...", "fun:run"), LOST(LIBC THIRD LIBC THIRD KITS),
        "the second of two possible matches");
  hides(ENTRY("Addr2", "src:f.c:7"), READ(THIRD), "an access by its source");
  hides(ENTRY("Cond", "fun:third"),
        ERROR("UninitCondition", "<what>Conditional jump or move depends on</what>", THIRD),
        "a condition");
  struct suppression param = ENTRY("Param", "fun:third");
  snprintf(param.extra, sizeof(param.extra), "write(buf)");
  hides(param, WRITES, "a parameter");
  snprintf(param.extra, sizeof(param.extra), "write(bu");
  leaves(param, WRITES, "another parameter");
  struct suppression argument = ENTRY("FishyValue", "fun:third");
  snprintf(argument.extra, sizeof(argument.extra), "malloc(size)");
  hides(argument, ERROR("FishyValue", "<what>Argument 'size' of function malloc has a fishy "
                                      "(possibly negative) value: -1</what>", THIRD),
        "an argument");

  leaves(ENTRY("Addr4", "fun:third"), READ(THIRD), "another size");
  leaves(ENTRY("Value2", "fun:third"), READ(THIRD), "another kind");
  leaves(ENTRY("Leak", "fun:third"), LOST(LIBC THIRD), "not from the top");
  leaves(ENTRY("Leak", "...", "fun:third", "fun:third"), LOST(LIBC THIRD LIBC),
         "a missing frame");
  struct suppression reachable = ENTRY("Leak", "...", "fun:third");
  reachable.leaks = suppression_leak_bit("reachable");
  leaves(reachable, LOST(LIBC THIRD), "another kind of leak");
  leaves(ENTRY("Leak", "...", "fun:third"),
         JUDGED LEAK("Leak_DefinitelyLost", LIBC THIRD), "after the last word");
}

/* Names with which an author could hide the provider's findings. */
static void
not_hidden(void)
{
  struct dk_text deep = DK_TEXT_EMPTY;

  refuses(ENTRY("Leak", "fun:*lloc", "obj:*/p.so"), LOST(LIBC OURS KITS), true, "the plugin");
  refuses(ENTRY("Leak", "fun:malloc", "obj:*/libthird.so*"), LOST(LIBC THIRD OURS KITS), true,
          "a library that the provider has called");
  refuses(ENTRY("Addr2", "fun:memmove"),
          READ(FRAME("/lib/vgpreload_memcheck.so", "memmove") OURS KITS), true,
          "a copy made by the provider");
  refuses(ENTRY("Addr2", "fun:inlined"), READ(FRAME("/p.so", "inlined") OURS KITS), true,
          "an inlined function");
  refuses(ENTRY("Addr2", "fun:third"),
          READ(THIRD KITS "</stack><auxwhat>Address is in a block</auxwhat><stack>" LIBC OURS),
          true, "memory of the provider's");
  refuses(ENTRY("Addr2", "fun:memmove"),
          READ(FRAME("/lib/vgpreload_memcheck.so", "memmove") LIBC KITS), false,
          "a finding in no other library");
  for (int i = 0; i < FINDING_CALLERS - 1; i++)
    dk_text_puts(&deep, THIRD);
  hides(ENTRY("Addr2", "fun:third"), "<error><kind>InvalidRead</kind><what>Invalid read of size 2"
                                     "</what><stack>" THIRD THIRD "</stack></error>",
        "a complete stack");
  struct dk_text body = DK_TEXT_EMPTY;
  dk_text_printf(&body, READ("%s%s"), dk_text_str(&deep), OURS);
  refuses(ENTRY("Addr2", "fun:third"), dk_text_str(&body), true, "the provider far below");
  dk_text_reset(&body);
  dk_text_printf(&body, READ("%s%s"), dk_text_str(&deep), THIRD);
  refuses(ENTRY("Addr2", "fun:third"), dk_text_str(&body), false, "a stack that may be incomplete");
  dk_text_done(&body);
  dk_text_done(&deep);
}

/* Hidden findings take no room, even if they come first. */
static void
crowd(void)
{
  struct suppression entry = ENTRY("Addr2", "fun:third");
  struct suppressions authors = {&entry, 1};
  struct dk_text body = DK_TEXT_EMPTY;
  struct findings f;

  entry.n_frames = 1;
  for (int i = 0; i < FINDINGS_MOST + 5; i++)
    dk_text_puts(&body, READ(THIRD));
  dk_text_puts(&body, READ(OURS));
  read_under(&f, &authors, dk_text_str(&body), true, false);
  ok(findings_first(&f, OWNER_PROVIDER) != NULL, "the provider's is kept after many others");
  cmp_ok(f.n_suppressed == 1 ? f.suppressed[0].count : 0, "==", FINDINGS_MOST + 5,
         "which are counted");
  release(&f);
  read_under(&f, NULL, dk_text_str(&body), true, false);
  ok(f.n == FINDINGS_MOST && f.left_out == 6, "of those that count, only a limited number is kept");
  release(&f);
  dk_text_done(&body);
}

static void
globs(void)
{
  ok(suppression_glob("a*b*c", "aXbbYcc"), "stars");
  ok(!suppression_glob("a*b*c", "aXbbYcd"), "stars, and another end");
  ok(suppression_glob("operator new[](*)", "operator new[](unsigned long)"), "[ is a letter");
  ok(!suppression_glob("a?", "a"), "? is one letter");
  ok(suppression_glob("*", ""), "* also matches no letter");
}

int
main(void)
{
  plan(NO_PLAN);
  errors();
  leaks();
  possible_leaks();
  places();
  names();
  cycles();
  forged();
  cut();
  hidden();
  not_hidden();
  crowd();
  globs();
  return done_testing();
}
