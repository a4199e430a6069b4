"""The names of a text that may be unfinished: its types with their attributes, and the variables of a statement.

The text is read word by word, without its grammar, so that what is written so far counts although it is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from weft.workbench.completion.tables import STEP, Table

TOKEN = r"""(?P<comment>{comment}[^\n]*|/\*(?:[^*]|\*(?!/))*(?:\*/)?)
      |(?P<string>'(?:[^'\n]|'')*'?|"(?:[^"\n]|"")*"?)
      |(?P<name>[$^]?[^\W\d]\w*|`(?:[^`\n]|``)+`)
      |(?P<number>\.?\d[\w.]*)
      |(?P<symbol>[^\s])"""
OPENING, CLOSING = frozenset("([{"), frozenset(")]}")
START, AFTER = "", ""


@dataclass
class CompletionScope:
    """What is known at a place: which role a name has there, and the names of each role."""

    role: str = "nothing"
    owner: str = ""  # whose attributes are meant, a variable or a type
    after_dot: bool = False
    types: dict[str, dict[str, None]] = field(default_factory=dict)  # with their attributes
    streams: dict[str, None] = field(default_factory=dict)
    variables: dict[str, str] = field(default_factory=dict)  # of the statement, with their types; "": not known
    parameters: dict[str, None] = field(default_factory=dict)


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    start: int
    end: int

    @property
    def word(self) -> str:
        return self.text.upper() if self.kind == "name" else self.text


@dataclass
class _Level:
    """What is inside a bracket: the role of names there, and whose attributes they are."""

    role: str
    owner: str = ""


def scope_at(text: str, table: Table, place: int, seen: Mapping[str, Sequence[str]]) -> CompletionScope:
    """What is known at a place of a text; a word that begins there does not count. `seen`: types of sample events."""
    found = re.compile(TOKEN.format(comment=table.comment), re.VERBOSE)
    tokens = [_Token(str(one.lastgroup), one[0], *one.span()) for one in found.finditer(text)]
    if any(_is_inside(token, place) for token in tokens):
        return CompletionScope(role="quoted")
    kept = [token for token in tokens if token.kind != "comment" and (token.start != place or token.kind != "name")]
    scope = _Reader(table, kept, place).read()
    for type_, names in seen.items():
        scope.types.setdefault(type_, {}).update(dict.fromkeys(names))
    return scope


def _is_inside(token: _Token, place: int) -> bool:
    if token.kind not in ("comment", "string") or not token.start < place <= token.end:
        return False
    ended = (
        token.text[-1] == token.text[0] and len(token.text) > 1 if token.kind == "string" else token.text[:2] == "/*"
    )
    return place < token.end or not ended


class _Reader:
    """One way through the tokens."""

    def __init__(self, table: Table, tokens: Sequence[_Token], place: int) -> None:
        self._table, self._tokens, self._place = table, tokens, place
        self._scope = CompletionScope()
        self._levels = [_Level(table.first)]
        self._has_body = False  # of this statement
        self._seen_place = self._is_over = False  # the place; the statement that it is in
        self._declares = self._renames = ""  # the word after which the next name is declared, or is another's
        self._pending = ""  # the word whose name's bracket comes next
        self._uses: list[tuple[str, str]] = []  # variables with attributes: they may be bound later
        self._last = ""  # the type or variable that stood before, or whose bracket was closed

    def read(self) -> CompletionScope:
        """All of it."""
        for number, token in enumerate(self._tokens):
            before = self._tokens[number - 1] if number else _Token("symbol", START, 0, 0)
            after = self._tokens[number + 1] if number + 1 < len(self._tokens) else _Token("symbol", AFTER, 0, 0)
            if token.start >= self._place and not self._seen_place:
                self._note(number)
            if token.kind == "name":
                self._name(token, before, after)
            elif token.text in OPENING:
                self._open(token, before)
            elif token.text in CLOSING:
                self._last = self._levels.pop().owner if len(self._levels) > 1 else ""
            elif token.text in (";", ":"):
                self._divide(token, before)
        if not self._seen_place:
            self._note(len(self._tokens))
        self._resolve()
        return self._scope

    @property
    def _level(self) -> _Level:
        return self._levels[-1]

    # -- the place ------------------------------------------------------------------------------

    def _note(self, number: int) -> None:
        """What a name would be here."""
        self._seen_place = True
        scope = self._scope
        before = self._tokens[number - 1] if number else _Token("symbol", START, 0, 0)
        scope.role, scope.owner = self._level.role, self._level.owner
        if before.text == "." and number > 1:
            scope.after_dot, scope.owner = True, self._tokens[number - 2].text
        elif self._renames or self._declares:
            scope.role = "nothing"
        elif before.kind == "number":
            scope.role = "units"
        elif scope.role == "declares":
            scope.role = "kinds" if before.text == ":" or before.kind == "name" else "nothing"
        elif scope.role == "units":
            scope.role = "nothing"
        elif number > 1 and self._tokens[number - 2].word == "PATTERN":
            scope.role = "shapes"

    # -- words ----------------------------------------------------------------------------------

    def _name(self, token: _Token, before: _Token, after: _Token) -> None:
        if self._is_head(token, after):
            self._begin()
            self._type(token.text)
            self._last, self._declares = token.text, ""
        elif token.word in self._table.roles and before.text != ".":
            self._keyword(token, before)
        elif token.text.startswith("$"):
            if not self._is_over:
                self._scope.parameters[token.text] = None
        elif self._declares:
            self._declared(token)
        elif self._renames:
            self._variable(token.text, self._last if self._renames == "event" else None)
            self._project(token.text)
            self._renames = ""
        else:
            self._used(token, before, after)

    def _is_head(self, token: _Token, after: _Token) -> bool:
        """Whether a query of Step begins: `Name(…):`, which no pattern contains."""
        return (
            self._table is STEP
            and len(self._levels) == 1
            and after.text == "("
            and not self._declares
            and token.word not in self._table.roles
        )

    def _keyword(self, token: _Token, before: _Token) -> None:
        word = token.word
        if word == "AS":
            self._renames = "event" if self._level.role in ("types", "units") else "value"
            self._last = self._last if before.kind == "name" or self._table.binds == "alias" else ""
            return
        if word == "AND" and self._level.role not in ("types", "units"):
            return
        if word in ("AND", "FIRST", "LAST", "EACH", "NOT") and len(self._levels) > 1:
            return
        if word in self._table.starts:
            self._begin()
        elif word not in ("STREAM", "EVENT"):
            self._has_body = True
        self._level.role, self._level.owner = self._table.roles[word], ""
        self._declares = word if word in self._table.declares or word in ("STREAM", "QUERY", "PATTERN", "SINK") else ""

    def _begin(self) -> None:
        """A statement begins, unless only its head was there."""
        if self._has_body or self._table is STEP:
            self._resolve()
            if self._seen_place:
                self._is_over = True
            else:
                self._scope.variables.clear()
                self._scope.parameters.clear()
        self._has_body = False
        self._levels[1:] = []

    def _declared(self, token: _Token) -> None:
        word, self._declares = self._declares, ""
        if word in ("STREAM", "SINK"):
            self._scope.streams[token.text] = None
        else:
            self._type(token.text)
        self._last = token.text
        self._pending = word if word in self._table.declares else ""

    def _used(self, token: _Token, before: _Token, after: _Token) -> None:
        """A name that is no keyword, by the role that names have here."""
        level, scope = self._level, self._scope
        if before.text == ".":
            self._attribute(self._last, token.text)
            self._project(token.text)
        elif level.role == "declares":
            if before.text in ("{", "(", ","):
                self._attribute(level.owner, token.text)
        elif level.role == "types" and level.owner == "":
            self._event(token, before, after)
        elif level.role == "attributes" and after.text != "." and token.text not in scope.variables:
            self._attribute(level.owner, token.text)
        self._last = token.text

    def _event(self, token: _Token, before: _Token, after: _Token) -> None:
        """A type in a pattern, or the variable that is bound to one."""
        is_beside = before.kind == "name" and before.word not in self._table.roles
        binds = self._table.binds
        if (binds == "beside" and is_beside) or (binds == "slash" and before.text == "/"):
            self._scope.variables.pop(self._last, None)
            self._variable(token.text, self._last)
            return
        if binds == "alias" and after.text != "(":
            return
        self._type(token.text)
        if self._table.types_are_variables:
            self._variable(token.text, token.text)

    # -- brackets -------------------------------------------------------------------------------

    def _open(self, token: _Token, before: _Token) -> None:
        level = self._level
        owner = self._last if before.kind == "name" and before.word not in self._table.roles else ""
        if self._pending and token.text in self._table.declares[self._pending]:
            self._levels.append(_Level("declares", self._last))
            self._pending = ""
            return
        role = level.role
        if owner and self._table.brackets.get(token.text) == role:
            self._levels.append(_Level("attributes", owner))
        elif self._table is STEP and token.text == "(" and owner and len(self._levels) == 1:
            self._levels.append(_Level("variables", owner))
        elif self._table is STEP and token.text == "[":
            self._levels.append(_Level("variables"))
        elif role == "nothing" and token.text == "(" and "shapes" in self._table.words:
            self._levels.append(_Level("types"))
        else:
            self._levels.append(_Level(role))

    def _divide(self, token: _Token, before: _Token) -> None:
        """Handle `;`, which continues a pattern, and `:`, which ends the head of a Step query."""
        goes_on = token.text == ";" and "FILTER" in self._table.roles
        begins = token.text == ":" and self._table is STEP and before.text == ")" and len(self._levels) == 1
        if goes_on or begins:
            self._level.role = "types"

    # -- what is known --------------------------------------------------------------------------

    def _type(self, name: str) -> None:
        self._scope.types.setdefault(name, {})

    def _attribute(self, owner: str, name: str) -> None:
        self._uses.append((owner, name))

    def _project(self, name: str) -> None:
        """Note an attribute that the head of a Step query computes."""
        if self._level.role == "variables" and self._level.owner:
            self._attribute(self._level.owner, name)

    def _variable(self, name: str, type_: str | None) -> None:
        if type_ is not None and not self._is_over:
            self._scope.variables[name] = type_

    def _resolve(self) -> None:
        """Give attributes to the types of their variables, which are all known at the end of a statement."""
        scope = self._scope
        for owner, name in self._uses:
            type_ = scope.variables.get(owner, owner)
            if type_ in scope.types:
                scope.types[type_][name] = None
        self._uses.clear()
