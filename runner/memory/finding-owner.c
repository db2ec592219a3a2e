/* SPDX-License-Identifier: Apache-2.0 */
/* The owner of a finding of Valgrind, whether an author's suppression hides it, the clause that it
 * violates, and its text. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "conformance/kit/engine.h"
#include "runner/memory/findings.h"
#include "runner/memory/suppressions.h"

/* A block found again in so many of KIT_MEMORY_CYCLES is a leak that grows. */
enum { CYCLES_THAT_GROW = KIT_MEMORY_CYCLES - 1 };

static bool
same_file(const char *a, const char *b)
{
  struct stat one;
  struct stat other;

  if (strcmp(a, b) == 0)
    return true;
  return a[0] == '/' && stat(a, &one) == 0 && stat(b, &other) == 0 && one.st_dev == other.st_dev
         && one.st_ino == other.st_ino;
}

static bool
is_object(const struct frame *frame, const char *object)
{
  return object && frame->object[0] && same_file(frame->object, object);
}

bool
finding_is_leak(const struct finding *finding)
{
  return strncmp(finding->kind, "Leak_", 5) == 0;
}

/* A block that was not freed belongs to the one that asked for it: the topmost of the two. */
static enum owner
owner_of_leak(const struct finding *finding, const char *object, const char *self)
{
  const struct stack *stack = &finding->stacks[0];

  for (unsigned i = 0; i < stack->n; i++) {
    if (is_object(&stack->frames[i], object))
      return OWNER_PROVIDER;
    if (is_object(&stack->frames[i], self))
      return OWNER_KIT;
  }
  return OWNER_UNKNOWN;
}

/* An error belongs to the provider if it has any part in it: it passed wrong data to the kit, or
 * the memory is its own. */
static enum owner
owner_of_error(const struct finding *finding, const char *object, const char *self)
{
  enum owner owner = OWNER_UNKNOWN;

  for (unsigned s = 0; s < finding->n_stacks; s++) {
    for (unsigned i = 0; i < finding->stacks[s].n; i++) {
      const struct frame *frame = &finding->stacks[s].frames[i];
      if (is_object(frame, object))
        return OWNER_PROVIDER;
      if (is_object(frame, self))
        owner = OWNER_KIT;
    }
  }
  return owner;
}

/* ---- suppressions of the author -------------------------------------------------------------- */

static bool
begins(const char *text, const char *with)
{
  return strncmp(text, with, strlen(with)) == 0;
}

/* A library other than the kit, the plugin and what is on top of the stacks of both: the C library,
 * and what Valgrind puts in its place. */
static bool
is_other_library(const struct parties *parties, const struct frame *frame)
{
  static const char *const common[] = {"vgpreload_", "libc.so", "libc-2", "ld-linux", "ld-2",
                                       "ld.so", "ld64.so", "ld-musl", "libpthread"};
  const char *slash = strrchr(frame->object, '/');

  for (size_t i = 0; slash && i < sizeof(common) / sizeof(common[0]); i++) {
    if (begins(slash + 1, common[i]))
      return false;
  }
  return slash && !is_object(frame, parties->plugin) && !is_object(frame, parties->self);
}

static bool
has_other_library(const struct parties *parties, const struct finding *finding)
{
  bool has = false;

  if (finding->n_stacks > 0 && !finding->cut) {
    for (unsigned i = 0; i < finding->stacks[0].n && !has; i++)
      has = is_other_library(parties, &finding->stacks[0].frames[i]);
  }
  return has;
}

/* The first frame of the author's in each stack. */
static void
find_author(struct finding *finding, const char *object)
{
  for (unsigned s = 0; s < finding->n_stacks; s++) {
    struct stack *stack = &finding->stacks[s];
    while (stack->author < stack->n
           && (stack->frames[stack->author].standard
               || !is_object(&stack->frames[stack->author], object)))
      stack->author++;
  }
}

/* The names of an entry do not show whose a finding is.  So it hides no finding in which the
 * provider has a part, and none that is not clearly another library's. */
