/* SPDX-License-Identifier: Apache-2.0 */
/* What Valgrind has written of one check, and whose each finding is. */
#ifndef DK_RUNNER_FINDINGS_H
#define DK_RUNNER_FINDINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/base/text.h"

enum {
  FINDING_FRAMES = 16,       /* that are kept of a stack */
  FINDING_STACKS = 3,        /* where it happened; where the memory is from, or was freed */
  FINDINGS_MOST = 100,       /* of one check; the rest are counted */
  FINDINGS_XML = 1 << 20     /* bytes of XML that are kept for --out */
};

struct frame {
  char function[128], object[256], file[128];
  unsigned line;             /* 0: not known */
};

struct stack {
  char what[256];            /* of the second and third: "Address 0x... is 0 bytes after ..." */
  struct frame frames[FINDING_FRAMES];
  unsigned n;
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
  enum owner owner;
  bool counts;               /* against its owner */
};

struct suppressed {
  char name[128];
  unsigned count;
};

struct findings {
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

/* Reads and removes all FOLDER/PID.xml but the zygote's; `child` is the check's own process.  NULL:
 * no memory. */
struct findings *findings_read(const char *folder, pid_t child, pid_t zygote);
/* Adds what lies in the one file, which may be cut. */
void findings_add_file(struct findings *findings, const char *path);
void findings_free(struct findings *findings);
/* For a test: the same out of text; false: it is no XML as far as it goes. */
bool findings_parse(struct findings *findings, const char *xml, size_t size, bool own);

/* Whose each is, and which count; `plugin` NULL: `self` is what is tested. */
void findings_judge(struct findings *findings, const char *plugin, const char *self, bool cycles);
/* The first that counts against this owner, errors before leaks; NULL: none. */
const struct finding *findings_first(const struct findings *findings, enum owner owner);

/* There is something to tell. */
bool findings_any(const struct findings *findings);

bool finding_is_leak(const struct finding *finding);
const char *finding_clause(const struct finding *finding); /* "MEM-2" */
/* The frame that it is blamed on: the topmost of its owner, else the topmost. */
const struct frame *finding_frame(const struct finding *finding, const char *object);
/* "model_ack (work.c:17)"; "in libc.so.6" when there is no more. */
void frame_text(struct dk_text *text, const struct frame *frame);
/* "Invalid write of size 1: f (a.c:1) < g (b.c:2); Address ...: ..." */
void finding_text(struct dk_text *text, const struct finding *finding, unsigned frames);

#endif
