#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints what `durakit certify` alone never reaches in the sources of the plugins: functions and
branches, by gcov.  What the kit never reaches in a plugin of ours is a hole in the kit.

The processes of the kit end by _exit, which writes no counters: a library that is loaded before
stands in for it.  What a process had counted that was killed is lost.  SQL is not counted."""

import collections
import json
import os
import shlex
import shutil
import sys
from pathlib import Path

sys.dont_write_bytecode = True

from build import Build, Copy, DoesNotCompile, Failed, command, run

FLAGS = ['-O0', '--coverage', '-fprofile-update=atomic', '-DNDEBUG']

# In the plugin: names the function that writes the counters.
NOTE = '''
#include <dlfcn.h>
#include <gcov.h>
typedef void note_fn(void (*dump)(void));
static void __attribute__((constructor)) note(void)
{
  note_fn *take = (note_fn *)dlsym(RTLD_DEFAULT, "coverage_note");
  if (take)
    take(__gcov_dump);
}
'''
# Before the C library.
EXIT = '''
#include <sys/syscall.h>
#include <unistd.h>
static void (*dump_counters)(void);
void coverage_note(void (*dump)(void)) { dump_counters = dump; }
void __attribute__((noreturn)) _exit(int code)
{
  if (dump_counters)
    dump_counters();
  for (;;)
    syscall(SYS_exit_group, code);
}
'''


def build_plugin(build, plugin, folder):
    """Returns the plugin, and the notes of the compiler, beside which the counters are written."""
    copy = Copy(build, plugin, folder / 'source')
    objects = []
    for source in copy.objects:
        target = folder / (source.replace('/', '-')[:-2] + '.o')
        objects.append(copy.compile(source, target, *FLAGS))
    notes = [o.with_suffix('.gcno') for o in objects]
    (copy.folder / 'note.c').write_text(NOTE)
    objects.append(copy.compile('note.c', folder / 'note.o'))
    return copy.link(objects, folder / (plugin + '.so'), '--coverage'), notes


def build_library(build, folder):
    """What is loaded before the C library."""
    source, library = folder / 'exit.c', folder / 'exit.so'
    source.write_text(EXIT)
    link = [w for w in shlex.split(build.flags['link']) if 'version-script' not in w]
    made = run([*link, '-fPIC', '-fvisibility=default', '-Wno-error', '-o', library, source],
               build.folder)
    if made.returncode != 0:
        raise DoesNotCompile(made.stderr)
    return library


def read_counts(notes, folder):
    """By file: functions by (line, name), branches by (line, number), with their counts."""
    functions = collections.defaultdict(collections.Counter)
    branches = collections.defaultdict(collections.Counter)
    gcov = [os.environ.get('GCOV', 'gcov'), '-b', '--json-format', '--stdout']
    for note in notes:
        told = run([*gcov, note], folder)
        if told.returncode != 0 or not told.stdout:
            raise Failed('gcov %s: %s' % (note, told.stderr.strip()))
        for file in json.loads(told.stdout)['files']:
            name = os.path.normpath(file['file'])
            if not name.startswith('providers/') or name.endswith('schema-text.c'):
                continue
            for function in file['functions']:
                place = function['start_line'], function['name']
                functions[name][place] += function['execution_count']
            for line in file['lines']:
                for i, branch in enumerate(line['branches']):
                    branches[name][line['line_number'], i] += branch['count']
    return functions, branches


def share(counts):
    reached = sum(n > 0 for n in counts.values())
    return '%d of %d (%.1f %%)' % (reached, len(counts), 100 * reached / max(1, len(counts)))


def within_uncalled(functions):
    """The lines of functions that were never called: up to the next function."""
    places = sorted(functions) + [(1 << 30, '')]
    return [(place[0], after[0]) for place, after in zip(places, places[1:])
            if functions[place] == 0]


def print_file(name, functions, branches, root):
    text = (root / name).read_text().splitlines()
    print('%s: branches %s, functions %s' % (name, share(branches), share(functions)))
    for line, function in sorted(p for p, n in functions.items() if n == 0):
        print('  %d: %s() is never called' % (line, function))
    uncalled = within_uncalled(functions)
    never = collections.Counter(line for (line, _), n in branches.items() if n == 0)
    every = collections.Counter(line for line, _ in branches)
    for line in sorted(never):
        if not any(first <= line < end for first, end in uncalled):
            print('  %d: %d of %d branches never taken: %s'
                  % (line, never[line], every[line], text[line - 1].strip()))


def main():
    root = Path(__file__).resolve().parent.parent.parent
    build = Build(os.environ.get('top_builddir') or root / 'build', root)
    for plugin in build.plugins:
        folder = build.folder / 'coverage' / plugin
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        path, notes = build_plugin(build, plugin, folder)
        library = build_library(build, folder)
        kit = run(command(build, plugin, path, 1, ['env', 'LD_PRELOAD=%s' % library], False),
                  build.folder)
        if kit.returncode not in (0, 1, 5, 6, 7):      # counters are written: that may be noticed
            raise Failed('%s, with counters, cannot be certified: exit %d: %s'
                         % (plugin, kit.returncode, kit.stderr.strip()))
        functions, branches = read_counts(notes, folder)
        for name in sorted(functions):
            print_file(name, functions[name], branches[name], root)
        print('%s: branches %s, functions %s' % (
            plugin, *(share(collections.Counter({(f, k): n for f, c in found.items()
                                                 for k, n in c.items()}))
                      for found in (branches, functions))))


if __name__ == '__main__':
    try:
        main()
    except (Failed, DoesNotCompile) as why:
        sys.exit('coverage: %s' % why)
