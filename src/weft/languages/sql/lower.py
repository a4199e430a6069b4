"""From the syntax of row patterns to the algebra: every clause checked and turned into a `RowPattern`."""

from __future__ import annotations

from collections.abc import Mapping

from weft.algebra.query import Program
from weft.algebra.row_patterns import Define, OrderKey, RowColumn, RowMeasure, RowPattern, RowSkip, Subset
from weft.errors import Diagnostic
from weft.languages.defined import NOTHING_DEFINED, Defined
from weft.languages.findings import Findings
from weft.languages.sql import syntax
from weft.languages.sql.clauses import LocatedClause
from weft.languages.sql.constants import DAY_TIME
from weft.languages.sql.doubts import warn
from weft.languages.sql.navigation import Navigations, RowNames
from weft.languages.sql.parser import parse_clause
from weft.languages.sql.patterns import lower_pattern, variables_of
from weft.languages.sql.types import type_of
from weft.source import SourceText, Span

LANGUAGE = "sql"
Columns = Mapping[str, str]  # the columns of the input, in order, with the names of their SQL types (or "")


def lower(
    program: syntax.SqlText,
    source: SourceText,
    *,
    schema: object = None,
    time_unit: str = "ms",
    defined: Defined = NOTHING_DEFINED,
) -> tuple[Program, tuple[Diagnostic, ...]]:
    """The row patterns of a text as queries, with warnings; raises ProgramError with all errors that were found."""
    findings = Findings(source)
    names: dict[str, int] = {}
    queries = []
    for clause in program.clauses:
        name = clause.name.text if clause.name is not None else source.stem
        names[name] = names.get(name, 0) + 1
        name = name if names[name] == 1 else f"{name}_{names[name]}"
        queries.append(_ClauseLowering(clause, name, None, findings).lower())
    warnings = findings.conclude()
    return Program(LANGUAGE, (), text=source.text, time_unit=time_unit, row_patterns=tuple(queries)), warnings


def compile_clause(
    source: SourceText, located: LocatedClause, columns: Columns | None = None, name: str = ""
) -> tuple[RowPattern, tuple[Diagnostic, ...]]:
    """One clause as a query over an input with these columns, and the warnings; raises ProgramError if it is wrong."""
    findings = Findings(source)
    clause = parse_clause(source, located)
    name = name or (clause.name.text if clause.name is not None else source.stem)
    query = _ClauseLowering(clause, name, columns, findings).lower()
    return query, findings.conclude()


