# SPDX-License-Identifier: Apache-2.0
"""The rules that change SQL: that of SQLite, in strings of C, and that of PostgreSQL, in files.

Yields (rule, edits), in the order of the text.  A parameter of SQLite stays in the statement even
where its term does not count: a statement without it could not be bound, and would fail always."""

from source import edge, pair_brackets, split_list, sql_tokens

ENDS = set('''SELECT DISTINCT FROM WHERE ON WHEN THEN ELSE IF ELSIF HAVING ORDER GROUP LIMIT OFFSET
    RETURNING UNION SET VALUES LOOP INTO FOR AS JOIN CROSS LEFT LATERAL USING RETURN BY DESC BEGIN
    EXIT WHILE RAISE PERFORM UPDATE DELETE INSERT DO DEFAULT , ; := =>'''.split())
LOGIC = {'AND': 'OR', 'OR': 'AND'}
RELATIONS = {'<': '<=', '<=': '<', '>': '>=', '>=': '>', '=': '<>', '<>': '='}
STATEMENTS = {'INSERT', 'UPDATE', 'DELETE', 'PERFORM', 'SELECT', 'EXECUTE', 'RAISE', 'RETURN',
              'EXIT', 'GET', 'WITH'}
NO_CALLS = set('''IN VALUES AS KEY TABLE UNIQUE CHECK FROM SELECT WHERE ANY AND OR NOT ON SET JOIN
    LATERAL ARRAY EXISTS WITH CONFLICT FILTER USING greatest max min'''.split())
NARROW = {'bigint': 'integer', 'integer': 'smallint'}


