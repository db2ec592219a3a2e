# SPDX-License-Identifier: Apache-2.0
"""All mutants of a plugin: each is one change of one file; its id does not depend on lines.

    providers/sqlite/work.c:insert_work:relation:2      the second of this rule in this function"""

import hashlib
from dataclasses import dataclass
from pathlib import Path

import c_rules
import sql_rules
from source import (C_TOKEN, FileText, Lines, apply, c_units, one_line, sql_units,
                    string_texts)

PATTERNS = {'sqlite': ('providers/shared/*.[ch]', 'providers/sqlite/*.[ch]',
                       'providers/sqlite/*.def'),
            'pg': ('providers/pg/*.[ch]', 'providers/pg/schema/*.sql')}


@dataclass
class Mutant:
    plugin: str
    path: str
    id: str
    rule: str
    line: int
    before: str
    after: str
    edits: list
    unit: str  # with the change, without comments and white space

    def key(self, contract):
        """By which its verdict is found again: as long as its function and the contract stay."""
        return hashlib.sha256('\0'.join((self.id, self.unit, contract)).encode()).hexdigest()[:32]


def sources(root, plugin):
    """Of the plugin, without its tests.  What both plugins share is changed in the first."""
    found = [path.relative_to(root).as_posix() for pattern in PATTERNS[plugin]
             for path in Path(root).glob(pattern)]
    return sorted(p for p in found if not p.rsplit('/', 1)[1].startswith('test-'))


def changes_of(path, text):
    """(unit, rule, edits), in the order of the text."""
    is_sqlite = '/sqlite/' in path
    if path.endswith('.sql'):
        for unit in sql_units(text):
            rules = sql_rules.Rules(FileText(text, unit.start, unit.end), is_sqlite)
            yield from ((unit, *change) for change in rules.mutants())
        return
    for unit in c_units(text):
        yield from ((unit, *change) for change in c_rules.Rules(unit).mutants())
        for sql in string_texts(unit):
            yield from ((unit, *change) for change in sql_rules.Rules(sql, is_sqlite).mutants())


def without_comments(path, text):
    if path.endswith('.sql'):
        return one_line(text)
    return ' '.join(m[0] for m in C_TOKEN.finditer(text)
                    if m.lastgroup not in ('space', 'comment'))


def mutants_of(root, plugin, path):
    text = (Path(root) / path).read_text()
    lines, counts, seen = Lines(text), {}, set()
    for unit, rule, edits in changes_of(path, text):
        name = '%s:%s:%s' % (path, unit.name, rule)
        counts[name] = counts.get(name, 0) + 1
        changed = apply(text, edits)
        if changed in seen or changed == text:
            continue
        seen.add(changed)
        start, end = min(e.start for e in edits), max(e.end for e in edits)
        first, last = lines.of(start, end)
        grown = len(changed) - len(text)
        yield Mutant(plugin, path, '%s:%d' % (name, counts[name]), rule, lines.number(start),
                     one_line(text[first:last]), one_line(changed[first:last + grown]), edits,
                     without_comments(path, changed[unit.start:unit.end + grown]))


def all_mutants(root, plugin):
    for path in sources(root, plugin):
        yield from mutants_of(root, plugin, path)
