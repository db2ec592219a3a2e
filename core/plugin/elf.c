/* SPDX-License-Identifier: Apache-2.0 */
/* Checks a file before the dynamic linker reads it, because the linker's messages name no cause
 * that a newcomer could act on.  Owns the descriptor of the file meanwhile. */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/plugin/library.h"
#include "core/plugin/refusal.h"

/* The header of this program or library, as the linker mapped it: a plugin must match it. */
extern const ElfW(Ehdr) __ehdr_start __attribute__((visibility("hidden")));

/* The beginning of the header is the same for both word sizes. */
struct beginning {
  unsigned char ident[EI_NIDENT];
  uint16_t type, machine;
};

struct named_number {
  unsigned number;
  const char *name;
};

static const struct named_number machines[] = {
  {EM_386, "i386"},       {EM_X86_64, "x86-64"}, {EM_ARM, "arm"},     {EM_AARCH64, "aarch64"},
  {EM_PPC64, "ppc64"},    {EM_S390, "s390"},     {EM_RISCV, "riscv"}, {EM_MIPS, "mips"},
  {EM_LOONGARCH, "loongarch"},
};

static const struct named_number types[] = {
  {ET_REL, "an object file (.o)"},
  {ET_EXEC, "an executable"},
  {ET_DYN, "a shared object"},
  {ET_CORE, "a core dump"},
};

static const char *
name_of(const struct named_number *list, size_t n, unsigned number, char *buffer, size_t size)
{
  for (size_t i = 0; i < n; i++)
    if (list[i].number == number)
      return list[i].name;
  snprintf(buffer, size, "number %u", number);
  return buffer;
}

static const char *
machine_name(unsigned machine, char *buffer, size_t size)
{
  return name_of(machines, sizeof(machines) / sizeof(machines[0]), machine, buffer, size);
}

/* ---- refusals -------------------------------------------------------------------------------- */

static int32_t
refuse_not_there(const char *path, int error, struct dk_refusal *refusal)
{
  bool absent = error == ENOENT || error == ENOTDIR;

  dk_refusal_begin(refusal, absent ? DK_LOAD_NOT_THERE : DK_LOAD_NOT_READABLE, path,
                   absent ? "there is no such file" : "the file cannot be read");
  dk_refusal_say(refusal->expected, "a provider's shared object");
  dk_refusal_say(refusal->found, "%s", strerror(error));
  dk_refusal_say(refusal->next, absent ? "check the path; durakit list providers shows those that "
                                         "are installed"
                                       : "check who may read the file and its folders");
  return -1;
}

static const char *
kind_of_file(mode_t mode)
{
  return S_ISDIR(mode)   ? "a folder"
         : S_ISCHR(mode) ? "a character device"
         : S_ISBLK(mode) ? "a block device"
         : S_ISFIFO(mode) ? "a pipe"
         : S_ISSOCK(mode) ? "a socket"
                          : "not a regular file";
}

static int32_t
refuse_no_file(const char *path, mode_t mode, struct dk_refusal *refusal)
{
  dk_refusal_begin(refusal, DK_LOAD_NOT_A_FILE, path, "this is %s", kind_of_file(mode));
  dk_refusal_say(refusal->expected, "a provider's shared object, a regular file");
  dk_refusal_say(refusal->found, "%s", kind_of_file(mode));
  dk_refusal_say(refusal->next, "name the .so file itself");
  return -1;
}

static void
describe_bytes(const unsigned char *bytes, size_t size, char part[DK_REFUSAL_TEXT])
{
  bool is_printable = true;

  for (size_t i = 0; i < size; i++)
    is_printable = is_printable && (bytes[i] >= 0x20 || bytes[i] == '\n' || bytes[i] == '\t' ||
                                    bytes[i] == '\r');
  if (size == 0)
    dk_refusal_say(part, "an empty file");
  else if (size >= 2 && memcmp(bytes, "#!", 2) == 0)
    dk_refusal_say(part, "a script (it begins with #!)");
  else if (size >= 8 && memcmp(bytes, "!<arch>\n", 8) == 0)
    dk_refusal_say(part, "an archive, as a static library is");
  else if (size >= 4 && memcmp(bytes, "\177ELF", 4) == 0)
    dk_refusal_say(part, "an ELF file that ends in its header, after %zu bytes", size);
  else if (is_printable)
    dk_refusal_say(part, "a text file");
  else
    dk_refusal_say(part, "a file that begins with the bytes %02x %02x %02x %02x", bytes[0],
                   size > 1 ? bytes[1] : 0u, size > 2 ? bytes[2] : 0u, size > 3 ? bytes[3] : 0u);
}

