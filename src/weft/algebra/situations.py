"""Situations: patterns over the events of a partition, with policies that choose among the candidates (EPN).

A program's situations form a network. The matches of each are events of the type it is called, for those that read
it: such a *derived* event has the times of its match (earliest start, latest end of its members; an absence: start
and end of the partition) and the fields of the query as its only attributes. What a situation sees are the input and
the derived events of the types it names: those of situations in stream order by end, start, source (the input, then
situations in the order of the program) and arrival (in match order), those of other queries after all of the same end.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar
from typing import Literal as OneOf

from weft import schema
from weft.algebra.composites import Conditions, Field
from weft.algebra.contexts import WHOLE, Context, FromFor, FromUntil, Whole, Windows
from weft.algebra.definition import Definition
from weft.algebra.policies import Cardinality, Consumption, Evaluation, Repeated
from weft.algebra.predicates import Attribute, is_passed_on
from weft.algebra.terms import mentioned_in, require_distinct, require_known
from weft.tree import Node

Kind = OneOf["sequence", "all", "any", "absence"]
KINDS: tuple[Kind, ...] = ("sequence", "all", "any", "absence")


@dataclass(frozen=True)
class Participant(Node):
    """A slot: events of a type that satisfy `where`, and the policies for them.

    Other events do not exist for the slot. This is more than a condition of the assertion under `OVERRIDE`, which
    looks at the newest event that exists.
    """

    type: str
    variable: str
    repeated: Repeated = Repeated.EVERY
    consumption: Consumption = Consumption.REUSE
    where: Conditions = ()

    def __post_init__(self) -> None:
        require_known(mentioned_in(self.where), (self.variable,))


@dataclass(frozen=True)
class Situation(Node):
    """The candidates to look for in each partition of the context, and the policies that select among them. A candidate
    is

    `sequence`  an event for each slot, each before (`end < start`) that of the next slot;
    `all`       an event for each slot, all different; two slots of one type may exchange theirs;
    `any`       an event for one of the slots; the attributes of the others are missing,

    such that the assertion holds: all its conditions. The policies select among them; in `any` each of `FIRST` and
    `LAST` takes the earliest or latest of all candidates in slots that have it. A set selected in several partitions
    is one match. `absence` matches a partition that closes without a candidate of `any`, whatever the policies.

    `split` and `shared` affect how it is evaluated, not what is found. For the first `split` blocks of a sequence,
    candidates are computed eagerly, when an event ends one; for the others, when a set may be complete. Of `all` it is
    computed eagerly whether the first `split` blocks have a candidate. The events that end a candidate of the first
    `shared` slots are computed once for all situations that begin with these slots.
    """

    kind: Kind
    participants: tuple[Participant, ...]
    assertion: Conditions = ()
    evaluation: Evaluation = Evaluation.IMMEDIATE
    cardinality: Cardinality = Cardinality.UNRESTRICTED
    context: Context = WHOLE
    split: int = 0
    shared: int = 0

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"not a kind of situation: {self.kind!r}")
        if not self.participants:
            raise ValueError("a situation has at least one participant")
        require_distinct(self.variables)
        require_known(mentioned_in(self.assertion), self.variables)
        overriding = [slot.type for slot in self.participants if slot.repeated is Repeated.OVERRIDE]
        if len(set(overriding)) < len(overriding):
            raise ValueError(f"two slots of one type under override: {', '.join(overriding)}")

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables of the slots, in declared order."""
        return tuple(slot.variable for slot in self.participants)

    @property
    def types(self) -> frozenset[str]:
        """The types of events that it looks at: those of its slots, and those that open and close its partitions."""
        types = {slot.type for slot in self.participants}
        match self.context:
            case FromUntil(opener, closer):
                types |= {opener, closer}
            case FromFor(opener):
                types.add(opener)
        return frozenset(types)


@dataclass(frozen=True)
class SituationQuery(Definition):
    """A named situation and the fields of its matches, which are those of the derived event too.

    A field reads the events in the slots, and by an attribute without a variable the values that the partition is
    divided `by`. In an absence there are no events to read.
    """

    untied: ClassVar[str] = "no key divides the partitions or ties all events"
    situation: Situation
    fields: tuple[Field, ...] = ()

    def __post_init__(self) -> None:
        bound = () if self.situation.kind == "absence" else self.situation.variables
        require_known(mentioned_in(field.value for field in self.fields), bound)
        require_distinct(tuple(field.name for field in self.fields))
        read = {node.name for node in self.walk() if isinstance(node, Attribute) and node.variable is None}
        if not read <= set(self.situation.context.by):
            raise ValueError(f"not what the partitions are divided by: {', '.join(sorted(read))}")

    def mentions(self) -> set[str]:
        """The attributes that it reads, in its context too."""
        return super().mentions() | set(self.situation.context.by)

    @cached_property
    def reads(self) -> tuple[str, ...]:
        """The types that the situation looks at."""
        return tuple(sorted(self.situation.types))

    @property
    def relevant_types(self) -> frozenset[str] | None:
        """The types it looks at, unless the time of all events counts."""
        return None if self.counts_time else frozenset(self.reads)

    @property
    def counts_time(self) -> bool:
        """Whether it is an absence in partitions that go on for ever, or slide."""
        return self.situation.kind == "absence" and isinstance(self.situation.context, Windows | Whole)

    @property
    def key_obstacle(self) -> str | None:
        """An absence over all time is of no key."""
        return "an absence counts the time of all events" if self.counts_time else None

    @property
    def shown_variables(self) -> tuple[str, ...]:
        """The variables of its participants."""
        return self.situation.variables

    def passes_on(self, name: str) -> bool:
        """Whether a field is the attribute itself."""
        return is_passed_on(((field.name, field.value) for field in self.fields), name)

    @property
    def field_kinds(self) -> Mapping[str, schema.Kind | None]:
        """The fields, of kinds that the events decide."""
        return dict.fromkeys(field.name for field in self.fields)
