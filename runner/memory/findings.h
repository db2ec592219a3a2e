/* SPDX-License-Identifier: Apache-2.0 */
/* Valgrind's findings in one check, and the owner of each. */
#ifndef DK_RUNNER_MEMORY_FINDINGS_H
#define DK_RUNNER_MEMORY_FINDINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/base/text.h"
#include "runner/system/seal.h"

enum {
  FINDING_CALLERS = 40,      /* that Valgrind writes of a stack */
  FINDING_FRAMES = 200,      /* that are kept of it: with inlining a caller is several frames */
  FINDING_STACKS = 4,        /* where it happened; where the memory was allocated or freed */
  FINDINGS_MOST = 100,       /* of one check; the rest are counted */
  FINDINGS_XML = 1 << 20     /* bytes of XML that are kept for --out */
};

struct frame {
  char function[256], object[256], file[128];
  unsigned line;             /* 0: not known */
  bool standard;             /* of a language's own library, which is linked into the plugin */
};

struct stack {
  char what[256];            /* of the second and third: "Address 0x... is 0 bytes after ..." */
  struct frame *frames;
  unsigned n;
  unsigned author;           /* the first frame of the plugin's author; n: there is none */
  size_t room;
};

enum owner { OWNER_UNKNOWN, OWNER_PROVIDER, OWNER_KIT };

struct finding {
  char kind[48];             /* Valgrind's name: "InvalidWrite" */
  char what[256];
  struct stack stacks[FINDING_STACKS];
  unsigned n_stacks;
  uint64_t stack_hash;
  uint64_t bytes;            /* of a leak */
  bool late;                 /* after the child's last word */
  unsigned cycle;            /* the cycle of memory/cycle at whose end it was found; 0: the first */
  unsigned cycles;           /* in how many cycles after the first it was found again */
  bool cut;                  /* its stacks may be incomplete */
  enum owner owner;
  bool counts;               /* against its owner */
};

struct suppressed {
  char name[128];
  bool author;               /* it is the author's, and was applied here */
  unsigned count;            /* findings hidden by it */
  unsigned provider;         /* not hidden, though it matches: the provider's own findings */
  unsigned nobody;           /* nor these: no frame of theirs is in another library */
};

struct suppressions;

/* The possible owners of findings, and the author's suppressions. */
struct parties {
  const char *plugin;        /* NULL: `self` is tested */
  const char *self;          /* this executable: the kit */
  const struct suppressions *authors; /* NULL: none */
};

struct findings {
  struct parties parties;    /* set before anything is read */
  struct seals seals;        /* set as well: they distinguish the child's lines from the plugin's */
  struct finding *items;
  size_t n, room;
  unsigned left_out;
  struct suppressed *suppressed;
  size_t n_suppressed;
  char stopped[96];          /* the signal that ended it: "SIGSEGV: Access not ..."; "": none */
  struct stack stopped_at;
  bool there;                /* there is a file of the check's own process */
  bool whole;                /* and it is complete */
  bool unloads;              /* the plugin was unloaded before the last look for leaks */
  bool judged, mapped;       /* the child's own lines: see conformance/kit/engine.h */
  char *xml;
  size_t xml_size;
};

/* Reads and removes all PID.xml in the open folder but those of zygotes; `child` is the check's own
 * process, which has these seals.  Findings that the author's suppressions hide are only counted.
 * Reads only regular files, and only the beginning of a very long one.  NULL: no memory. */
struct findings *findings_read(const struct parties *parties, const struct seals *seals,
                               int folder, pid_t child, const pid_t zygotes[2]);
/* Adds the findings of one file, which may be cut off. */
void findings_add_file(struct findings *findings, int folder, const char *name);
void findings_free(struct findings *findings);
/* For a test: the same from a text; false: it is not XML. */
bool findings_parse(struct findings *findings, const char *xml, size_t size, bool own);

/* Adds to the counts of the suppression with this name, of the same origin. */
bool findings_add_suppressed(struct suppressed **list, size_t *n, const struct suppressed *more);

/* Finds the owner; true: an entry of the author's hides the finding, and was noted. */
bool findings_hide(struct findings *findings, struct finding *finding);
/* Decides which findings count. */
void findings_judge(struct findings *findings, bool cycles);
/* The first finding that counts against this owner, errors before leaks; NULL: none. */
const struct finding *findings_first(const struct findings *findings, enum owner owner);

/* There is something to report. */
bool findings_any(const struct findings *findings);

bool finding_is_leak(const struct finding *finding);
const char *finding_clause(const struct finding *finding); /* "MEM-2" */
/* The frame to blame: the topmost of its owner that is not of a standard library, else the topmost
 * of its owner, else the topmost. */
const struct frame *finding_frame(const struct finding *finding, const char *object);
/* "model_ack (work.c:17)"; "in libc.so.6" if no more is known. */
void finding_frame_text(struct dk_text *text, const struct frame *frame);
/* "Invalid write of size 1: f (a.c:1) < g (b.c:2); Address ...: ..."; of each stack so many frames,
 * and the author's first one even if it is further down. */
void finding_text(struct dk_text *text, const struct finding *finding, unsigned frames);

#endif