bool
findings_hide(struct findings *findings, struct finding *finding)
{
  const struct parties *parties = &findings->parties;
  const char *object = parties->plugin ? parties->plugin : parties->self;
  bool hidden = false;

  find_author(finding, object);
  finding->owner = finding_is_leak(finding) ? owner_of_leak(finding, object, parties->self)
                                            : owner_of_error(finding, object, parties->self);
  if (finding_is_leak(finding) && finding->late)
    return false;
  bool provider = finding->owner == OWNER_PROVIDER;
  bool other = !provider && has_other_library(parties, finding);
  for (size_t i = 0; parties->authors && i < parties->authors->n && !hidden; i++) {
    const struct suppression *entry = &parties->authors->items[i];
    struct suppressed used = {.author = true};
    if (!suppression_fits(entry, finding))
      continue;
    memcpy(used.name, entry->name, sizeof(used.name));
    used.count = other ? 1 : 0;
    used.provider = provider ? 1 : 0;
    used.nobody = !other && !provider ? 1 : 0;
    /* Hidden findings are counted, and reported. */
    hidden = findings_add_suppressed(&findings->suppressed, &findings->n_suppressed, &used)
                                                                                   && other;
  }
  return hidden;
}

/* ---- findings that count --------------------------------------------------------------------- */

/* Findings with the same stack at the end of later cycles become one, which has their number. */
static void
join_cycles(struct findings *findings)
{
  for (size_t i = 0; i < findings->n; i++) {
    struct finding *first = &findings->items[i];
    unsigned last = first->cycle;
    if (!finding_is_leak(first) || first->cycle == 0 || first->kind[0] == '\0')
      continue;
    first->cycles = first->cycle > 1 ? 1 : 0;
    for (size_t j = i + 1; j < findings->n; j++) {
      struct finding *other = &findings->items[j];
      if (!finding_is_leak(other) || other->stack_hash != first->stack_hash)
        continue;
      first->cycles += other->cycle > last && other->cycle > 1 ? 1 : 0;
      last = other->cycle > last ? other->cycle : last;
      other->stack_hash = (uint64_t)j; /* is reported by the first */
      other->cycle = 0;
      snprintf(other->kind, sizeof(other->kind), "Leak_StillReachable");
    }
  }
}

/* A pointer into the middle of a block reaches it, too: a language's library holds a thread's data
 * by such.  But when the plugin is unloaded, it has nothing that is still in use. */
static bool
can_be_reached(const struct findings *findings, const struct finding *finding, bool cycles)
{
  bool at_end = !cycles || finding->cycle > KIT_MEMORY_CYCLES + 1;

  return strcmp(finding->kind, "Leak_StillReachable") == 0
         || (strcmp(finding->kind, "Leak_PossiblyLost") == 0 && !(at_end && findings->unloads));
}

/* A block that can still be reached is in use, unless it grows.  The kit's own blocks might be
 * reached through pointers that Valgrind does not see. */
static bool
counts(const struct findings *findings, const struct finding *finding, bool cycles)
{
  if (finding_is_leak(finding) && (finding->late || !findings->judged))
    return false; /* the check did not end by itself, or had ended: much is still in use */
  if (!finding_is_leak(finding) || strcmp(finding->kind, "Leak_DefinitelyLost") == 0)
    return true;
  if (finding->owner == OWNER_KIT)
    return false;
  return !can_be_reached(findings, finding, cycles) || finding->cycles >= CYCLES_THAT_GROW;
}

void
findings_judge(struct findings *findings, bool cycles)
{
  if (cycles)
    join_cycles(findings);
  for (size_t i = 0; i < findings->n; i++)
    findings->items[i].counts = counts(findings, &findings->items[i], cycles);
}

const struct finding *
findings_first(const struct findings *findings, enum owner owner)
{
  const struct finding *leak = NULL;

  for (size_t i = 0; i < findings->n; i++) {
    const struct finding *finding = &findings->items[i];
    if (finding->owner != owner || !finding->counts)
      continue;
    if (!finding_is_leak(finding))
      return finding;
    if (!leak || (strcmp(finding->kind, "Leak_DefinitelyLost") == 0
                  && strcmp(leak->kind, "Leak_DefinitelyLost") != 0))
      leak = finding;
  }
  return leak;
}

