"""The rule operator: batches of events in, matches of all rules out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from weft.algebra.analysis.rule_reach import joint_reach, reach_of
from weft.algebra.rules import Rule
from weft.kernels.rules import tables as t
from weft.kernels.rules.look_back import fire
from weft.kernels.warming import compile_first
from weft.plan.dropping import losable_types
from weft.runtime.data.events import EventBatch, Int64s
from weft.runtime.data.matches import MatchBatch
from weft.runtime.operators.operator import TOGETHER, Operator, named
from weft.runtime.operators.rules.compile import RuleCompiler
from weft.runtime.operators.rules.index import IndexBuilder, Way
from weft.runtime.operators.rules.inputs import TypeCoder, batch_of_events
from weft.runtime.operators.rules.layout import Layout
from weft.runtime.operators.rules.memory import Memory
from weft.runtime.operators.rules.outputs import Outputs
from weft.runtime.operators.rules.state import load_memory, memory_pages
from weft.runtime.operators.rules.summaries import Summaries
from weft.runtime.store.pages import Paging

INTERRUPT_CHECK_EVERY = 1 << 22  # visited candidates between two checks for Ctrl-C


class RuleOperator(Operator):
    """The rules of a layer over one stream of events."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        compile_first(fire)
        self.rules: list[Rule | None] = []
        self._all: list[Rule] = []  # including removed ones, whose rows stay in the tables
        self._labels: list[int] = []
        self._named: dict[str, list[int]] = {}  # the rules that define each type
        self._starts: list[int] = []  # the type at whose events each rule starts
        self._reaches: list[dict[str, int]] = []  # of each rule
        self._reach: dict[str, int] = {}  # of all present rules together
        self._layout = Layout()
        self.memory = Memory()
        self._outputs = Outputs()
        self._summaries = Summaries()
        self._compiler = RuleCompiler(self._layout, self.memory.tag)
        self._ways: list[Way] = []  # how each rule is found
        self._finder = IndexBuilder(self.memory.tag)
        self._types = TypeCoder({})
        self._paging = Paging()
        self._has_tables = False
        self.extend(rules)

    # -- rules ----------------------------------------------------------------------------------

    def extend(self, rules: Sequence[Rule]) -> range:
        """Add rules, which read events from now on, and return their numbers."""
        first, memory = len(self.rules), self.memory
        seen = memory.table[:, t.GONE] + memory.table[:, t.HELD]
        floors = {type_: int(seen[type_]) for type_ in np.flatnonzero(seen).tolist()}
        for number, rule in enumerate(rules, start=first):
            if floors:
                memory.floors[number] = floors
            self._labels.append(self._outputs.add(rule))
            self.rules.append(rule)
            self._all.append(rule)
            self._starts.append(self._layout.type(rule.terminator.events.type))
            self._named.setdefault(rule.name, []).append(number)
            self._reaches.append(reach_of(rule))
            self._compile(number, rule)
        self._reach = joint_reach([self._reach, *self._reaches[first:]])
        self._has_tables = False
        return range(first, len(self.rules))

    def _compile(self, number: int, rule: Rule) -> None:
        way = self._compiler.add(rule, self._labels[number], self.memory.floors.get(number, {}))
        self._ways.append(way)
        if self.rules[number] is not None:
            self._finder.add(number, self._starts[number], way)

    def _recompile(self) -> None:
        """Rebuild all tables, with constants as they are tagged now."""
        self._compiler = RuleCompiler(self._layout, self.memory.tag)
        self._finder = IndexBuilder(self.memory.tag)
        self._ways.clear()
        for number, rule in enumerate(self._all):
            self._compile(number, rule)
        self._lay()
        self.memory.rebuild_lists()
        self._rebuild_series()

    def _rebuild_series(self) -> None:
        memory = self.memory
        now = int(memory.control[t.TIME])
        self._summaries.rebuild(memory.store(), self._tables, self._work, now)

    def remove(self, places: Collection[int]) -> None:
        """Remove rules."""
        for number in places:
            rule = self._all[number]
            self.rules[number] = None
            self._named[rule.name].remove(number)
            self._finder.remove(number, self._starts[number], self._ways[number])
        self._reach = joint_reach(own for own, rule in zip(self._reaches, self.rules, strict=True) if rule is not None)
        self._has_tables = False

    def replace_queries(self, queries: Mapping[int, Rule]) -> None:
        """Replace rules, by place, by others that differ only in the order of their look-backs."""
        for place, rule in queries.items():
            self.rules[place] = self._all[place] = rule
            self._labels[place] = self._outputs.labels(rule)
        self._recompile()

    def _lay(self) -> None:
        """Build all tables; delayed until they are needed, so that rules can be added one by one."""
        tables, layout, memory = self._compiler.tables, self._layout, self.memory
        rows = np.array(tables.rows).reshape(-1, t.ROW)
        feeds = self._feeds(rows)
        rows[rows[:, t.FEEDS] >= 0, t.IS_PLAIN] = 0
        self._outputs.lay()
        memory.lay(layout, [self._reach.get(name, 0) for name in layout.types])
        self._mark_ordered(rows)
        self._mark_latest()
        self._index = self._finder.build(memory.types)
        shared, row_of = _distinct(rows)
        members = self._members(shared, row_of)
        self._tables = t.Rules(
            shared.ravel(),
            np.array(tables.steps),
            np.array(tables.extents),
            np.array(tables.tests),
            np.array(tables.keys),
            self._compiler.code.array(memory.tag),
            np.array(tables.fields),
            feeds,
            row_of,
            np.array(tables.own),
            np.array(tables.own_at),
            members,
        )
        if self._types.count != len(layout.types):
            self._types = TypeCoder(layout.types)
        memory.control[t.SPAN] = len(rows)
        self._work = self._allocate_work(len(rows))
        self._summaries.lay(self._compiler.series, memory.types)
        self._has_tables = True

    def _allocate_work(self, rules: int) -> t.Work:
        """Allocate the working memory of the kernels for a number of rules."""
        compiler, memory = self._compiler, self.memory
        queued = t.QUEUED + memory.width
        if len(memory.queue) < 16 * queued:
            memory.queue = np.zeros(16 * queued, np.int64)
        return t.Work(
            np.zeros((compiler.deepest + 1) * t.FRAME, np.int64),
            np.zeros((compiler.deepest + 1) * rules, np.int32),
            memory.queue,
            compiler.code.stack(),
            np.zeros(2 * compiler.summarized + 2, np.int64),
            np.zeros(2200, np.float64),
            np.zeros(rules, np.int64),
            memory.pending,
            np.zeros(2 * (compiler.deepest + self._outputs.most_fields + 2), np.int64),
            np.zeros(t.MEMO * compiler.memos, np.int64),
        )

    def _ensure_tables(self) -> None:
        if not self._has_tables:
            self._lay()

    def _feeds(self, rows: Int64s) -> Int64s:
        """Return which defined events are stored, and where their values come from."""
        feeds: list[int] = []
        fed = [(number, type_) for name, type_ in self._layout.types.items() for number in self._named.get(name, ())]
        for number, type_ in fed:
            rule = self._all[number]
            rows[number, t.FEEDS], rows[number, t.FEED_AT] = type_, len(feeds)
            rows[number, t.ALONE] = number + 1  # defined events are processed rule by rule
            places = {field.name: place for place, field in enumerate(rule.fields)}
            for name in self._layout.kept[type_].columns:
                if name in places:
                    feeds += [places[name], 0]
                elif name == "type":
                    feeds += [t.FROM_NAME, self.memory.tag(rule.name)[1]]
                else:
                    feeds += [t.FROM_TIME if name == "ts" else t.FROM_NOTHING, 0]
        return np.array(feeds, np.int64)

    def _members(self, rows: Int64s, row_of: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
        """Return the rules by row, sorted by the sort key of their row, and write their ranges into the rows."""
        there = np.array([rule is not None for rule in self.rules], bool)
        keys = np.array(self._compiler.tables.sort_keys)
        members = np.lexsort((keys, row_of))
        members = members[there[members]]
        rows[:, t.MEMBERS] = np.bincount(row_of[members], minlength=len(rows))
        rows[:, t.MEMBERS_AT] = np.cumsum(rows[:, t.MEMBERS]) - rows[:, t.MEMBERS]
        found: npt.NDArray[np.int32] = members.astype(np.int32)
        return found

    def _mark_ordered(self, rows: Int64s) -> None:
        """Mark the types at whose events the order of rules matters: firings are stored, or share a name."""
        ordered = rows[:, t.FEEDS] >= 0
        ordered[[number for own in self._named.values() if len(own) > 1 for number in own]] = True
        self.memory.table[:, t.ORDERED] = 0
        self.memory.table[np.array(self._starts, np.int64)[ordered], t.ORDERED] = 1

    def _mark_latest(self) -> None:
        """Mark the types of which rules only read the latest event before a terminator, unconditionally."""
        tables, latest = self._compiler.tables, np.ones(len(self._layout.types), np.int64)
        steps = np.array(tables.steps).reshape(-1, t.STEP)
        steps = steps[steps[:, t.PICK] != t.STARTS]
        takes_latest = (steps[:, t.PICK] == t.LAST) & (steps[:, t.COUNT] == 1) & (steps[:, t.ANCHOR] == 0)
        takes_any = (steps[:, t.TESTS_AT] == steps[:, t.TESTS_END]) & (steps[:, t.LISTED] < 0)
        keeps = (steps[:, t.ABSENCES_AT] == steps[:, t.ABSENCES_END]) & (steps[:, t.CONSUMED] == 0)
        latest[steps[~(takes_latest & takes_any & keeps), t.TYPE]] = 0
        latest[np.array(tables.extents).reshape(-1, t.EXTENT)[:, t.E_TYPE]] = 0
        self.memory.table[:, t.LATEST] = latest

    # -- events ---------------------------------------------------------------------------------

    def push(self, batch: EventBatch) -> Iterator[MatchBatch]:
        """Emit the matches that end in a batch, in pieces, by end."""
        return self.timed(TOGETHER, self._found(batch))

    def _found(self, batch: EventBatch) -> Iterator[MatchBatch]:
        for _ in self._run(batch, counting=False):
            yield from self._outputs.take(self.memory.control, self.memory.texts)

    def count(self, batch: EventBatch) -> dict[str, int]:
        """Return how many matches of each query end in a batch."""
        self._ensure_tables()
        self._work.counts[:] = 0
        for _ in self.timed(TOGETHER, self._run(batch, counting=True)):
            list(self._outputs.take(self.memory.control, self.memory.texts))
        return self._outputs.counts(self._work.counts)

    @property
    def queries(self) -> tuple[Rule | None, ...]:
        """The rules by number, or None for a removed rule."""
        return tuple(self.rules)

    @property
    def fires_in_order(self) -> bool:
        """Whether the firings of all rules are ordered by end, which holds if all have the same fields."""
        return self._outputs.has_one_form

    @property
    def watermark(self) -> int | None:
        """None: rules fire at the current event."""
        return None

    def oldest(self) -> int | None:
        """Return the first position of a stored event, or None."""
        return self.memory.oldest()

    @property
    def waiting(self) -> int:
        """The number of stored events."""
        return self.memory.event_count

    def drop_oldest(self, limit: int, names: Collection[str]) -> Counter[str]:
        """See `Operator.drop_oldest`: the events that rules look back at are the evictable state."""
        self._ensure_tables()
        present = [rule for rule in self.rules if rule is not None]
        types = {self._layout.type(name): name for name in sorted(losable_types(present, names))}
        dropped: Counter[str] = Counter()
        for type_, count in self.memory.drop_oldest(limit, list(types)).items():
            users = [rule.name for rule in present if any(s.events.type == types[type_] for s in rule.lookbacks)]
            dropped[named(list(dict.fromkeys(users)))] += count
        return dropped

    # -- state ----------------------------------------------------------------------------------

    def sweep(self) -> None:
        """Release texts that no event in reach has, when there are many."""
        if self.memory.texts.is_crowded:
            self.forget_texts()

    def forget_texts(self) -> None:
        """Keep only the texts of events in reach, and of constants."""
        self.memory.renumber_texts()
        self._recompile()

    def snapshot(self) -> dict[str, bytes | None]:
        """The pages that changed since the last snapshot."""
        self._ensure_tables()
        return self._paging.changes(dict(memory_pages(self.memory)))

    def load(self, pages: Mapping[str, bytes]) -> None:
        """Restore the state from pages."""
        self._ensure_tables()
        load_memory(self.memory, pages)
        self._paging.load(pages)
        self._recompile()

    def _run(self, batch: EventBatch, *, counting: bool) -> Iterator[None]:
        """Run the kernel over a batch, and yield each time there is output."""
        memory = self.memory
        if not len(batch):
            return
        self._ensure_tables()
        events = batch_of_events(batch, self._types.code(batch.types), self._layout.attributes, memory.texts)
        memory.reserve(np.bincount(events.types, minlength=len(memory.table)))
        memory.control[t.EVENT], memory.control[t.ONLY_COUNTS] = 0, counting
        while True:
            work = self._work._replace(queue=memory.queue, pending=memory.pending)
            memory.control[t.STEPS_LEFT] = INTERRUPT_CHECK_EVERY
            status = fire(
                events,
                self._tables,
                self._index,
                memory.store(),
                self._summaries.lanes,
                work,
                self._outputs.buffer,
                memory.control,
                memory.room,
            )
            if status in (t.DONE, t.OUTPUT_FULL):
                yield
            elif status == t.SERIES_FULL:
                self._rebuild_series()
            elif status != t.PAUSE:
                memory.grow(status)
            if status == t.DONE:
                return


def _distinct(rows: Int64s) -> tuple[Int64s, npt.NDArray[np.int32]]:
    """Return the distinct rows, and the number of the distinct row for each row."""
    known: dict[bytes, int] = {}
    as_bytes = rows.view(f"V{rows.itemsize * rows.shape[1]}").ravel().tolist()
    row_of = np.array([known.setdefault(row, len(known)) for row in as_bytes], np.int32)
    _, firsts = np.unique(row_of, return_index=True)
    return rows[firsts], row_of
