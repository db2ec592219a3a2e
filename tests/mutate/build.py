# SPDX-License-Identifier: Apache-2.0
"""Builds a plugin out of tree from changed sources, with the flags of the build, and certifies it.

The build folder is only read: its objects are linked for all files that have not changed."""

import collections
import contextlib
import hashlib
import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

# Of a mutant warnings are expected.  What no C compiler has to accept is no mutant.
COMPILE_FLAGS = ['-iquote', '.', '-fPIC', '-DPIC', '-g0', '-Wno-error',
                 '-Werror=incompatible-pointer-types', '-Werror=int-conversion',
                 '-Werror=implicit-function-declaration']
GENERATED = 'providers/pg/schema-text.c'  # of the SQL
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
NOT_OK = re.compile(r'not ok \d+ - (\S+)')
VERDICT = re.compile(r'\s+verdict: "?([a-z-]+)')
MOST_SECONDS = 1200  # of one certify; the kit's own deadlines are far shorter
MOST_MEMORY = 8 << 30
PASSED, UNCLEAR = 0, 7  # exit codes of durakit


class Failed(Exception):
    """The build, or the kit, cannot do what the tool needs."""


class DoesNotCompile(Exception):
    pass


def run(argv, folder):
    return subprocess.run(argv, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, errors='replace', check=False)


class Build:
    """What the build folder has."""

    def __init__(self, folder, root):
        self.folder, self.root = Path(folder).resolve(), Path(root).resolve()
        make = run([os.environ.get('MAKE', 'make'), '-s', '--no-print-directory', 'mutate-flags'],
                   self.folder)
        if make.returncode != 0:
            raise Failed('make mutate-flags: ' + make.stderr.strip())
        self.flags = dict(line.split(' ', 1) for line in make.stdout.splitlines() if ' ' in line)
        self.plugins = self.flags.get('plugins', '').split()
        self.durakit = self.folder / 'runner' / 'durakit'
        version = run([self.durakit, '--version'], self.folder)
        if version.returncode != 0:
            raise Failed('durakit --version: ' + version.stderr.strip())
        self.contract = version.stdout.strip()
        self.kit = hashlib.sha256(self.durakit.read_bytes()).hexdigest()[:32]

    def compiler(self):
        """The words of a compilation; its folders are of the build, it runs in a copy."""
        words = shlex.split(self.flags['compile'])
        for i, word in enumerate(words):
            if word.startswith('-I') and len(word) > 2:
                words[i] = '-I' + str(self.folder / word[2:])
        return words + COMPILE_FLAGS

    def objects(self, plugin):
        """Source: object, of all that the plugin is linked of."""
        found = {}
        for name in self.flags[plugin + '-objects'].split():
            path = Path(name)
            found[str(path.with_suffix('.c'))] = (
                self.folder / path.parent / '.libs' / path.with_suffix('.o').name)
        return found


