# SPDX-License-Identifier: Apache-2.0
"""Reads C and SQL as far as the rules need it: tokens, what belongs together, and the names of it.

Positions are offsets into the text of the file.  SQL that stands in strings of C is read as one
text, with a map back to the file: see StringText."""

import bisect
import re
from dataclasses import dataclass, field

C_TOKEN = re.compile(r'''
    (?P<comment> /\*.*?\*/ | //[^\n]* )
  | (?P<space>   (?: \s | \\\n )+ )
  | (?P<string>  "(?: [^"\\] | \\. )*" )
  | (?P<char>    '(?: [^'\\] | \\. )*' )
  | (?P<number>  \.?[0-9] (?: [eEpP][+-] | [0-9A-Za-z_.] )* )
  | (?P<name>    [A-Za-z_]\w* )
  | (?P<mark>    -> | \+\+ | -- | <<= | >>= | << | >> | <= | >= | == | != | && | \|\|
               | \.\.\. | [-+*/%&|^]= | . )
''', re.VERBOSE | re.DOTALL)

MACRO = '\ue000'  # what stands for a macro of C within SQL

SQL_TOKEN = re.compile(r'''
    (?P<comment> --[^\n]* | /\*.*?\*/ )
  | (?P<space>   \s+ )
  | (?P<string>  '(?: [^'] | \'\' )*' )
  | (?P<body>    \$[A-Za-z_]*\$ )
  | (?P<mark>    IS\s+(?:NOT\s+)?DISTINCT\s+FROM\b | :: | := | => | ->> | -> | << | >>
               | <= | >= | <> | \|\| | \.\. )
  | (?P<name>    @\w+@ | "(?: [^"] | "" )*" | [A-Za-z_\ue000][\w\ue000]* )
  | (?P<number>  [0-9]+ (?: \.[0-9]+ )? )
  | (?P<param>   \?[0-9]* | \$[0-9]+ )
  | (?P<other>   . )
''', re.VERBOSE | re.DOTALL)

BRACKETS = {'(': ')', '[': ']', '{': '}'}


@dataclass
class Token:
    kind: str
    text: str
    start: int
    end: int
    directive: bool = False  # it stands in a line of the preprocessor


@dataclass
class Edit:
    start: int
    end: int
    text: str


@dataclass
class Unit:
    """A function, a statement, a declaration: what a mutant is named after."""
    name: str
    tokens: list
    body: int = -1  # of a function: the index of its brace
    head: str = ''
    start: int = field(init=False)
    end: int = field(init=False)

    def __post_init__(self):
        self.start, self.end = self.tokens[0].start, self.tokens[-1].end


def apply(text, edits):
    for edit in sorted(edits, key=lambda e: (e.start, e.end), reverse=True):
        text = text[:edit.start] + edit.text + text[edit.end:]
    return text


def one_line(text):
    return ' '.join(text.split())


def pair_brackets(tokens):
    """For each bracket the index of the other one.  In SQL CASE and its END are brackets, too."""
    other, stack = {}, []
    for i, token in enumerate(tokens):
        if token.kind in ('string', 'char'):
            continue
        if token.text in BRACKETS or token.text == 'CASE':
            stack.append(i)
            continue
        opening = [k for k, v in BRACKETS.items() if v == token.text]
        if token.text == 'END':
            opening = ['CASE']
        if opening and stack and tokens[stack[-1]].text in opening:
            other[i] = stack.pop()
            other[other[i]] = i
    return other


def edge(tokens, other, i, step, stops):
    """From token i on, in this direction: the last token before a stop or an unpaired bracket."""
    i += step
    while 0 <= i < len(tokens):
        token = tokens[i]
        is_code = token.kind not in ('string', 'char')
        if is_code and (token.text in BRACKETS or token.text in ')]}' or token.text == 'CASE'
                        or (token.text == 'END' and i in other)):
            if i not in other or (other[i] > i) != (step > 0):
                break
            i = other[i]
        elif is_code and token.text in stops:
            break
        i += step
    return i - step