class _ClauseLowering:
    """One clause on its way to the algebra."""

    def __init__(self, node: syntax.MatchRecognize, name: str, columns: Columns | None, findings: Findings) -> None:
        self._node = node
        self._name = name
        self._columns = columns
        self._findings = findings
        self._primary = variables_of(node.pattern)
        self._subsets = self._lower_subsets()
        members: dict[str, tuple[str, ...]] = {name: (name,) for name in self._primary}
        members.update({subset.name: subset.variables for subset in self._subsets})
        self._scope = RowNames(members, None if columns is None else tuple(columns), findings)

    def lower(self) -> RowPattern:
        """The clause in the algebra; what is wrong has been reported, with something harmless in its place."""
        node = self._node
        order = tuple(self._order_key(item) for item in node.order)
        rows = node.rows.mode if node.rows is not None else "one"
        query = RowPattern(
            self._name,
            lower_pattern(node.pattern, rows, self._findings),
            self._defines(),
            self._measures(),
            tuple(dict.fromkeys(self._scope.column(column) for column in node.partition)),
            order,
            rows,  # type: ignore[arg-type] # the parser makes these
            self._skip(),
            self._within(order),
            self._subsets,
            node.table,
            tuple(RowColumn(name, type_) for name, type_ in (self._columns or {}).items()),
            spans=tuple((define, item.span) for define, item in self._placed),
        )
        self._check_output(query)
        warn(query, node, self._findings)
        return query

    def _order_key(self, item: syntax.SortItem) -> OrderKey:
        first = item.nulls_first if item.nulls_first is not None else not item.descending
        return OrderKey(self._scope.column(item.column), item.descending, first)

    # ---------------------------------------------------------------- variables

    def _lower_subsets(self) -> tuple[Subset, ...]:
        found: dict[str, Subset] = {}
        for item in self._node.subsets:
            name = item.name.folded
            if name in found:
                self._error("duplicate-subset", f"a second SUBSET {name!r}", item.name.span, "rename one of them")
            if name in self._primary:
                message = f"{name!r} is a variable of PATTERN already"
                self._error("duplicate-subset", message, item.name.span, "give the subset another name")
            members: dict[str, syntax.Identifier] = {}
            for member in item.members:
                if member.folded not in self._primary:
                    self._unknown(member, "SUBSET")
                elif member.folded in members:
                    self._error("duplicate-member", f"{member.text!r} is in this subset already", member.span, None)
                members[member.folded] = member
            found[name] = Subset(name, tuple(member for member in members if member in self._primary))
        return tuple(found.values())

    def _unknown(self, name: syntax.Identifier, where: str) -> None:
        hint = f"variables of PATTERN are {', '.join(self._primary)}" if self._primary else None
        near = [variable for variable in self._primary if variable.upper() == name.text.upper()]
        if near:
            hint = f'quoted names are compared letter by letter: PATTERN has "{near[0]}"'
        message = f"{where} names {name.text!r}, which PATTERN does not have"
        self._error("unknown-variable", message, name.span, hint)

    def _error(self, code: str, message: str, span: Span, hint: str | None) -> None:
        self._findings.error(code, message, span, hint)

    # ---------------------------------------------------------------- subclauses

    def _defines(self) -> tuple[Define, ...]:
        lowering = Navigations(self._scope, "DEFINE")
        subsets = {subset.name for subset in self._subsets}
        found: dict[str, Define] = {}
        self._placed: list[tuple[Define, syntax.DefineItem]] = []
        for item in self._node.defines:
            name = item.variable.folded
            if name in subsets:
                hint = "define its members"
                self._error("define-subset", f"{name!r} is a SUBSET: it has no condition", item.variable.span, hint)
            elif name not in self._primary:
                self._unknown(item.variable, "DEFINE")
            elif name in found:
                hint = "join the conditions by AND, or by OR"
                self._error("duplicate-define", f"a second condition of {name!r}", item.variable.span, hint)
            define = Define(name, lowering.lower(item.condition))
            self._refuse_value(item, define)
            found[name] = define
            self._placed.append((define, item))
        return tuple(found.values())

    def _refuse_value(self, item: syntax.DefineItem, define: Define) -> None:
        type_ = type_of(define.condition, self._columns or {})
        if type_ and type_ != "boolean" and type_ != "null":
            hint = "compare it with something: A AS price > 10"
            message = f"the condition of {define.variable!r} is a {type_}, neither true nor false"
            self._error("not-a-condition", message, item.condition.span, hint)

    def _measures(self) -> tuple[RowMeasure, ...]:
        lowering = Navigations(self._scope, "MEASURES")
        found: dict[str, RowMeasure] = {}
        for item in self._node.measures:
            name = item.name.text
            if name.lower() in (known.lower() for known in found):
                self._error("duplicate-measure", f"a second measure {name!r}", item.name.span, "rename one of them")
            value = lowering.lower(item.value)
            found[name] = RowMeasure(name, value, type_of(value, self._columns or {}))
        return tuple(found.values())

    def _check_output(self, query: RowPattern) -> None:
        """Refuse a result without columns, and measures that are called like one of its columns."""
        if not query.output_columns and query.rows == "one":
            hint = "say what to report of a match: MEASURES FIRST(ts) AS start_time"
            self._error("no-columns", "the result has no columns: there is no MEASURES", self._node.span, hint)
        others = {*query.partition}
        if query.rows != "one":
            others |= {*(key.column for key in query.order), *(column.name for column in query.columns)}
        taken = {name.lower() for name in others}
        for item in self._node.measures:
            if item.name.text.lower() in taken:
                message = f"the result has a column {item.name.text!r} already"
                self._error("duplicate-column", message, item.name.span, "give the measure another name")

    def _skip(self) -> RowSkip:
        item = self._node.skip
        if item is None or item.variable is None:
            return RowSkip(item.mode) if item is not None else RowSkip()  # type: ignore[arg-type]
        members = self._scope.variables.get(item.variable.folded)
        if members is None:
            self._unknown(item.variable, "AFTER MATCH SKIP")
            return RowSkip()
        return RowSkip(item.mode, members, item.variable.folded)  # type: ignore[arg-type]

    def _within(self, order: tuple[OrderKey, ...]) -> int | None:
        node = self._node.within
        if node is None:
            return None
        if not isinstance(node, syntax.SqlLiteral) or node.kind != DAY_TIME:
            hint = "write WITHIN INTERVAL '10' MINUTE; months and years differ in length"
            self._error("within", "WITHIN takes an interval of days, hours, minutes or seconds", node.span, hint)
            return None
        if node.value <= 0:
            self._error("within", "no match fits into this interval", node.span, "write a longer interval")
        if not order or order[0].descending:
            message = "WITHIN measures time along ORDER BY, which is not ascending by a timestamp"
            self._error("within", message, node.span, "write ORDER BY ts, the time of the rows, before it")
        elif self._columns is not None:
            type_ = self._columns.get(order[0].column, "")
            if type_ and not type_.startswith(("timestamp", "date")):
                message = f"WITHIN measures time along {order[0].column!r}, which is a {type_}"
                self._error("within", message, node.span, "order by a timestamp, or test the difference in DEFINE")
        return int(node.value)
