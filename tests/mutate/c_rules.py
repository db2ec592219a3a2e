# SPDX-License-Identifier: Apache-2.0
"""The rules that change C.  Each yields (rule, edits) for a unit, in the order of the text.

Left alone: asserts, attributes, lines of the preprocessor, and the arguments of a format, which are
words for people."""

import re

from source import BRACKETS, Edit, edge, pair_brackets, split_list

ENDS_OF_TERM = {'&&', '||', '?', ':', ',', ';', '=', '+=', '-=', '|=', '&=', 'return', 'case'}
LOGIC = {'&&': '||', '||': '&&'}
RELATIONS = {'<': '<=', '<=': '<', '>': '>=', '>=': '>', '==': '!=', '!=': '=='}
NARROW = {'int64_t': 'int32_t', 'uint64_t': 'uint32_t', 'int32_t': 'int16_t',
          'uint32_t': 'uint16_t', 'size_t': 'uint16_t'}
WIDE = {'int32_t': 'int64_t', 'uint32_t': 'uint64_t'}
NO_CALLS = {'if', 'while', 'for', 'switch', 'return', 'sizeof', 'case'}
QUIET_CALLS = {'assert', '_Static_assert', '__attribute__', 'sizeof', 'offsetof'}
FORMAT = re.compile(r'%[-+ #0-9.*]*(?:[hljzt]*[diouxXcs]|")')
TYPES = {'struct', 'enum', 'const', 'static', 'bool', 'char', 'int', 'unsigned', 'long', 'double',
         'void', 'size_t', 'union', 'volatile'}
NO_STATEMENT = {'if', 'for', 'while', 'switch', 'do', 'else', 'case', 'default', '_Static_assert',
                'assert', '{', '}', ';', 'goto'}


