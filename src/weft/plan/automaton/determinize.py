"""The automaton made I/O-deterministic step by step, as events ask for it.

A deterministic state is what the runs with one start and one sequence of marks may read next. On one
event it has at most one successor for each label (a mark) and one for reading the event unmarked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from weft.algebra.predicates import Always, Predicate, variables_of
from weft.algebra.query import Query, Strategy
from weft.plan.automaton.cea import UNLESS, Atom, Automaton, Slot, existence
from weft.plan.automaton.rivals import Rivals, RivalSteps

UNMARKED = -1
NOWHERE = -1
INITIAL = 0  # the state before a run's first event; its number in every automaton
ABSENT = 0  # the class of events that do not exist for the query


@dataclass(frozen=True)
class Label:
    """What a mark says: the names shown, and the part the event plays in conditions."""

    names: tuple[str, ...]
    slots: frozenset[Slot] = frozenset()
    enters: frozenset[int] = frozenset()
    holds: frozenset[str] = frozenset()  # the variables whose attributes are selected that it is bound to


@dataclass(frozen=True)
class Edge:
    """Read the event with a label (or UNMARKED), go to a state (or NOWHERE); `final`: a match ends here."""

    label: int
    target: int
    final: bool


@dataclass(frozen=True)
class _State:
    near: int  # atoms, as bits
    far: int
    phase: int = 0  # for STRICT: 0 no mark yet, 1 within the marks, 2 after them
    rivals: Rivals | None = None  # for MAX


def visible_names(atom: Atom, query: Query) -> tuple[str, ...]:
    """What a match shows of an atom's events after the select list: variables, else the type, else stream>type."""
    names = atom.names
    if query.selected is not None and UNLESS not in names:
        names &= {selected.name for selected in query.selected}
    aliases = sorted(names.difference(atom.own))
    return tuple(aliases) or tuple(name for name in atom.own if name in names)[:1]


def read_of_matches(query: Query) -> frozenset[str]:
    """The variables of which a match shows more than positions."""
    shown = frozenset(item.name for item in query.selected or () if item.attributes)
    values = [item.value for item in query.computed] + ([] if query.top is None else [query.top.value])
    return shown.union(*map(variables_of, values))