class Rules:
    """Of one text: a statement, or a function with all that is in its body."""

    def __init__(self, text, is_sqlite):
        self.text, self.is_sqlite = text, is_sqlite
        self.tokens = sql_tokens(text.text)
        self.other = pair_brackets(self.tokens)
        self.words = [t.text if t.kind in ('name', 'mark') else '' for t in self.tokens]
        bodies = [i for i, t in enumerate(self.tokens) if t.kind == 'body']
        self.body = bodies[0] if bodies else -1        # before it: parameters and attributes
        self.makes = self.words[:1] == ['CREATE'] and self.body < 0 and 'SELECT' not in self.words
        self.is_pragma = self.words[:1] == ['PRAGMA']

    def mutants(self):
        found = []
        for rule in (self.logic, self.term, self.relation, self.negated, self.statement, self.order,
                     self.limit, self.column, self.swapped, self.constant, self.type):
            found += rule()
        return sorted(found, key=lambda m: m[1][0].start)

    def word(self, i):
        return self.words[i] if 0 <= i < len(self.words) else ''

    def places(self, *words):
        """Where these words stand, in what is run."""
        return [i for i, w in enumerate(self.words) if i > self.body and w in words]

    def edge(self, i, step, stops=frozenset(ENDS | set(LOGIC))):
        return edge(self.tokens, self.other, i, step, stops)

    def replace(self, rule, first, last, text):
        return rule, [self.text.replace(self.tokens[first].start, self.tokens[last].end, text)]

    def wrap(self, rule, first, last, before, after):
        return rule, [self.text.insert(self.tokens[first].start, before),
                      self.text.insert_after(self.tokens[last].end, after)]

    def outermost(self, i):
        """The begin of the statement that i is in: within brackets, or as a whole."""
        return self.edge(i, -1, {';'})

    # ---- conditions -----------------------------------------------------------------------------

    def joints(self):
        """AND and OR, but for that of BETWEEN, and OR REPLACE."""
        for i in self.places(*LOGIC):
            before = self.edge(i, -1, ENDS | set(LOGIC) | {'BETWEEN'}) - 1
            if self.word(before) != 'BETWEEN' and self.word(i + 1) != 'REPLACE':
                yield i

    def conditions(self):
        """After WHERE, the ON of a join, IF, WHEN: pairs of indexes."""
        for i in self.places('WHERE', 'ON', 'IF', 'ELSIF', 'WHEN', 'HAVING', 'WHILE'):
            word, last = self.words[i], self.edge(i, 1, ENDS)
            if last <= i or self.word(i - 1) == 'END' or self.word(i + 1) in ('EXISTS', 'CONFLICT'):
                continue
            if word == 'ON' and 'JOIN' not in self.words[self.outermost(i):i]:
                continue
            if word == 'WHEN' and not self.is_case_of_conditions(i):
                continue
            yield i + 1, last

    def is_case_of_conditions(self, i):
        """No handler of an exception, and no CASE x WHEN value."""
        case = self.edge(i, -1, set()) - 1
        return self.word(case) == 'CASE' and self.word(case + 1) == 'WHEN'

    def logic(self):
        for i in self.joints():
            yield self.replace('sql-logic', i, i, LOGIC[self.words[i]])

    def drop(self, first, last, is_or):
        return self.wrap('sql-term', first, last, '(', ' AND false)' if is_or else ' OR true)')

    def term(self):
        """One that AND or OR joins, or the only one of a WHERE, does not count."""
        for i in self.joints():
            is_or = self.words[i] == 'OR'
            first = self.edge(i, -1)
            if self.word(first - 1) not in LOGIC:
                yield self.drop(first, i - 1, is_or)
            last = self.edge(i, 1)
            if self.word(last + 1) == 'AND' and 'BETWEEN' in self.words[i:last]:
                last = self.edge(last + 1, 1)
            yield self.drop(i + 1, last, is_or)
        for first, last in self.conditions():
            if self.words[first - 1] in ('WHERE', 'ON') and last == self.edge(first - 1, 1):
                yield self.drop(first, last, False)

    def is_assignment(self, i):
        """This = gives a value: in SET, or to an option."""
        first = self.edge(i, -1, ENDS | {'ERRCODE', 'ROW_COUNT'})
        before = self.word(first - 1)
        while before == ',':
            first = self.edge(first - 1, -1, ENDS)
            before = self.word(first - 1)
        return (before in ('SET', 'DIAGNOSTICS', 'ERRCODE') or self.word(i - 1) == 'ERRCODE'
                or self.word(i + 1) == 'ROW_COUNT' or self.word(first - 2) == 'WITH')

    def relation(self):
        for i in self.places(*RELATIONS):
            if not self.is_pragma and not (self.words[i] == '=' and self.is_assignment(i)):
                yield self.replace('sql-relation', i, i, RELATIONS[self.words[i]])
        for i in self.places('NULL'):
            if self.word(i - 1) == 'IS':
                yield self.replace('sql-relation', i, i, 'NOT NULL')
        for i, word in enumerate(self.words):
            if word.startswith('IS') and word.endswith('FROM') and i > self.body:
                text = 'IS' + ('' if 'NOT' in word else ' NOT') + ' DISTINCT FROM'
                yield self.replace('sql-relation', i, i, text)

    def negated(self):
        for i in self.places('NOT'):
            if self.word(i + 1) not in ('NULL', 'EXISTS', 'MATERIALIZED') or self.word(
                    i - 1) in ('IS', 'AND', 'OR', 'WHERE', 'IF'):
                if not self.makes:
                    yield self.replace('sql-negated', i, i, '')
        for i in self.places('EXISTS', 'IN'):
            if self.word(i - 1) not in ('NOT', 'IF') and self.word(i + 1) == '(':
                yield self.replace('sql-negated', i, i, 'NOT ' + self.words[i])
        for first, last in self.conditions():
            inside = self.words[first:last + 1]
            marks = [w for w in inside if w in RELATIONS or w in LOGIC]
            is_other_rule = marks in (['='], ['<>']) or inside[0] == 'NOT' or 'IS' in inside or (
                'EXISTS' in inside or 'IN' in inside)
            if self.words[first - 1] != 'ON' and not (is_other_rule and len(marks) <= 1):
                yield self.wrap('sql-negated', first, last, 'NOT (', ')')

    # ---- statements of a function ---------------------------------------------------------------

    def statement(self):
        if self.body < 0:
            if self.words[:2] in (['CREATE', 'INDEX'], ['CREATE', 'UNIQUE']) and not self.is_sqlite:
                yield self.replace('sql-statement', 0, len(self.tokens) - 1, '')
            return
        for i in range(self.body + 2, len(self.tokens)):
            begins = self.word(i - 1) in (';', 'THEN', 'ELSE', 'LOOP', 'BEGIN')
            is_one = self.words[i] in STATEMENTS or self.word(i + 1) == ':='
            last = self.edge(i - 1, 1, {';'}) + 1
            is_in_declare = self.words[self.body + 1] == 'DECLARE' and 'BEGIN' not in self.words[:i]
            if begins and is_one and self.word(last) == ';' and not is_in_declare:
                yield self.replace('sql-statement', i, last, 'NULL;')

    # ---- order, limit ---------------------------------------------------------------------------

    def order(self):
        for i in self.places('ORDER'):
            keys, at = [], i + 1
            while at == i + 1 or self.word(at) == ',':
                last = self.edge(at, 1, ENDS - {'DESC'})
                keys.append((at + 1, last))
                at = last + 1
            yield self.replace('sql-order-dropped', i, keys[-1][1], '')
            if len(keys) > 1:
                yield self.replace('sql-order-shortened', keys[-1][0] - 1, keys[-1][1], '')
            yield 'sql-order-reversed', [
                self.text.replace(self.tokens[last].start, self.tokens[last].end, '')
                if self.words[last] == 'DESC' else
                self.text.insert_after(self.tokens[last].end, ' DESC') for first, last in keys]

    def limit(self):
        for i in self.places('LIMIT'):
            last = self.edge(i, 1)
            has_parameter = any(t.kind == 'param' for t in self.tokens[i:last + 1])
            if self.is_sqlite and has_parameter:
                yield self.wrap('sql-limit', i + 1, last, '-1-0*(', ')')
            else:
                yield self.replace('sql-limit', i, last, '')

    # ---- values ---------------------------------------------------------------------------------

    def column(self):
        """A column of UPDATE ... SET keeps its value."""
        for i in self.places('SET'):
            first = self.outermost(i)
            if 'UPDATE' not in self.words[first:i]:
                continue
            parts, at = [], i
            while at == i or self.word(at) == ',':
                last = self.edge(at, 1, ENDS)
                parts.append((at + 1, last))
                at = last + 1
            for n, (first, last) in enumerate(parts):
                if self.is_sqlite:
                    name = self.tokens[first].text
                    yield self.wrap('sql-column', first + 2, last, 'iif(1, %s, ' % name, ')')
                elif len(parts) > 1:
                    comma = first - 1 if n > 0 else first
                    end = last if n > 0 else last + 1
                    yield self.replace('sql-column', comma, end, '')

    def swapped(self):
        for i in self.places('('):
            is_call = i in self.other and self.word(i - 1) and self.tokens[i - 1].kind == 'name'
            if self.makes or not is_call or self.word(i - 1) in NO_CALLS:
                continue
            if self.word(i - 2) in ('AS', 'RECURSIVE'):
                continue                               # names of columns
            parts = split_list(self.tokens, self.other, i)
            for one, two in zip(parts, parts[1:]):
                texts = [self.text.text[self.tokens[p[0]].start:self.tokens[p[1]].end]
                         for p in (one, two)]
                if texts[0] != texts[1] and 'ORDER' not in texts[1]:
                    yield self.replace('sql-swapped', one[0], two[1], texts[1] + ', ' + texts[0])

    def constant(self):
        for i, token in enumerate(self.tokens):
            before = self.word(i - 1)
            if not token.text.isdecimal() or i <= self.body or before == 'BY':
                continue
            if self.word(self.edge(i, -1, set()) - 2) == 'WITH':
                continue                               # how a table is kept
            if before in ('SELECT', 'PERFORM') and self.word(i + 1) in ('FROM', ')'):
                continue                               # that there is a row is all that is asked
            if token.text == '1' and before in ('+', '-') and self.tokens[i - 2].kind != 'mark':
                yield self.replace('sql-one-dropped', i - 1, i, '')
            else:
                yield self.replace('sql-constant', i, i, str(int(token.text) + 1))

    def type(self):
        for i in self.places(*NARROW):
            if not self.is_sqlite:
                yield self.replace('sql-type-narrowed', i, i, NARROW[self.words[i]])