static int32_t
refuse_not_elf(const char *path, const unsigned char *bytes, size_t size,
               struct dk_refusal *refusal)
{
  dk_refusal_begin(refusal, DK_LOAD_NOT_ELF, path, "this is not a shared object");
  dk_refusal_say(refusal->expected, "an ELF file");
  describe_bytes(bytes, size, refusal->found);
  dk_refusal_say(refusal->next, "build it with: cc -shared -fPIC -o my_provider.so my_provider.c");
  return -1;
}

static void
describe_header(const struct beginning *header, char part[DK_REFUSAL_TEXT])
{
  char machine[32], type[32];

  dk_refusal_say(part, "%s for %s, %s bits, %s",
                 name_of(types, sizeof(types) / sizeof(types[0]), header->type, type, sizeof(type)),
                 machine_name(header->machine, machine, sizeof(machine)),
                 header->ident[EI_CLASS] == ELFCLASS64 ? "64" : "32",
                 header->ident[EI_DATA] == ELFDATA2MSB ? "big-endian" : "little-endian");
}

static uint16_t
swapped(uint16_t number)
{
  return (uint16_t)(number << 8 | number >> 8);
}

static int32_t
check_header(const char *path, const struct beginning *found, struct dk_refusal *refusal)
{
  struct beginning header = *found;
  struct beginning ours = {.type = ET_DYN, .machine = __ehdr_start.e_machine};

  memcpy(ours.ident, __ehdr_start.e_ident, sizeof(ours.ident));
  bool other_order = header.ident[EI_DATA] != ours.ident[EI_DATA];
  if (other_order) {
    header.type = swapped(header.type);
    header.machine = swapped(header.machine);
  }
  if (!other_order && header.ident[EI_CLASS] == ours.ident[EI_CLASS] &&
      header.machine == ours.machine && header.type == ET_DYN)
    return 0;

  bool other_machine = other_order || header.ident[EI_CLASS] != ours.ident[EI_CLASS] ||
                       header.machine != ours.machine;
  dk_refusal_begin(refusal, DK_LOAD_OTHER_MACHINE, path,
                   other_machine ? "the file was built for another machine"
                                 : "the file is not a shared object");
  describe_header(&ours, refusal->expected);
  describe_header(&header, refusal->found);
  dk_refusal_say(refusal->next, other_machine ? "build it on this machine, or for it"
                                              : "link it with -shared");
  return -1;
}

/* ---- the file -------------------------------------------------------------------------------- */

static int32_t
check_contents(const char *path, int fd, struct dk_refusal *refusal)
{
  union {
    unsigned char bytes[64];
    struct beginning header;
  } start = {.bytes = {0}};
  ssize_t size = pread(fd, start.bytes, sizeof(start.bytes), 0);

  if (size < 0)
    return refuse_not_there(path, errno, refusal);
  if ((size_t)size < sizeof(start.header) || memcmp(start.bytes, ELFMAG, SELFMAG) != 0)
    return refuse_not_elf(path, start.bytes, (size_t)size, refusal);
  return check_header(path, &start.header, refusal);
}

int32_t
dk_file_check(const char *path, struct dk_file_identity *ret_identity, struct dk_refusal *refusal)
{
  struct stat info;

  if (stat(path, &info) != 0)
    return refuse_not_there(path, errno, refusal);
  if (!S_ISREG(info.st_mode))
    return refuse_no_file(path, info.st_mode, refusal);

  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
  if (fd < 0)
    return refuse_not_there(path, errno, refusal);
  int32_t result = check_contents(path, fd, refusal);
  close(fd);
  if (result == 0)
    *ret_identity = (struct dk_file_identity){.device = info.st_dev, .inode = info.st_ino};
  return result;
}