class Copy:
    """A copy of a plugin's sources, in which one mutant at a time is built."""

    def __init__(self, build, plugin, folder):
        self.build, self.plugin, self.folder = build, plugin, Path(folder)
        self.objects, self.compiler = build.objects(plugin), build.compiler()
        self.originals, self.original_objects = {}, {}
        shutil.rmtree(self.folder, ignore_errors=True)
        for part in ('providers/shared', 'providers/' + plugin):
            shutil.copytree(build.root / part, self.folder / part)
        header = Path('core/include/durakit/provider.h')  # from which the SQL takes its numbers
        (self.folder / header).parent.mkdir(parents=True)
        shutil.copy(build.root / header, self.folder / header)
        run(['chmod', '-R', 'u+w', self.folder], build.folder)
        if GENERATED in self.objects:
            self.make_generated()

    def make_generated(self):
        made = run(['sh', '-c', self.build.flags['pg-text']], self.folder)
        if made.returncode != 0:
            raise DoesNotCompile(made.stderr)
        (self.folder / GENERATED).write_text(made.stdout)

    def includes(self, path, seen):
        """All that a file includes of the plugin, itself among them."""
        if path not in seen and (self.folder / path).is_file():
            seen.add(path)
            for name in INCLUDE.findall((self.folder / path).read_text()):
                self.includes(name, seen)
        return seen

    def made_of(self, path):
        """The sources that are compiled again after a change of this file."""
        if path.endswith('.sql'):
            return [GENERATED]
        of_numbers = [GENERATED] if path == 'providers/pg/answers.h' else []
        return of_numbers + [source for source in self.objects
                             if path in self.includes(source, set())]

    def preprocess(self, source):
        return run([*self.compiler, '-E', '-P', source], self.folder).stdout

    def compile(self, source, target, *flags):
        made = run([*self.compiler, *flags, '-c', '-o', target, source], self.folder)
        if made.returncode != 0:
            raise DoesNotCompile(made.stderr)
        return target

    def link(self, objects, target, *flags):
        made = run([*shlex.split(self.build.flags['link']), *flags, '-o', target, *objects,
                    *shlex.split(self.build.flags[self.plugin + '-libs'])], self.build.folder)
        if made.returncode != 0:
            raise DoesNotCompile(made.stderr)
        return target

    def original(self, source):
        if source not in self.originals:
            self.originals[source] = self.preprocess(source)
        return self.originals[source]

    def original_object(self, source):
        if source not in self.original_objects:
            target = self.compile(source, self.folder / 'original.o')
            self.original_objects[source] = target.read_bytes()
        return self.original_objects[source]

    @contextlib.contextmanager
    def changed(self, path, text):
        target, makes_more = self.folder / path, GENERATED in self.made_of(path)
        original = target.read_text()
        try:
            target.write_text(text)
            if makes_more:
                self.make_generated()
            yield
        finally:
            target.write_text(original)
            if makes_more:
                self.make_generated()

    def build_changed(self, path, text):
        """The plugin with this file changed; None: the compiler makes the same code of it."""
        sources, made = self.made_of(path), {}
        for source in sources:
            self.original(source)
        with self.changed(path, text):
            for source in sources:
                if self.preprocess(source) != self.original(source):
                    target = self.folder / ('changed-%d.o' % len(made))
                    made[source] = self.compile(source, target)
        if all(made[s].read_bytes() == self.original_object(s) for s in made):
            return None
        return self.link([made.get(s, o) for s, o in self.objects.items()],
                         self.folder / (self.plugin + '.so'))


# The kit's random calls find most mutants in a second; what they do not find gets the whole kit.
# With two jobs all native checks go before those under Valgrind.
SCRIPT = """kit=$1 plugin=$2 memcheck=$3; shift 3
"$kit" check "$plugin" --only 'random/*' --jobs 1 "$@"
exec "$kit" certify "$plugin" --jobs 2 $memcheck "$@"
"""


def command(build, plugin, path, seed, prefix, memcheck):
    limits = ['timeout', '-k', '60', str(MOST_SECONDS)]
    if '-fsanitize' not in build.flags['compile']:     # those reserve more than there is
        limits += ['prlimit', '--as=%d' % MOST_MEMORY]
    return [*limits, *shlex.split(build.flags.get(plugin + '-beside', '')), *prefix,
            'sh', '-c', SCRIPT, 'mutate', build.durakit, path,
            '' if memcheck else '--no-memcheck', '--format', 'tap', '--seed', str(seed),
            *shlex.split(build.flags.get(plugin + '-options', ''))]


def first_failure(lines, last):
    """(verdict, check) of the first that fails; a race that was not seen is no failure."""
    check = None
    for line in lines:
        last.append(line.strip())
        point, verdict = NOT_OK.match(line), VERDICT.match(line)
        if point:
            check = None if '# TODO' in line else point[1]
        elif verdict and check and verdict[1] != 'unexercised':
            return verdict[1], check
    return None


def certify(build, plugin, path, seed, prefix=(), memcheck=False):
    """(verdict, check) of the first check that does not pass; None: the whole kit passes.

    The kit itself repeats a check that failed, and reports one that passes then as flaky."""
    environment, last = dict(os.environ), collections.deque(maxlen=3)
    if os.access('/dev/shm', os.W_OK):
        environment['TMPDIR'] = '/dev/shm'             # what is judged is no disk
    with subprocess.Popen(command(build, plugin, path, seed, prefix, memcheck),
                          cwd=build.folder, env=environment, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors='replace') as kit:
        try:
            failure = first_failure(kit.stdout, last)
            if failure is None and kit.wait() not in (PASSED, UNCLEAR):
                failure = 'exit-%d' % kit.returncode, ' '.join(last)
            return failure
        finally:
            kit.terminate()  # it ends its checks, and the server beside it
            kit.stdout.read()