def split_list(tokens, other, opening):
    """The parts between commas of what stands in brackets: pairs of indexes."""
    parts, first, i = [], opening + 1, opening + 1
    while i < other[opening]:
        if tokens[i].text == ',' and tokens[i].kind == 'mark':
            parts.append((first, i - 1))
            first = i + 1
        i = other[i] + 1 if other.get(i, 0) > i else i + 1
    parts.append((first, other[opening] - 1))
    return [p for p in parts if p[0] <= p[1]]


# ---- C ------------------------------------------------------------------------------------------

def c_tokens(text):
    tokens, directive = [], False
    for match in C_TOKEN.finditer(text):
        kind, start = match.lastgroup, match.start()
        if kind == 'space' and re.search(r'(?<!\\)\n', match[0]):
            directive = False
        if kind in ('space', 'comment'):
            continue
        if match[0] == '#' and not text[text.rfind('\n', 0, start) + 1:start].strip():
            directive = True
        tokens.append(Token(kind, match[0], start, match.end(), directive))
    return tokens


def directive_unit(tokens):
    names = [t.text for t in tokens if t.kind == 'name']
    return Unit(names[1] if names[0] == 'define' else 'line-' + names[0], tokens)


def declared_name(tokens):
    """struct held_work {...}: held_work; enum { MOST = 1 }: MOST; static const int x[] = ...: x."""
    other, outside, i = pair_brackets(tokens), [], 0
    while i < len(tokens) and tokens[i].text != '=':
        if tokens[i].kind == 'name' and tokens[i].text not in ('enum', '__attribute__'):
            outside.append(tokens[i].text)
        i = max(i, other.get(i, i)) + 1
    return outside[-1] if outside else [t.text for t in tokens if t.kind == 'name'][1]


def c_units(text):
    tokens = c_tokens(text)
    units, code, i = [], [], 0
    while i < len(tokens):
        if not tokens[i].directive:
            code.append(tokens[i])
            i += 1
            continue
        end = i + 1
        while end < len(tokens) and tokens[end].directive and tokens[end].text != '#':
            end += 1
        if any(t.kind == 'name' for t in tokens[i:end]):
            units.append(directive_unit(tokens[i:end]))
        i = end
    units += code_units(code)
    return sorted(units, key=lambda u: u.start)


def code_units(tokens):
    """Top-level pieces: up to a semicolon, the end of a function, or of a macro's arguments."""
    other, units, first = pair_brackets(tokens), [], 0
    while first < len(tokens):
        i, parameters, brace = first, -1, -1
        while i < len(tokens) and tokens[i].text != ';':
            if tokens[i].text == '(' and parameters < 0 and tokens[i - 1].text != '__attribute__':
                parameters = i
            if tokens[i].text == '{' and tokens[i - 1].text == ')':
                brace = i
            if tokens[i].text in BRACKETS:
                i = other.get(i, len(tokens) - 1)
            if brace >= 0 or (parameters == first + 1 and tokens[i].text == ')'):
                break
            i += 1
        piece = tokens[first:i + 1]
        if parameters == first + 1 and brace < 0:      # STATEMENT(NAME, ...)
            units.append(Unit(tokens[parameters + 1].text, piece))
        elif brace >= 0:
            head = ' '.join(t.text for t in tokens[first:parameters])
            units.append(Unit(tokens[parameters - 1].text, piece, brace - first, head))
        elif any(t.kind == 'name' for t in piece):
            head = 'prototype' if parameters >= 0 and '=' not in [t.text for t in piece] else ''
            units.append(Unit(declared_name(piece), piece, head=head))
        first = i + 1
    return units


# ---- SQL ----------------------------------------------------------------------------------------

class FileText:
    """SQL in a file of its own."""

    def __init__(self, text, start, end):
        self.text, self.base = text[start:end], start

    def replace(self, start, end, text):
        return Edit(self.base + start, self.base + end, text)

    def insert(self, at, text):
        return self.replace(at, at, text)

    insert_after = insert


