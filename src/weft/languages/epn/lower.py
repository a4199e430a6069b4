"""From the syntax of patterns with policies to the algebra: every pattern checked and turned into a situation."""

from __future__ import annotations

from typing import TypeVar

from weft.algebra.composites import Field
from weft.algebra.policies import Cardinality, Consumption, Evaluation, Repeated
from weft.algebra.query import Program
from weft.algebra.situations import KINDS, Kind, Participant, Situation, SituationQuery
from weft.errors import Diagnostic, did_you_mean
from weft.languages.ceql.declarations import Schema, given_catalog
from weft.languages.conditions import Families
from weft.languages.defined import NOTHING_DEFINED, Defined
from weft.languages.epn import syntax
from weft.languages.epn.conditions import Derivations, EpnConditions, ParticipantFilters
from weft.languages.epn.contexts import ContextLowering
from weft.languages.epn.doubts import warn
from weft.languages.epn.policies import Settings, lower_policies, lowered_split
from weft.languages.epn.scope import EpnTypes, scope_of
from weft.languages.findings import Findings
from weft.languages.limits import MOST_PARTICIPANTS
from weft.languages.syntax import Name
from weft.source import SourceText, Span
from weft.tree import Node

LANGUAGE = "epn"
AnyClause = TypeVar("AnyClause", bound=syntax.Clause)


def lower(
    program: syntax.Program,
    source: SourceText,
    *,
    schema: Schema | None = None,
    time_unit: str = "ms",
    defined: Defined = NOTHING_DEFINED,
) -> tuple[Program, tuple[Diagnostic, ...]]:
    """The program in the algebra, with warnings; raises ProgramError with all errors that were found."""
    findings = Findings(source)
    if not program.patterns:
        hint = "a pattern looks like this: pattern Rise sequence(A a, B b) where a.x < b.x context fixed 10 minutes"
        findings.error("no-pattern", "there is no pattern in this text", program.span, hint)
    declared = {type_.name: type_ for type_ in given_catalog(schema).all_types()} or None
    types = EpnTypes(declared, {node.name.text: node.name for node in reversed(program.patterns)}, defined)
    queries = []
    for node in program.patterns:
        types.reading = node.name.text
        _refuse_known_name(node.name, types, findings)
        lowering = _PatternLowering(node, types, time_unit, findings)
        queries.append(lowering.lower())
        types.derived[node.name.text] = lowering.derived
    warnings = findings.conclude()
    found = tuple(query for query in queries if query is not None)
    return Program(LANGUAGE, found, text=source.text, time_unit=time_unit), warnings


def _refuse_known_name(name: Name, types: EpnTypes, findings: Findings) -> None:
    if name.text in types.derived:
        line = findings.source.location(types.patterns[name.text].span.start)[0]
        message = f"a second pattern {name.text!r} (the first is in line {line})"
        findings.error("duplicate-pattern", message, name.span, "its events are called like it: choose another name")
    elif name.text in (types.declared or {}):
        message = f"the pattern is called like the event type {name.text!r} of the input"
        findings.error("duplicate-pattern", message, name.span, "its events are called like it: choose another name")