class Determinizer:
    """States, classes and edges of one query, numbered in the order they are met."""

    def __init__(self, query: Query, automaton: Automaton) -> None:
        self.query = query
        self.automaton = automaton
        self.labels: list[Label] = []
        self._label_of_atom = [self._number_label(atom) for atom in self.automaton.atoms]
        self.predicates: tuple[Predicate, ...]
        self.predicates, self._guards = self._collect_predicates()
        self._near = [_bits(atoms) for atoms in self.automaton.near]
        self._far = [_bits(atoms) for atoms in self.automaton.far]
        self._last = _bits(self.automaton.last)
        self._strict = query.strategy is Strategy.STRICT
        self._coasting = self._find_coasting()
        self._rivals = self._rival_steps()
        begin = None if self._rivals is None else self._rivals.begin()
        self.states: list[_State] = [_State(_bits(self.automaton.first), 0, rivals=begin)]
        self._state_numbers: dict[_State, int] = {}  # without INITIAL: no run comes back to it
        self.classes: list[int] = [0]
        self._class_numbers: dict[int, int] = {}

    # -- what the labels say ------------------------------------------------------------------

    def _number_label(self, atom: Atom) -> int:
        holds = atom.names & read_of_matches(self.query)
        label = Label(visible_names(atom, self.query), atom.slots, atom.enters, holds)
        if label == Label(()) or not (atom.own or atom.enters):
            return UNMARKED
        if label not in self.labels:
            self.labels.append(label)
        return self.labels.index(label)

    @property
    def may_repeat(self) -> bool:
        """Whether two label sequences can show the same match, so that equal results must be dropped."""
        shown = [label.names for label in self.labels]
        return () in shown or len(set(shown)) < len(shown)

    # -- events to classes --------------------------------------------------------------------

    def _collect_predicates(self) -> tuple[tuple[Predicate, ...], list[tuple[int, ...]]]:
        """The distinct predicates of all guards, existence first, and each guard by their numbers."""
        numbers: dict[Predicate, int] = {existence(self.query): 0}
        guards = []
        for atom in self.automaton.atoms:
            parts = [part for part in atom.guard if part != Always()]
            guards.append(tuple(numbers.setdefault(part, len(numbers)) for part in parts))
        return tuple(numbers), guards

    def class_of(self, truths: Sequence[bool]) -> int:
        """The class of the events with these truths of `predicates`: which atoms can read them."""
        if not truths[0]:
            return ABSENT
        readable = sum(1 << atom for atom, guard in enumerate(self._guards) if all(truths[p] for p in guard))
        number = self._class_numbers.get(readable)
        if number is None:
            number = self._class_numbers[readable] = len(self.classes)
            self.classes.append(readable)
        return number

    # -- states and their edges ---------------------------------------------------------------

    def edges(self, state: int, class_: int) -> list[Edge]:
        """Return the transitions of a state for an event class, unmarked first. A state that only waits has a
        self-loop.
        """
        here = self.states[state]
        reads: dict[int, list[int]] = {}
        for atom in _members((here.near | here.far) & self.classes[class_]):
            reads.setdefault(self._label_of_atom[atom], []).append(atom)
        waits = here.far if state != INITIAL else 0
        if waits:
            reads.setdefault(UNMARKED, [])
        found = []
        for label in sorted(reads):
            atoms = reads[label]
            phase = self._next_phase(here.phase, label)
            if phase is None:
                continue
            near, far = 0, waits if label == UNMARKED else 0
            for atom in atoms:
                near, far = near | self._near[atom], far | self._far[atom]
            final = any(self._last >> atom & 1 for atom in atoms)
            rivals = None
            if self._rivals is not None and here.rivals is not None:
                marks, starts = self._shows(label), state == INITIAL
                rivals, outdone = self._rivals.step(here.rivals, self.classes[class_], marks=marks, starts=starts)
                final = final and not outdone
            target = self._number_state(near, far, phase, rivals)
            if final or target != NOWHERE:
                found.append(Edge(label, target, final))
        return found

    def idles(self, state: int, class_: int) -> bool:
        """Whether an event of the class plainly leaves the state as it is."""
        here = self.states[state]
        if (here.near | here.far) & self.classes[class_]:
            return False
        if state == INITIAL:
            return True
        plain = not (self._strict and here.phase == 1) and here.rivals is None
        return here.near == 0 and plain

    def _number_state(self, near: int, far: int, phase: int, rivals: Rivals | None) -> int:
        if phase == 2:  # nothing may be marked any more
            near, far = near & self._coasting, far & self._coasting
        if not near | far or (rivals is not None and rivals.outdo(near, far)):
            return NOWHERE
        state = _State(near, far, phase, rivals)
        number = self._state_numbers.get(state)
        if number is None:
            number = self._state_numbers[state] = len(self.states)
            self.states.append(state)
        return number

    def _next_phase(self, phase: int, label: int) -> int | None:
        """STRICT as a third component of the state; None when it forbids the step."""
        if not self._strict:
            return 0
        if self._shows(label):
            return 1 if phase < 2 else None
        return 2 if phase else 0

    def _shows(self, label: int) -> bool:
        """Whether a match shows the events with the label."""
        return label != UNMARKED and bool(self.labels[label].names)

    def _rival_steps(self) -> RivalSteps | None:
        """For MAX; with conditions over several events a rival might not be a match."""
        if self.query.strategy is not Strategy.MAX or self.automaton.conditions:
            return None
        shown = sum(1 << atom for atom, label in enumerate(self._label_of_atom) if self._shows(label))
        return RivalSteps(self._near, self._far, _bits(self.automaton.first), self._last, shown)

    def _find_coasting(self) -> int:
        """Atoms from which a run can end without another mark, themselves included: all read unmarked."""
        quiet = [atom for atom, label in enumerate(self._label_of_atom) if not self._shows(label)]
        ending = {n for n in quiet if self._last >> n & 1}
        grown = True
        while grown:
            more = {n for n in quiet if any((self._near[n] | self._far[n]) >> e & 1 for e in ending)} | ending
            grown, ending = more != ending, more
        return _bits(ending)

    # -- numbering that survives a restart -----------------------------------------------------

    def state_keys(self) -> list[list[object]]:
        """The states in order of their numbers, as plain values."""
        return [
            [
                state.near,
                state.far,
                state.phase,
                None if rivals is None else [rivals.equal, rivals.more, rivals.unmarked],
            ]
            for state in self.states
            for rivals in [state.rivals]
        ]

    def restore_states(self, keys: Sequence[Sequence[Any]]) -> None:
        """Number the states as a snapshot has them."""
        self.states = [
            _State(near, far, phase, rivals and Rivals(tuple(rivals[0]), tuple(rivals[1]), rivals[2]))
            for near, far, phase, rivals in keys
        ]
        self._state_numbers = {state: number for number, state in enumerate(self.states) if number != INITIAL}


def _bits(atoms: frozenset[int] | set[int]) -> int:
    return sum(1 << atom for atom in atoms)


def _members(bits: int) -> list[int]:
    found = []
    while bits:
        low = bits & -bits
        found.append(low.bit_length() - 1)
        bits ^= low
    return found
