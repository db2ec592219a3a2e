/* SPDX-License-Identifier: Apache-2.0 */
/* The calls by which a process changes or syncs a file: counted; one of them may fail, or be the
 * last thing that the process does.  Or those by which it reads one, opens one, or asks for any
 * descriptor: one of them may fail.
 *
 * The command defines these functions of the C library itself and exports them, so that the
 * dynamic linker gives them to plugins, and to the libraries of plugins, in place of the C
 * library's.  They do what those do.  What goes another way (system calls that are made directly,
 * stdio, mapped files, io_uring) is not seen.
 *
 * A power cut loses all that was written to a file and not synced: before the process ends, each
 * such write is undone, the last one first.  Renamed and deleted names are not brought back. */
#ifndef DK_KIT_DISK_H
#define DK_KIT_DISK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum kit_end {
  KIT_LIVES_ON,
  KIT_KILLED,     /* before the call; what was written stays */
  KIT_TORN,       /* in the midst of a write, of which whole sectors reach the file */
  KIT_POWER_CUT,  /* before the call; what was not synced is lost */
  KIT_FAILED      /* when the operation has answered, in which the call has failed */
};

/* Which calls are counted, and no others: as enum failing of check.h. */
enum kit_kind {
  KIT_CHANGES,     /* a file or a name, or syncs it */
  KIT_READS,
  KIT_OPENS,       /* a file, by its name */
  KIT_DESCRIPTORS  /* the same, and all others that give a descriptor */
};

/* How one operation of a process is to end, or what it meets, and what was seen of it.  Lies in the
 * shared map. */
struct kit_doom {
  int32_t end;    /* enum kit_end */
  int32_t error;  /* KIT_LIVES_ON: the call fails with this errno; 0: none does */
  int32_t lasts;  /* ... and so do all that follow */
  int32_t kind;   /* enum kit_kind */
  uint32_t at;    /* at which call, from 1; 0: at none, but as soon as the operation has answered */
  _Atomic uint32_t n_calls, n_writes, n_syncs;
  _Atomic int32_t has_answered;
  char call[96];  /* the last one: "pwrite of 4096 bytes to store-wal" */
};

/* From here on this process notes what it writes, so that it can be undone.  It never ends: the
 * process is about to. */
void kit_disk_record(void);
/* From here on it counts, and does what `doom` says; NULL: no longer. */
void kit_disk_arm(struct kit_doom *doom);
/* Ends this process, after it has undone what is lost. */
__attribute__((noreturn)) void kit_disk_end(const struct kit_doom *doom);
/* A call that is about a name (disk-names.c).  False: it fails, for the reason in errno. */
bool kit_disk_begins(enum kit_kind kind, const char *call, const char *name);
/* How often this process has synced a file so far. */
uint64_t kit_disk_syncs(void);

#endif
