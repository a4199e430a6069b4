"""Compile rules to rows of the tables that the kernel executes (`weft.kernels.rules.tables`)."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from weft.algebra.predicates import (
    MIRRORED,
    Attribute,
    Comparison,
    Expression,
    Like,
    Literal,
    Predicate,
    RegexMatch,
    Value,
)
from weft.algebra.rules import (
    Absence,
    Between,
    DefinedField,
    Events,
    LookBack,
    Rule,
    Summary,
    Terminator,
    Within,
    mentioned,
    summaries,
)
from weft.kernels.machine import machine, tagged
from weft.kernels.rules import tables as t
from weft.runtime.machine.code import OPERATORS, Code, Instruction, Quantified, Terms, refused
from weft.runtime.machine.values import Tagged
from weft.runtime.operators.rules.index import Guard, Way, choose
from weft.runtime.operators.rules.layout import Layout
from weft.runtime.operators.rules.summaries import SeriesTable
from weft.schema import Kind

_PICKS = {"each": t.EACH, "first": t.FIRST, "last": t.LAST}
_FUNCTIONS = {"SUM": t.SUM, "AVG": t.AVERAGE, "MIN": t.LEAST, "MAX": t.GREATEST, "COUNT": t.PRESENT}
_KINDS = {Kind.TEXT: tagged.TEXT, Kind.INT: tagged.INTEGER, Kind.FLOAT: tagged.FLOAT, Kind.BOOL: tagged.BOOLEAN}
ENDLESS = 1 << 62
Operand = tuple[int, int, int]


def _words() -> array[int]:
    return array("q")


@dataclass
class Tables:
    """Flat tables that grow rule by rule."""

    rows: array[int] = field(default_factory=_words)
    steps: array[int] = field(default_factory=_words)
    extents: array[int] = field(default_factory=_words)
    tests: array[int] = field(default_factory=_words)
    keys: array[int] = field(default_factory=_words)
    fields: array[int] = field(default_factory=_words)
    own: array[int] = field(default_factory=_words)
    own_at: array[int] = field(default_factory=_words)
    sort_keys: array[int] = field(default_factory=_words)  # of each rule within its row


class _Bound(Terms):
    """Bindings of conditions: the steps of a rule are slots of the machine, and its summaries results."""

    def __init__(self, compiler: RuleCompiler, hand_type: int) -> None:
        self._compiler = compiler
        self._hand_type = hand_type

    def line(self, term: Expression) -> Instruction:
        """See `Terms.line`."""
        match term:
            case Attribute():
                step, column = self._compiler.read(term, self._hand_type)
                return machine.ATTRIBUTE, step, column, 0
            case Summary():
                return machine.RESULT, self._compiler.result(term), 0, 0
        raise refused(term)

    def quantified(self, atom: Predicate) -> Quantified:
        """See `Terms.quantified`."""
        if isinstance(atom, Like | RegexMatch):
            raise refused(atom)
        return Quantified()


class RuleCompiler:
    """Compiles rules one by one into shared tables."""

    def __init__(self, layout: Layout, tag: Callable[[Value], Tagged]) -> None:
        self.tables = Tables()
        self.deepest = 1  # number of frames that the longest rule needs
        self.summarized = 0
        self._layout = layout
        self._tag = tag
        self._steps: dict[str, int] = {}  # variable -> its step in the rule
        self._types: list[int] = []  # of the steps
        self._results: dict[Summary, int] = {}
        self._floors: Mapping[int, int] = {}
        self._sources: dict[tuple[int, ...], int] = {}
        self.series = SeriesTable()
        self._memos: dict[Hashable, int] = {}
        self._blocks: dict[Hashable, int] = {}
        self.code = Code()

    def add(self, rule: Rule, labels: int, floors: Mapping[int, int]) -> Way:
        """Compile a rule, and return how the index finds it.

        `labels` is the code of the empty set of variables; events of a type before its floor are ignored.
        """
        self._floors = floors
        self._steps = {name: number for number, name in enumerate(rule.variables)}
        self._types = [self._layout.type(step.events.type) for step in rule.steps]
        tables = self.tables
        tables.own_at.append(len(tables.own))
        for number, step in enumerate(rule.lookbacks, start=1):
            consumed = step.variable in rule.consumes
            mark = self._layout.mark(self._types[number], (len(tables.own_at) - 1, step.variable)) if consumed else -1
            tables.own.extend((step.within.ticks, mark))
        way = choose(self._guards(rule.terminator))
        lines = [self._terminator(rule.terminator, [guard.condition for guard in way[2]])]
        lines += [self._look_back(step, number, rule) for number, step in enumerate(rule.lookbacks, start=1)]
        steps_at, _ = self._put("steps", t.STEP, lines)
        self._stretch(steps_at, rule.lookbacks)
        conditions, (tested_at, shown_at, shown_end) = self._summarized(rule)
        fields_at, fields_end = self._fields(rule.fields)
        tables.rows.extend((steps_at, len(lines), *conditions, tested_at, shown_at, shown_end))
        operands = all(isinstance(field.value, Attribute | None) for field in rule.fields)
        plain = operands and shown_end == tested_at and (not rule.consumes or len(rule.lookbacks) == 1)
        alone = any(step.count not in (1, None) for step in rule.lookbacks)
        tables.rows.extend((fields_at, fields_end, -1, 0, labels, int(bool(rule.consumes)), int(plain)))
        sorted_by, key = self._sorting(lines)
        tables.rows.extend((len(tables.own_at) if alone else 0, sorted_by, 0, 0))
        tables.sort_keys.append(key)
        self.deepest = max(self.deepest, len(lines))
        self.summarized = max(self.summarized, shown_end - tested_at)
        return way

    def _sorting(self, lines: Sequence[Sequence[int]]) -> tuple[int, int]:
        """Return the look-back that sorts the rules of a row, and the sort key of this rule (`rule_tables`)."""
        tables = self.tables
        for depth, line in enumerate(lines[1:], start=1):
            if line[t.TESTS_END] - line[t.OWN_TESTS_AT] == 1 and not line[t.CONSUMED]:
                test = line[t.OWN_TESTS_AT] * t.TEST
                operator = tables.tests[test + t.T_OPERATOR]
                kind, word = tables.own[tables.own_at[-1] + tables.tests[test + t.T_A] :][:2]
                if kind == tagged.INTEGER and operator < tagged.EQUAL:
                    return depth, word if operator >= tagged.GREATER else ~word
        for depth, line in enumerate(lines[1:], start=1):
            if line[t.TESTS_END] == line[t.OWN_TESTS_AT] and not line[t.CONSUMED]:
                return depth, ~tables.own[tables.own_at[-1] + t.OWN * (depth - 1) + t.TICKS]
        return 0, 0

    def _stretch(self, steps_at: int, lookbacks: Iterable[LookBack]) -> None:
        """Set the shortest and the longest window of steps that several rules share."""
        steps = self.tables.steps
        for number, step in enumerate(lookbacks, start=1):
            at = (steps_at + number) * t.STEP
            steps[at + t.LONGEST] = max(steps[at + t.LONGEST], step.within.ticks)
            steps[at + t.SHORTEST] = min(steps[at + t.SHORTEST], step.within.ticks)

    def _put(self, name: str, width: int, lines: Sequence[Sequence[int]]) -> tuple[int, int]:
        """Append lines to a table unless equal ones exist, and return where they begin and end."""
        table: array[int] = getattr(self.tables, name)
        flat = tuple(word for line in lines for word in line)
        at = self._blocks.setdefault((name, flat), len(table) // width)
        if at * width == len(table):
            table.extend(flat)
        return at, at + len(lines)

    # -- steps ----------------------------------------------------------------------------------

    def _guards(self, terminator: Terminator) -> list[Guard]:
        """Return the terminator's conditions that the index may answer."""
        guards: list[Guard] = []
        for condition in terminator.events.static:
            match condition:
                case Comparison(operator, Attribute(name, None), Literal(value)):
                    guards.append(Guard(self._layout.column(self._types[0], name), operator, value, condition))
        return guards

    def _terminator(self, terminator: Terminator, answered: Sequence[Predicate]) -> list[int]:
        tests = self._tests([each for each in terminator.events.static if each not in answered], self._types[0])
        absences = self._absences(terminator.absences)
        return [self._types[0], 0, 0, ENDLESS, t.STARTS, ENDLESS, -1, 0, 0, *tests, *absences, 0, 0, -1]

    def _look_back(self, step: LookBack, number: int, rule: Rule) -> list[int]:
        type_ = self._types[number]
        chain, keys_at, keys_end, left = self._found(step.events, type_)
        anchor = self._steps[step.within.anchor]
        count = ENDLESS if step.count is None else step.count
        tests, absences = self._tests(left, type_), self._absences(step.absences)
        source = self._source(type_, anchor, chain, self.tables.keys[keys_at * t.KEY : keys_end * t.KEY])
        line = [type_, anchor, 0, ENDLESS, _PICKS[step.pick], count, chain, keys_at, keys_end, *tests, *absences]
        return [*line, int(step.variable in rule.consumes), self._floors.get(type_, 0), source]

    def _tests(self, conditions: Sequence[Predicate], type_: int) -> tuple[int, int, int]:
        """Compile tests; return where they begin, where those with own constants begin, and where they end."""
        shared: list[tuple[int, ...]] = []
        own: list[tuple[int, ...]] = []
        for condition in conditions:
            match condition:
                case Comparison(operator, Attribute(name, None), Literal(value)):
                    own.append((OPERATORS[operator], self._layout.column(type_, name), *self._own(value)))
                case Comparison(operator, Summary() as summary, Literal(value)):
                    own.append((OPERATORS[operator], -1 - self._results[summary], *self._own(value)))
                case Comparison(operator, Literal(value), Summary() as summary):
                    own.append((OPERATORS[MIRRORED[operator]], -1 - self._results[summary], *self._own(value)))
                case _:
                    shared.append(self._test(condition, type_))
        at, end = self._put("tests", t.TEST, [*shared, *own])
        return at, at + len(shared), end

    def _own(self, value: Value) -> Operand:
        """Store a constant of the rule itself, and return it as an operand."""
        tables = self.tables
        slot = len(tables.own) - tables.own_at[-1]
        tables.own.extend(self._tag(value))
        return t.OF_RULE, slot, 0

    def _source(self, type_: int, anchor: int, chain: int, key: Sequence[int]) -> int:
        """Return the number of the events that a step searches if they only depend on the terminator, else -1."""
        if anchor > 0 or any(step > 0 for step in key[:: t.KEY]):
            return -1
        return self._sources.setdefault((type_, chain, *key), len(self._sources))

    def _absences(self, absences: Iterable[Absence]) -> tuple[int, int]:
        return self._put("extents", t.EXTENT, [self._extent(absence, t.EXISTS, None) for absence in absences])

    @property
    def memos(self) -> int:
        """The number of extents whose result is cached at a terminator, for all rules."""
        return len(self._memos)

    def _extent(self, node: Absence | Summary, function: int, attribute: str | None) -> list[int]:
        type_ = self._layout.type(node.events.type)
        column = -1 if attribute is None else self._layout.column(type_, attribute)
        by_series = isinstance(node, Summary) and self._joins_by_keys(node.events)
        found = self._series(node.events, type_, column) if by_series else (-1, *self._events(node.events, type_))
        series, chain, keys_at, keys_end, tests_at, tests_end = found
        match node.extent:
            case Within(anchor, ticks):
                where = [0, self._steps[anchor], ticks]
            case Between(first, second):
                where = [1, self._steps[first], self._steps[second]]
            case _:
                raise TypeError(f"not an extent: {node.extent!r}")
        line = [type_, *where, chain, keys_at, keys_end, tests_at, tests_end]
        return [*line, function, column, self._floors.get(type_, 0), series, self._memo(node, type_)]

    def _memo(self, node: Absence | Summary, type_: int) -> int:
        """Return the cache number of an extent that depends on no other event than the terminator, else -1."""
        terminator = next(iter(self._steps))
        if not mentioned(node) <= {terminator}:
            return -1
        return self._memos.setdefault((self._types[0], terminator, node, self._floors.get(type_, 0)), len(self._memos))

    def _joins_by_keys(self, events: Events) -> bool:
        """Whether events are selected only by constants and by equality with bound attributes."""
        names = {name for name, _ in events.equalities}
        return len(names) == len(events.related)

    def _series(self, events: Events, type_: int, column: int) -> tuple[int, int, int, int, int, int]:
        """Add the series of events that join by keys, and the operands that the columns of its key equal."""

        def tests() -> tuple[int, int]:
            return self._put("tests", t.TEST, [self._test(condition, type_) for condition in events.static])

        operands = {self._layout.column(type_, name): self._operand(bound, 0) for name, bound in events.equalities}
        columns = tuple(sorted(operands))
        series = self.series.add(type_, columns, column, self._floors.get(type_, 0), events.static, tests)
        return series, -1, *self._put("keys", t.KEY, [operands[key] for key in columns]), 0, 0

    def _events(self, events: Events, type_: int) -> tuple[int, int, int, int, int]:
        """Return where the events are found (chain and key), and the remaining tests."""
        chain, keys_at, keys_end, left = self._found(events, type_)
        tests = self._put("tests", t.TEST, [self._test(condition, type_) for condition in left])
        return chain, keys_at, keys_end, *tests

    def _found(self, events: Events, type_: int) -> tuple[int, int, int, list[Predicate]]:
        """Return where the events are found (chain and key), and the remaining conditions."""
        equal: dict[int, tuple[Operand, Predicate]] = {}
        for condition in (*events.related, *events.static):
            operand = self._equal_operand(condition)
            if operand is None or (equal and condition in events.static):
                continue  # joined attributes are more selective than a constant
            assert isinstance(condition, Comparison)
            assert isinstance(condition.left, Attribute)
            equal.setdefault(self._layout.column(type_, condition.left.name), (operand, condition))
        columns = tuple(sorted(equal))
        chain = self._layout.chain(type_, columns) if columns else -1
        keys = self._put("keys", t.KEY, [equal[column][0] for column in columns])
        answered = [condition for _, condition in equal.values()] if len(equal) == 1 else []
        conditions = (*events.static, *events.related)
        return chain, *keys, [each for each in conditions if not any(each is known for known in answered)]

    def _equal_operand(self, condition: Predicate) -> Operand | None:
        match condition:
            case Comparison("=", Attribute(_, None), (Literal() | Attribute(_, str())) as right):
                return self._operand(right, 0)
        return None

    # -- tests and code -------------------------------------------------------------------------

    def read(self, attribute: Attribute, hand_type: int) -> tuple[int, int]:
        """Return the step of an attribute's event (AT_HAND for the current event), and its column."""
        step = t.AT_HAND if attribute.variable is None else self._steps[attribute.variable]
        type_ = hand_type if attribute.variable is None else self._types[step]
        return step, self._layout.column(type_, attribute.name)

    def result(self, summary: Summary) -> int:
        """Return the number of a summary among those of the rule."""
        return self._results[summary]

    def _operand(self, expression: Literal | Attribute, hand_type: int) -> Operand:
        match expression:
            case Literal(value):
                return t.CONSTANT, *self._tag(value)
            case Attribute():
                return *self.read(expression, hand_type), 0

    def _test(self, condition: Predicate, type_: int) -> tuple[int, ...]:
        match condition:
            case Comparison(operator, Attribute(name, None), (Literal() | Attribute(_, str())) as right):
                return OPERATORS[operator], self._layout.column(type_, name), *self._operand(right, type_)
        return t.BY_CODE, 0, 0, *self.code.add(condition, _Bound(self, type_))

    # -- fields of firings ----------------------------------------------------------------------

    def _summarized(self, rule: Rule) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
        """Compile the conditions on summaries; return their tests, and the extents, those of conditions first."""
        tested = dict.fromkeys(found for condition in rule.conditions for found in summaries(condition))
        shown = dict.fromkeys(found for part in rule.fields for found in summaries(part) if found not in tested)
        lines = [self._extent(found, self._function(found), found.attribute) for found in (*tested, *shown)]
        at, end = self._put("extents", t.EXTENT, lines)
        self._results = {found: number for number, found in enumerate((*tested, *shown))}
        return self._tests(rule.conditions, 0), (at, at + len(tested), end)

    def _function(self, summary: Summary) -> int:
        return t.NUMBER if summary.attribute is None else _FUNCTIONS[summary.function]

    def _fields(self, fields: Iterable[DefinedField]) -> tuple[int, int]:
        lines: list[list[int]] = []
        for defined in fields:
            kind = _KINDS[defined.kind]
            match defined.value:
                case Attribute(_, str()) as attribute:
                    lines.append([kind, *self.read(attribute, 0), 0, 0])
                case None:
                    lines.append([kind, -1, 0, 0, 0])
                case value:
                    lines.append([kind, -1, 0, *self.code.add(value, _Bound(self, 0))])
        return self._put("fields", t.FIELD, lines)