class Rules:
    def __init__(self, unit):
        self.unit, self.tokens = unit, unit.tokens
        self.other = pair_brackets(self.tokens)
        self.quiet = self.find_quiet()

    def find_quiet(self):
        quiet = set()
        for i, token in enumerate(self.tokens):
            if token.directive:
                quiet.add(i)
            elif token.text in QUIET_CALLS and i + 1 in self.other:
                quiet.update(range(i, self.other[i + 1] + 1))
            elif token.kind == 'string' and FORMAT.search(token.text):
                quiet.update(range(i, edge(self.tokens, self.other, i, 1, {';'}) + 1))
        return quiet

    def mutants(self):
        found = []
        if self.unit.head == 'prototype':
            return found
        for rule in (self.negated, self.not_dropped, self.relation, self.logic, self.term,
                     self.statement, self.swapped, self.constant, self.status, self.type):
            found += rule()
        return sorted(found, key=lambda m: m[1][0].start)

    def loud(self, *texts):
        return [i for i, t in enumerate(self.tokens)
                if i not in self.quiet and t.kind in ('name', 'mark') and t.text in texts]

    def change(self, rule, first, last, text):
        """Tokens first to last become this text."""
        return rule, [Edit(self.tokens[first].start, self.tokens[last].end, text)]

    def wrap(self, rule, first, last, before, after):
        start, end = self.tokens[first].start, self.tokens[last].end
        return rule, [Edit(start, start, before), Edit(end, end, after)]

    def term_edge(self, i, step):
        return edge(self.tokens, self.other, i, step, ENDS_OF_TERM)

    # ---- conditions -----------------------------------------------------------------------------

    def conditions(self):
        """Of if, while, for and ?: pairs of indexes."""
        for i in self.loud('if', 'while', 'for', '?'):
            if self.tokens[i].text == '?':
                first = edge(self.tokens, self.other, i, -1, ENDS_OF_TERM - set(LOGIC))
                yield first, i - 1
                continue
            first, last = i + 2, self.other[i + 1] - 1
            if self.tokens[i].text == 'for':
                first = edge(self.tokens, self.other, i + 1, 1, {';'}) + 2
                last = edge(self.tokens, self.other, first - 1, 1, {';'})
            if first <= last:
                yield first, last

    def is_other_rule(self, first, last):
        """`relation` or `not-dropped` makes the same of it."""
        inside, i = [], first
        while i <= last:
            inside.append(self.tokens[i].text)
            i = max(i, self.other.get(i, i)) + 1
        marks = [t for t in inside if t in RELATIONS or t in LOGIC]
        return marks in (['=='], ['!=']) or (inside[0] == '!' and not marks)

    def negated(self):
        for first, last in self.conditions():
            if not self.is_other_rule(first, last):
                yield self.wrap('negated', first, last, '!(', ')')

    def not_dropped(self):
        for i in self.loud('!'):
            yield self.change('not-dropped', i, i, '')

    def relation(self):
        for i in self.loud(*RELATIONS):
            yield self.change('relation', i, i, RELATIONS[self.tokens[i].text])

    def logic(self):
        for i in self.loud(*LOGIC):
            yield self.change('logic', i, i, LOGIC[self.tokens[i].text])

    def term(self):
        """One of those that && and || join is dropped."""
        for i in self.loud(*LOGIC):
            first = self.term_edge(i, -1)
            if self.tokens[first - 1].text not in LOGIC:
                yield self.change('term', first, i, '')
            yield self.change('term', i, self.term_edge(i, 1), '')

    # ---- statements -----------------------------------------------------------------------------

    def is_block(self, i):
        """This brace begins a block of statements, and no list of values."""
        if i == self.unit.body:
            return True
        before = self.tokens[i - 1]
        return before.text in ('else', 'do', ';', '{', '}', ':') or self.is_head_of_loop(i - 1)

    def is_head_of_loop(self, i):
        if self.tokens[i].text != ')':
            return False
        name, after = self.tokens[self.other[i] - 1], self.tokens[i + 1]
        return name.text in ('if', 'for', 'while', 'switch') or (
            name.text.isupper() and (after.kind == 'name' or after.text == '{'))

    def is_label(self, i):
        before = edge(self.tokens, self.other, i, -1, {'case', 'default', '?', ';'}) - 1
        return self.tokens[i].text == ':' and self.tokens[before].text in ('case', 'default')

    def begins_statement(self, i):
        before = self.tokens[i - 1]
        if before.text in (';', '}'):
            return self.blocks[-1:] == [True] and (before.text == ';' or self.is_block(
                self.other[i - 1]))
        return ((before.text == '{' and self.is_block(i - 1)) or before.text in ('else', 'do')
                or self.is_head_of_loop(i - 1) or self.is_label(i - 1))

    def is_declaration(self, i):
        first, second = self.tokens[i], self.tokens[i + 1]
        if first.text in TYPES or first.text.endswith('_t'):
            return True
        if first.text in ('return', 'break', 'continue'):
            return False
        while second.text == '*':
            i += 1
            second = self.tokens[i + 1]
        return first.kind == 'name' and second.kind == 'name'

    def statements(self):
        """Those that stand for themselves: pairs of indexes."""
        self.blocks = []                               # what is open: a block, or another bracket
        for i in range(max(self.unit.body, 0), len(self.tokens)):
            token = self.tokens[i]
            if token.text in BRACKETS.values() and self.blocks:
                self.blocks.pop()
            if (self.blocks and self.begins_statement(i) and token.text not in NO_STATEMENT
                    and not self.is_declaration(i)):
                last = edge(self.tokens, self.other, i - 1, 1, {';'}) + 1
                if last < len(self.tokens) and self.tokens[last].text == ';':
                    yield i, last
            if token.text in BRACKETS:
                self.blocks.append(token.text == '{' and self.is_block(i))

    def statement(self):
        end = len(self.tokens) - 1
        for first, last in self.statements() if self.unit.body >= 0 else ():
            text = [t.text for t in self.tokens[first:last + 1]]
            is_last_return = text[0] == 'return' and last + 1 == end
            if not is_last_return and text[:3] != ['(', 'void', ')'] and first not in self.quiet:
                yield self.change('statement', first, last, '{}')

    def status(self):
        """A failure becomes DK_OK; what is called is called still."""
        if 'dk_status' not in self.unit.head:
            return
        for i in self.loud('TRY'):
            yield self.change('status', i, i, '(void)')
        for i in self.loud('return'):
            last = edge(self.tokens, self.other, i, 1, {';'})
            texts = [t.text for t in self.tokens[i + 1:last + 1]]
            if texts == ['DK_OK']:
                continue
            if len(texts) == 1 and texts[0].startswith('DK_'):
                yield self.change('status', i + 1, last, 'DK_OK')
            else:
                yield self.wrap('status', i + 1, last, '((void)(', '), DK_OK)')

    # ---- values ---------------------------------------------------------------------------------

    def swapped(self):
        for i, token in enumerate(self.tokens):
            is_call = i + 1 in self.other and self.tokens[i + 1].text == '('
            if (not is_call or i <= self.unit.body or token.kind != 'name'
                    or token.text in NO_CALLS or i in self.quiet):
                continue
            parts = split_list(self.tokens, self.other, i + 1)
            for one, two in zip(parts, parts[1:]):
                if any(k in self.quiet or self.tokens[k].kind == 'string'
                       for k in range(one[0], two[1] + 1)):
                    continue
                texts = [self.between(*one), self.between(*two)]
                if texts[0] != texts[1]:
                    yield self.change('swapped', one[0], two[1], texts[1] + ', ' + texts[0])

    def between(self, first, last):
        """The tokens as text, on one line."""
        text, before = '', None
        for token in self.tokens[first:last + 1]:
            if before is not None and before != token.start:
                text += ' '
            text, before = text + token.text, token.end
        return text

    def constant(self):
        for i, token in enumerate(self.tokens):
            match = re.fullmatch(r'(0[xX][0-9a-fA-F]+|[0-9]+)([uUlL]*)', token.text)
            if token.kind != 'number' or not match or i in self.quiet:
                continue
            sign, operand = self.tokens[i - 1], self.tokens[i - 2]
            if match[1] == '1' and sign.text in '+-' and (
                    operand.kind in ('name', 'number') and operand.text != 'return'
                    or operand.text in ')]'):
                yield self.change('one-dropped', i - 1, i, '')
                continue
            number = int(match[1], 16 if match[1][:2] in ('0x', '0X') else 10) + 1
            text = hex(number) if match[1][:2] in ('0x', '0X') else str(number)
            yield self.change('constant', i, i, text + match[2])

    def type(self):
        first = 0 if 'static' in self.unit.head else self.unit.body
        for i in self.loud(*NARROW):
            if i < first:
                continue                               # of a function that a header declares
            text = self.tokens[i].text
            yield self.change('type-narrowed', i, i, NARROW[text])
            if text in WIDE and self.tokens[i - 1].text == '(' and self.tokens[i + 1].text == ')':
                yield self.change('type-widened', i, i, WIDE[text])