class _PatternLowering:
    """One pattern on its way to the algebra."""

    def __init__(self, node: syntax.Pattern, types: EpnTypes, time_unit: str, findings: Findings) -> None:
        self._node = node
        self._time_unit = time_unit
        self._findings = findings
        self._context = self._clause(syntax.Context)
        self._scope = scope_of(node, self._context, types, time_unit, findings)
        self.derived: dict[str, Families] = {}

    def lower(self) -> SituationQuery | None:
        """The pattern in the algebra, None when it is so wrong that it cannot be built; that has been reported."""
        kind = self._kind()
        where = self._clause(syntax.Where)
        settings = lower_policies(self._clause(syntax.Policies), self._scope.participants, self._findings)
        finds_all = kind in ("sequence", "all") and settings.finds_all(self._scope.participants)
        conditions = EpnConditions(self._scope, self._findings, finds_all=finds_all)
        assertion = conditions.conditions(where.condition if where else None)
        context = ContextLowering(self._scope, self._time_unit, self._findings).lower(self._context, kind)
        participants = self._participants(settings)
        fields = self._fields(kind == "absence")
        if len(participants) < len(self._node.participants):
            return None
        evaluation, cardinality = settings.value("evaluation"), settings.value("cardinality")
        assert isinstance(evaluation, Evaluation)
        assert isinstance(cardinality, Cardinality)
        situation = Situation(kind, participants, assertion, evaluation, cardinality, context)
        if settings.split is not None:
            situation = lowered_split(settings.split, situation, self._findings)
        warn(self._node, situation, self._findings)
        spans: list[tuple[Node, Span]] = [
            (slot, self._scope.participants[slot.variable].span) for slot in situation.participants
        ]
        spans += [(condition, where.span) for condition in assertion if where is not None]
        return SituationQuery(self._node.name.text, situation, fields, spans=tuple(spans))

    def _clause(self, wanted: type[AnyClause]) -> AnyClause | None:
        """The clause of a kind, if there is one; further ones are reported."""
        found = [clause for clause in self._node.clauses if isinstance(clause, wanted)]
        for clause in found[1:]:
            word = wanted.__name__.lower()
            self._findings.error("clause-twice", f"a second {word} clause", clause.span, "a pattern has one of each")
        return found[0] if found else None

    def _kind(self) -> Kind:
        wanted = self._node.kind.text.lower()
        found = next((kind for kind in KINDS if kind == wanted), None)
        if found is None:
            message = f"there is no kind of pattern {self._node.kind.text!r}"
            near = did_you_mean(wanted, KINDS) or ""
            hint = near if near.startswith("did") else "kinds are sequence, all, any and absence"
            self._findings.error("unknown-kind", message, self._node.kind.span, hint)
        most = MOST_PARTICIPANTS.get(found or "", len(self._node.participants))
        if len(self._node.participants) > most:
            message = f"{len(self._node.participants)} participants: a pattern of kind {found} has at most {most}"
            hint = "let a pattern find some of them, and another one that pattern and the rest"
            self._findings.error("too-many-participants", message, self._node.kind.span, hint)
        return found or "all"

    def _participants(self, settings: Settings) -> tuple[Participant, ...]:
        """Return the participants, without those in conflict with others; conflicts have been reported."""
        found = []
        newest: dict[str, Name] = {}
        for variable, node in self._scope.participants.items():
            repeated, consumption = settings.value("repeated", variable), settings.value("consumption", variable)
            assert isinstance(repeated, Repeated)
            assert isinstance(consumption, Consumption)
            where = ParticipantFilters(self._scope, variable, self._findings).conditions(node.filter)
            if repeated is not Repeated.OVERRIDE or self._is_only_newest(node, newest):
                found.append(Participant(node.type.text, variable, repeated, consumption, where))
        return tuple(found)

    def _is_only_newest(self, node: syntax.Participant, newest: dict[str, Name]) -> bool:
        """Whether no participant before is the newest event of this type too."""
        type_ = node.type.text
        other = newest.setdefault(type_, node.variable)
        if other is node.variable:
            return True
        message = f"{other.text!r} and {node.variable.text!r} are both the newest {type_}: the same event"
        hint = f"give one of them another policy: {node.variable.text}: repeated last"
        self._findings.error("override-twice", message, node.span, hint)
        return False

    def _fields(self, is_absence: bool) -> tuple[Field, ...]:
        clause = self._clause(syntax.Derive)
        lowering = Derivations(self._scope, is_absence, self._findings)
        fields: dict[str, Field] = {}
        for node in clause.fields if clause is not None else ():
            name = node.name.text
            if name in fields:
                self._findings.error(
                    "duplicate-field", f"a second field {name!r}", node.name.span, "rename one of them"
                )
            value, self.derived[name] = lowering.value(node.value)
            fields[name] = Field(name, value)
        return tuple(fields.values())
