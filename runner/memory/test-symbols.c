/* SPDX-License-Identifier: Apache-2.0 */
/* The symbols of an ELF file are found wherever its section headers lie, even at an odd offset; a
 * build with sanitizers reports each access that is not aligned. */
#include "runner/memory/symbols.h"

#include <elf.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "conformance/tap/tap.h"

static char path[] = "/tmp/durakit-symbols-XXXXXX";

/* This program. */
static char *
read_self(size_t *ret_size)
{
  FILE *file = fopen("/proc/self/exe", "re");
  struct stat st;

  if (!file || fstat(fileno(file), &st) != 0)
    BAIL_OUT("this program cannot be read");
  char *bytes = malloc((size_t)st.st_size);
  if (!bytes || fread(bytes, 1, (size_t)st.st_size, file) != (size_t)st.st_size)
    BAIL_OUT("this program cannot be read");
  fclose(file);
  *ret_size = (size_t)st.st_size;
  return bytes;
}

/* Appends a copy of its section headers, so that they lie at offset `over` modulo 8. */
static void
write_moved(FILE *file, const char *bytes, size_t size, size_t over)
{
  ElfW(Ehdr) header;
  static const char nothing[16];

  memcpy(&header, bytes, sizeof(header));
  size_t pad = (8 - size % 8) % 8 + over;
  size_t length = (size_t)header.e_shnum * sizeof(ElfW(Shdr));
  size_t from = header.e_shoff;
  header.e_shoff = size + pad;
  if (fwrite(&header, sizeof(header), 1, file) != 1
      || fwrite(bytes + sizeof(header), size - sizeof(header), 1, file) != 1
      || fwrite(nothing, 1, pad, file) != pad || fwrite(bytes + from, length, 1, file) != 1)
    BAIL_OUT("%s cannot be written", path);
}

int
main(void)
{
  size_t size;
  char *bytes = read_self(&size);

  plan(NO_PLAN);
  close(mkstemp(path));
  for (size_t over = 0; over < 8; over++) {
    FILE *file = fopen(path, "we");
    if (!file)
      BAIL_OUT("%s cannot be made", path);
    write_moved(file, bytes, size, over);
    fclose(file);
    ok(symbols_any(path, "mai?"), "a function is found with headers %zu bytes off", over);
    ok(!symbols_any(path, "no_such_function_*"), "and only one that exists");
  }
  ok(truncate(path, (off_t)size) == 0 && !symbols_any(path, "main"),
     "section headers beyond the end are ignored");
  unlink(path);
  free(bytes);
  return done_testing();
}