bool
findings_any(const struct findings *findings)
{
  bool any = findings->stopped[0] != '\0';

  for (size_t i = 0; i < findings->n && !any; i++)
    any = findings->items[i].counts;
  return any;
}

const char *
finding_clause(const struct finding *finding)
{
  if (finding_is_leak(finding))
    return "MEM-3";
  if (strncmp(finding->kind, "Uninit", 6) == 0 || strstr(finding->what, "ninitialised"))
    return "MEM-1";
  return "MEM-2";
}

/* ---- words ----------------------------------------------------------------------------------- */

const struct frame *
finding_frame(const struct finding *finding, const char *object)
{
  const struct frame *best = NULL;

  for (unsigned s = 0; s < finding->n_stacks; s++) {
    for (unsigned i = 0; i < finding->stacks[s].n; i++) {
      const struct frame *frame = &finding->stacks[s].frames[i];
      if (is_object(frame, object) && (!best || (best->standard && !frame->standard)))
        best = frame;
    }
  }
  if (best || finding->n_stacks == 0 || finding->stacks[0].n == 0)
    return best;
  return &finding->stacks[0].frames[0];
}

/* The end of the type parameters that begin here; NULL: they were cut off. */
static const char *
end_of_parameters(const char *at)
{
  int depth = 0;

  for (; *at; at++) {
    depth += *at == '<' ? 1 : 0;
    if (*at == '>' && at[-1] != '-' && --depth == 0)
      return at;
  }
  return NULL;
}

/* "allocate<T>", but "push<...>" if the type parameters are long. */
static void
function_text(struct dk_text *text, const char *function)
{
  enum { LONG = 40 };

  for (const char *at = function; *at; at++) {
    const char *end = *at == '<' && at > function && !strstr(function, "operator")
                        ? end_of_parameters(at) : at;
    if (end && end - at < LONG) {
      dk_text_add(text, at, 1);
      continue;
    }
    dk_text_puts(text, "<...>");
    if (!end)
      return;
    at = end;
  }
}

void
finding_frame_text(struct dk_text *text, const struct frame *frame)
{
  const char *slash = strrchr(frame->object, '/');
  const char *object = slash ? slash + 1 : frame->object;

  if (!frame->function[0] && !frame->file[0]) {
    dk_text_printf(text, "in %s", *object ? object : "an unknown place");
    return;
  }
  function_text(text, frame->function[0] ? frame->function : "?");
  if (frame->file[0])
    dk_text_printf(text, " (%s:%u)", frame->file, frame->line);
  else if (*object)
    dk_text_printf(text, " (in %s)", object);
}

static void
stack_text(struct dk_text *text, const struct stack *stack, unsigned frames)
{
  for (unsigned i = 0; i < stack->n && i < frames; i++) {
    dk_text_puts(text, i ? " < " : "");
    finding_frame_text(text, &stack->frames[i]);
  }
  if (stack->author >= frames && stack->author < stack->n) {
    dk_text_puts(text, stack->author > frames ? " < ... < " : " < ");
    finding_frame_text(text, &stack->frames[stack->author]);
    frames = stack->author + 1;
  }
  if (stack->n > frames)
    dk_text_puts(text, " < ...");
}

void
finding_text(struct dk_text *text, const struct finding *finding, unsigned frames)
{
  dk_text_puts(text, finding->what);
  if (finding->cycles >= CYCLES_THAT_GROW)
    dk_text_printf(text, ", more of it after each of %u cycles", finding->cycles);
  for (unsigned s = 0; s < finding->n_stacks; s++) {
    if (s > 0)
      dk_text_printf(text, "; %s", finding->stacks[s].what);
    if (finding->stacks[s].n > 0)
      dk_text_puts(text, ": ");
    stack_text(text, &finding->stacks[s], frames);
  }
}
