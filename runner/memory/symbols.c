/* SPDX-License-Identifier: Apache-2.0 */
/* Walks the symbol tables of an ELF file for this machine, whose parts may lie anywhere. */
#include "runner/memory/symbols.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runner/memory/suppressions.h"

struct file {
  const char *bytes;
  size_t size;
};

static const void *
part(const struct file *file, uint64_t offset, uint64_t size)
{
  return offset <= file->size && size <= file->size - offset ? file->bytes + offset : NULL;
}

static bool
table_has(const struct file *file, const ElfW(Shdr) *table, const ElfW(Shdr) *names,
          const char *pattern)
{
  const char *texts = part(file, names->sh_offset, names->sh_size);
  const char *symbols = part(file, table->sh_offset, table->sh_size);

  if (!texts || !symbols || names->sh_size == 0 || texts[names->sh_size - 1] != '\0')
    return false;
  for (size_t at = 0; at + sizeof(ElfW(Sym)) <= table->sh_size; at += sizeof(ElfW(Sym))) {
    ElfW(Sym) symbol;
    memcpy(&symbol, symbols + at, sizeof(symbol));
    if ((symbol.st_info & 0xf) == STT_FUNC && symbol.st_shndx != SHN_UNDEF
        && symbol.st_name < names->sh_size && suppression_glob(pattern, texts + symbol.st_name))
      return true;
  }
  return false;
}

/* Copies it, because e_shoff may be any number, and so the headers need not be aligned. */
static bool
take_section(const struct file *file, const ElfW(Ehdr) *header, size_t number, ElfW(Shdr) *ret)
{
  const char *sections =
    part(file, header->e_shoff, (uint64_t)header->e_shnum * sizeof(*ret));

  if (!sections)
    return false;
  memcpy(ret, sections + number * sizeof(*ret), sizeof(*ret));
  return true;
}

static bool
file_has(const struct file *file, const char *pattern)
{
  const ElfW(Ehdr) *header = part(file, 0, sizeof(*header));
  ElfW(Shdr) table, names;

  if (!header || memcmp(header->e_ident, ELFMAG, SELFMAG) != 0
      || header->e_shentsize != sizeof(ElfW(Shdr)))
    return false;
  for (size_t i = 0; i < header->e_shnum; i++) {
    if (!take_section(file, header, i, &table))
      return false;
    bool is_table = table.sh_type == SHT_SYMTAB || table.sh_type == SHT_DYNSYM;
    if (is_table && table.sh_link < header->e_shnum
        && take_section(file, header, table.sh_link, &names)
        && table_has(file, &table, &names, pattern))
      return true;
  }
  return false;
}

bool
symbols_any(const char *path, const char *pattern)
{
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  struct stat st;
  bool found = false;

  if (fd < 0)
    return false;
  if (fstat(fd, &st) == 0 && st.st_size > 0) {
    void *map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (map != MAP_FAILED) {
      found = file_has(&(struct file){map, (size_t)st.st_size}, pattern);
      munmap(map, (size_t)st.st_size);
    }
  }
  close(fd);
  return found;
}
