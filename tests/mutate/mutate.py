#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Changes one place of a plugin at a time, by rule, and asks `durakit certify` for its verdict.

A mutant that passes is a survivor: a hole in the kit, dead code, equivalent, or outside of what the
contract is about.  What was judged so stands in equivalent.def.  Verdicts are kept in --out; a
killed mutant stays killed as long as its function and the contract are the same, a survivor is
tried again with each new kit.  The last line is: killed K of N (P %), S survived, E equivalent, O
outside of the contract.  Exits with 0 however many survive; 1: an entry of equivalent.def names no
mutant, or the plugin itself does not pass."""

import argparse
import concurrent.futures
import fnmatch
import hashlib
import json
import os
import queue
import random
import re
import sys
import time
from pathlib import Path

sys.dont_write_bytecode = True

from build import Build, Copy, DoesNotCompile, Failed, certify
from mutants import PATTERNS, all_mutants
from source import apply

HERE = Path(__file__).resolve().parent
ENTRY = re.compile(r'(EQUIVALENT|OUTSIDE)\(\s*"([^"]+)"\s*,\s*((?:"[^"]*"\s*)+)\)')
KILLED, SURVIVED, NO_C = 'killed', 'survived', 'does not compile'
EQUIVALENT, OUTSIDE = 'equivalent', 'outside'


def options():
    parser = argparse.ArgumentParser(description=__doc__.split('\n', maxsplit=1)[0])
    parser.add_argument('--build', default=os.environ.get('top_builddir'), help='the build folder')
    parser.add_argument('--root', default=str(HERE.parent.parent), help='the source folder')
    parser.add_argument('--plugin', action='append', choices=sorted(PATTERNS),
                        help='only this plugin; without it, all that are built')
    parser.add_argument('--only', action='append', metavar='FILE|ID', default=[],
                        help='only the mutants of a file, or one; * stands for anything')
    parser.add_argument('--sample', type=int, metavar='N', help='only N of them')
    parser.add_argument('--seed', type=int, default=1, help='chooses the sample; seed of certify')
    parser.add_argument('--list', action='store_true', help='prints them, and certifies nothing')
    parser.add_argument('--memcheck', action='store_true', help='certifies under Valgrind, too')
    parser.add_argument('--fresh', action='store_true', help='trusts no verdict of an earlier run')
    parser.add_argument('--jobs', type=int, default=len(os.sched_getaffinity(0)), metavar='N',
                        help='mutants at a time')
    parser.add_argument('--out', help='where verdicts are kept (BUILD/mutants)')
    parser.add_argument('--equivalent', default=str(HERE / 'equivalent.def'), metavar='FILE')
    return parser.parse_args()


def read_judged(path):
    """(pattern of ids, verdict), in the order of the file."""
    text = re.sub(r'/\*.*?\*/', '', Path(path).read_text(), flags=re.DOTALL)
    return [(name, {'result': kind.lower(), 'why': ''.join(re.findall('"([^"]*)"', why))})
            for kind, name, why in ENTRY.findall(text)]


def verdict_judged(judged, mutant):
    return next((v for name, v in judged if fnmatch.fnmatchcase(mutant.id, name)), None)


def chosen(mutants, only, sample, seed):
    if only:
        mutants = [m for m in mutants if any(
            o in (m.path, m.id) or m.path.endswith('/' + o) or fnmatch.fnmatchcase(m.id, o)
            for o in only)]
    if sample is not None and sample < len(mutants):
        picked = {m.id for m in random.Random(seed).sample(mutants, sample)}
        mutants = [m for m in mutants if m.id in picked]
    return mutants


class Itself:
    """The plugin without a change."""

    def __init__(self, plugin, path):
        self.id, self.path = plugin, path

    def key(self, contract):
        return hashlib.sha256(self.path.read_bytes() + contract.encode()).hexdigest()[:32]


class Verdicts:
    """Those of earlier runs, and those of this one as they come."""

    def __init__(self, build, given):
        self.build, self.path = build, given.out / 'verdicts.jsonl'
        self.kit = build.kit + (' memcheck' if given.memcheck else '')
        self.known = {}
        if self.path.exists() and not given.fresh:
            for line in self.path.read_text().splitlines():
                entry = json.loads(line)
                self.known[entry['key']] = entry

    def find(self, mutant):
        entry = self.known.get(mutant.key(self.build.contract))
        if not entry or (entry['verdict']['result'] == SURVIVED and entry['kit'] != self.kit):
            return None
        return entry['verdict']

    def add(self, mutant, verdict):
        entry = {'key': mutant.key(self.build.contract), 'kit': self.kit, 'verdict': verdict}
        with self.path.open('a') as file:
            file.write(json.dumps(entry) + '\n')


def judge(mutant, copy, given):
    text = apply((copy.folder / mutant.path).read_text(), mutant.edits)
    try:
        plugin = copy.build_changed(mutant.path, text)
    except DoesNotCompile as why:
        return {'result': NO_C, 'why': str(why).strip().split('\n')[0]}
    if plugin is None:
        return {'result': EQUIVALENT, 'why': 'the compiler makes the same code of it'}
    began = time.monotonic()
    failure = certify(copy.build, mutant.plugin, plugin, given.seed, memcheck=given.memcheck)
    seconds = round(time.monotonic() - began, 1)
    if failure is None:
        return {'result': SURVIVED, 'seconds': seconds}
    return {'result': KILLED, 'verdict': failure[0], 'by': failure[1], 'seconds': seconds}


def judge_all(build, plugin, mutants, verdicts, given):
    """Yields (mutant, verdict), as they come.  The plugin itself goes first, and has to pass."""
    copies = queue.SimpleQueue()
    for n in range(max(1, min(given.jobs, len(mutants)))):
        copies.put(Copy(build, plugin, given.out / ('%s-%d' % (plugin, n))))

    def work(mutant):
        copy = copies.get()
        try:
            return mutant, judge(mutant, copy, given)
        finally:
            copies.put(copy)

    itself = Itself(plugin, build.folder / 'providers' / plugin / '.libs' / (plugin + '.so'))
    if not verdicts.find(itself):
        failure = certify(build, plugin, itself.path, given.seed)
        if failure:
            raise Failed('%s itself does not pass: %s: %s' % (plugin, *failure))
        verdicts.add(itself, {'result': SURVIVED})
    with concurrent.futures.ThreadPoolExecutor(given.jobs) as pool:
        futures = [pool.submit(work, m) for m in mutants]
        try:
            for future in concurrent.futures.as_completed(futures):
                mutant, verdict = future.result()
                verdicts.add(mutant, verdict)
                yield mutant, verdict
        finally:
            for future in futures:
                future.cancel()


def line_of(mutant, verdict):
    return json.dumps({'id': mutant.id, 'file': mutant.path, 'line': mutant.line,
                       'rule': mutant.rule, 'before': mutant.before, 'after': mutant.after,
                       **verdict})


def run_plugin(build, plugin, mutants, judged, given):
    """Writes PLUGIN.jsonl; returns the verdicts by id."""
    verdicts, found, left = Verdicts(build, given), {}, []
    for mutant in mutants:
        found[mutant.id] = verdict_judged(judged, mutant) or verdicts.find(mutant)
        left += [mutant] if found[mutant.id] is None else []
    for mutant, verdict in judge_all(build, plugin, left, verdicts, given) if left else ():
        found[mutant.id] = verdict
        print('%-9s %s%s' % (verdict['result'], mutant.id, ' by ' + verdict['by']
                             if 'by' in verdict else ''), file=sys.stderr, flush=True)
    with (given.out / (plugin + '.jsonl')).open('w') as file:
        for mutant in mutants:
            file.write(line_of(mutant, found[mutant.id]) + '\n')
            if found[mutant.id]['result'] == SURVIVED:
                print('survived: %s, line %d\n  - %s\n  + %s'
                      % (mutant.id, mutant.line, mutant.before, mutant.after))
    return found


def count(found, result):
    return sum(v['result'] == result for v in found.values())


def summary(found):
    killed, survived = count(found, KILLED), count(found, SURVIVED)
    return 'killed %d of %d (%.1f %%), %d survived, %d equivalent, %d outside of the contract' % (
        killed, killed + survived, 100 * killed / max(1, killed + survived), survived,
        count(found, EQUIVALENT), count(found, OUTSIDE))


def main():
    given = options()
    everything = {p: list(all_mutants(given.root, p)) for p in sorted(PATTERNS)}
    judged = read_judged(given.equivalent)
    ids = [m.id for mutants in everything.values() for m in mutants]
    stale = [name for name, _ in judged if not fnmatch.filter(ids, name)]
    if stale:
        raise Failed('%s: there is no such mutant: %s' % (given.equivalent, ', '.join(stale)))
    build = None if given.list else Build(given.build or given.root + '/build', given.root)
    if build:
        given.out = Path(given.out or build.folder / 'mutants').resolve()
        given.out.mkdir(exist_ok=True)
    total = {}
    for plugin in given.plugin or (sorted(PATTERNS) if given.list else build.plugins):
        mutants = chosen(everything[plugin], given.only, given.sample, given.seed)
        if given.list:
            for m in mutants:
                print(m.id, m.line, m.before, m.after, sep='\t')
            continue
        found = run_plugin(build, plugin, mutants, judged, given)
        how = [v['verdict'] for v in found.values() if 'verdict' in v]
        print('%s: %s; %d do not compile; killed by %s' % (
            plugin, summary(found), count(found, NO_C),
            ', '.join('%s %d' % (h, how.count(h)) for h in sorted(set(how))) or 'none'))
        total.update(found)
    if not given.list:
        print(summary(total))


if __name__ == '__main__':
    try:
        main()
    except Failed as why:
        sys.exit('mutate: %s' % why)
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        sys.exit(1)
