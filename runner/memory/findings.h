/* SPDX-License-Identifier: Apache-2.0 */
/* What Valgrind has written of one check, and whose each finding is. */
#ifndef DK_RUNNER_MEMORY_FINDINGS_H
#define DK_RUNNER_MEMORY_FINDINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/base/text.h"
#include "runner/system/seal.h"

enum {
  FINDING_CALLERS = 40,      /* that Valgrind tells of a stack */
  FINDING_FRAMES = 200,      /* that are kept of it: a caller is several when some are inlined */
  FINDING_STACKS = 4,        /* where it happened; where the memory is from, or was freed */
  FINDINGS_MOST = 100,       /* of one check; the rest are counted */
  FINDINGS_XML = 1 << 20     /* bytes of XML that are kept for --out */
};

struct frame {
  char function[256], object[256], file[128];
  unsigned line;             /* 0: not known */
};

struct stack {
  char what[256];            /* of the second and third: "Address 0x... is 0 bytes after ..." */
  struct frame *frames;
  unsigned n, room;
};

enum owner { OWNER_UNKNOWN, OWNER_PROVIDER, OWNER_KIT };

struct finding {
  char kind[48];             /* as Valgrind names it: "InvalidWrite" */
  char what[256];
  struct stack stacks[FINDING_STACKS];
  unsigned n_stacks;
  uint64_t stack_hash;
  uint64_t bytes, blocks;    /* of a leak */
  bool late;                 /* after the child's last word */
  unsigned cycle;            /* of memory/cycle, at whose end it was found; 0: at the very end */
  unsigned cycles;           /* in how many after the first it was found again */
  bool cut;                  /* there may be more to its stacks than is known */
  enum owner owner;
  bool counts;               /* against its owner */
};

struct suppressed {
  char name[128];
  bool author;               /* it is the author's, and was applied here */
  unsigned count;            /* hidden by it */
  unsigned provider;         /* not hidden, though it fits: the provider's own findings */
  unsigned nobody;           /* nor these: no frame of theirs is in another library */
};

struct suppressions;

/* Who may be to blame, and what an author would not hear of. */
struct parties {
  const char *plugin;        /* NULL: `self` is what is tested */
  const char *self;          /* this executable: the kit */
  const struct suppressions *authors; /* NULL: none */
};

struct findings {
  struct parties parties;    /* set before anything is read */
  struct seals seals;        /* there: by which the child's words are told from the plugin's */
  struct finding *items;
  size_t n, room;
  unsigned left_out;
  struct suppressed *suppressed;
  size_t n_suppressed;
  char stopped[96];          /* the signal that ended it: "SIGSEGV: Access not ..."; "": none */
  struct stack stopped_at;
  bool there;                /* there is a file of the check's own process */
  bool whole;                /* and it is whole */
  bool judged, mapped;       /* the child's own words: see conformance/kit/engine.h */
  char *xml;
  size_t xml_size;
};

/* Reads and removes all PID.xml in the open folder but the zygote's; `child` is the check's own
 * process, which has been given these seals.  What the author's suppressions hide is not in it, but
 * counted.  What is no regular file is not read, of a very long one the beginning.  NULL: no
 * memory. */
struct findings *findings_read(const struct parties *parties, const struct seals *seals,
                               int folder, pid_t child, pid_t zygote);
/* Adds what lies in the one file, which may be cut. */
void findings_add_file(struct findings *findings, int folder, const char *name);
void findings_free(struct findings *findings);
/* For a test: the same out of text; false: it is no XML as far as it goes. */
bool findings_parse(struct findings *findings, const char *xml, size_t size, bool own);

/* Adds to the counts of what has this name, from the same side. */
bool findings_add_suppressed(struct suppressed **list, size_t *n, const struct suppressed *more);

/* Whose it is; true: an entry of the author's hides it, and is noted. */
bool findings_hide(struct findings *findings, struct finding *finding);
/* Which count. */
void findings_judge(struct findings *findings, bool cycles);
/* The first that counts against this owner, errors before leaks; NULL: none. */
const struct finding *findings_first(const struct findings *findings, enum owner owner);

/* There is something to tell. */
bool findings_any(const struct findings *findings);

bool finding_is_leak(const struct finding *finding);
const char *finding_clause(const struct finding *finding); /* "MEM-2" */
/* The frame that it is blamed on: the topmost of its owner, else the topmost. */
const struct frame *finding_frame(const struct finding *finding, const char *object);
/* "model_ack (work.c:17)"; "in libc.so.6" when there is no more. */
void finding_frame_text(struct dk_text *text, const struct frame *frame);
/* "Invalid write of size 1: f (a.c:1) < g (b.c:2); Address ...: ..." */
void finding_text(struct dk_text *text, const struct finding *finding, unsigned frames);

#endif