class StringText:
    """Strings of C that stand side by side, with macros between them, as one text of SQL."""

    def __init__(self, tokens):
        self.text, self.spans, self.macros = '', [], set()
        for token in tokens:
            if token.kind != 'string':
                self.macros.add(len(self.text))
                self.add(MACRO, token.start, token.end)
                continue
            for match in re.finditer(r'\\\n|\\.|.', token.text[1:-1], re.DOTALL):
                if match[0] != '\\\n':
                    self.add(match[0][-1] if match[0] not in (r'\n', r'\t') else ' ',
                             token.start + 1 + match.start(), token.start + 1 + match.end())

    def add(self, char, start, end):
        self.text += char
        self.spans.append((start, end))

    def replace(self, start, end, text):
        """The quotation marks stay in pairs, whether the ends are in a string or are a macro."""
        quoted = text.replace('\\', '\\\\').replace('"', '\\"')
        before = '"' if start in self.macros else ''
        after = '"' if end - 1 in self.macros else ''
        return Edit(self.spans[start][0], self.spans[end - 1][1], before + quoted + after)

    def insert(self, at, text):
        start = self.spans[at][0]
        return Edit(start, start, '"%s" ' % text if at in self.macros else text)

    def insert_after(self, at, text):
        end = self.spans[at - 1][1]
        return Edit(end, end, ' "%s"' % text if at - 1 in self.macros else text)


SQL_BEGINS = re.compile(r'\s*(\ue000\s*)?(SELECT|INSERT|UPDATE|DELETE|WITH|CREATE|ALTER|BEGIN|'
                        r'COMMIT|ROLLBACK|PRAGMA|WHERE|AND|ORDER|FROM)\b')
SQL_CONTAINS = re.compile(r'\bIN \(SELECT\b|\(SELECT\b.*\bFROM\b')


def string_texts(unit):
    """The SQL in the strings of a unit of C."""
    tokens, i = unit.tokens, 0
    other = pair_brackets(tokens)
    if tokens[0].text == '#':                          # the name that is defined is none of it
        i = other[3] + 1 if 3 in other and tokens[3].start == tokens[2].end else 3
    while i < len(tokens):
        run = string_run(tokens, other, i)
        if any(t.kind == 'string' for t in run):
            text = StringText(run)
            if SQL_BEGINS.match(text.text) or SQL_CONTAINS.search(text.text):
                yield text
        end = run[-1].end if run else tokens[i].end
        while i < len(tokens) and tokens[i].end <= end:
            i += 1


def string_run(tokens, other, i):
    """The strings from token i on, and the macros beside them."""
    run = []
    while i < len(tokens):
        token, after = tokens[i], i + 1
        if token.kind == 'name' and (token.text.isupper() or token.directive):
            if after < len(tokens) and tokens[after].text == '(':
                after = other[after] + 1
            if not run and (after >= len(tokens) or tokens[after].kind != 'string'):
                break
            token = Token('macro', token.text, token.start, tokens[after - 1].end)
        elif token.kind != 'string':
            break
        run.append(token)
        i = after
    return run


def sql_tokens(text):
    return [Token(m.lastgroup if m.lastgroup != 'other' else 'mark', m[0], m.start(), m.end())
            for m in SQL_TOKEN.finditer(text) if m.lastgroup not in ('space', 'comment')]


def sql_units(text):
    """The statements of a file, each named after what it makes."""
    tokens, first, body = sql_tokens(text), 0, None
    for i, token in enumerate(tokens):
        if token.kind == 'body':
            body = token.text if body is None else None if body == token.text else body
        if token.text == ';' and body is None:
            yield Unit(made_name(tokens[first:i + 1]), tokens[first:i + 1])
            first = i + 1
    if first < len(tokens):
        yield Unit(made_name(tokens[first:]), tokens[first:])


def made_name(tokens):
    """CREATE TABLE @schema@.work(...): work; CREATE INDEX name ON ...: name; DO ...: do."""
    words = [t.text for t in tokens[:10] if t.kind == 'name']
    if words[0] != 'CREATE':
        return words[0].lower()
    for i, word in enumerate(words):
        if word in ('TABLE', 'FUNCTION', 'VIEW', 'SEQUENCE', 'TYPE', 'INDEX'):
            return words[i + 2] if words[i + 1] == '@schema@' else words[i + 1]
    return words[1].lower()


class Lines:
    def __init__(self, text):
        self.text = text
        self.starts = [0] + [m.end() for m in re.finditer('\n', text)]

    def number(self, at):
        return bisect.bisect_right(self.starts, at)

    def of(self, start, end):
        """The whole lines from start to end."""
        first = self.starts[self.number(start) - 1]
        last = self.text.find('\n', end)
        return first, last if last >= 0 else len(self.text)
