"""The context clause: spans of time in ticks, and the types and attributes that divide the stream."""

from __future__ import annotations

from weft.algebra import contexts
from weft.languages.durations import LONGEST, UNITS, ticks_of
from weft.languages.epn import syntax
from weft.languages.epn.scope import EpnScope
from weft.languages.findings import Findings
from weft.languages.limits import MOST_PARTITIONS
from weft.languages.syntax import Name

_MANY = 10_000  # partitions of one event that take much room


class ContextLowering:
    """Lowers the context of one pattern."""

    def __init__(self, scope: EpnScope, time_unit: str, findings: Findings) -> None:
        self._scope = scope
        self._time_unit = time_unit
        self._findings = findings

    def lower(self, clause: syntax.Context | None, kind: str) -> contexts.Context:
        """The context of a kind of pattern in the algebra; without a clause it is the whole stream."""
        if clause is None:
            return contexts.WHOLE
        found = self._divided(clause)
        if clause.forget is None:
            return found
        forget = min(self._ticks(clause.forget), LONGEST - 1)  # a time of 64 bits can still be added to it
        if kind != "absence" or not found.by or not isinstance(found, contexts.Windows):
            message = "only an absence in fixed or sliding contexts by attributes remembers their values"
            self._findings.error("nothing-to-forget", message, clause.forget.span, "remove forget")
            return found
        return contexts.Forgetting(found.length, found.step, forget, by=found.by)

    def _divided(self, clause: syntax.Context) -> contexts.Context:
        by = self._attributes(clause)
        match clause.interval:
            case None:
                return contexts.Whole(by=by)
            case syntax.Fixed(length):
                ticks = self._ticks(length)
                return contexts.Windows(ticks, ticks, by=by)
            case syntax.Sliding(length, step):
                sliding = contexts.Windows(self._ticks(length), self._ticks(step), by=by)
                self._warn_of_many(sliding, step)
                return sliding
            case syntax.Until(opener, closer):
                return contexts.FromUntil(opener.text, closer.text, by=by)
            case syntax.Lasting(opener, length):
                return contexts.FromFor(opener.text, self._ticks(length), by=by)
        raise AssertionError(f"not an interval: {clause.interval!r}")

    def _warn_of_many(self, sliding: contexts.Windows, step: syntax.Duration) -> None:
        partitions = -(-sliding.length // sliding.step)
        if partitions > MOST_PARTITIONS:
            message = f"every event would be in {partitions} partitions at once; {MOST_PARTITIONS} is the limit"
            self._findings.error("many-partitions", message, step.span, "begin less often, or make them shorter")
        elif partitions > _MANY:
            message = f"every event is in {partitions} partitions at once, each of which is looked at"
            self._findings.warning("many-partitions", message, step.span, "begin less often")

    def _attributes(self, clause: syntax.Context) -> tuple[str, ...]:
        """What the partitions are divided by; every type that is looked at must have it."""
        types = {participant.type.text for participant in self._scope.participants.values()}
        for name in clause.interval.children() if clause.interval is not None else ():
            if isinstance(name, Name):
                self._scope.types.check(name, self._findings)
                types.add(name.text)
        found: dict[str, None] = {}
        for attribute in clause.by:
            if attribute.text in found:
                self._findings.error("attribute-twice", f"a second {attribute.text!r}", attribute.span, "remove it")
            for type_ in sorted(types):
                self._scope.types.families(type_, attribute, self._findings)
            found[attribute.text] = None
        return tuple(found)

    def _ticks(self, duration: syntax.Duration) -> int:
        """A span of time in ticks, at least one."""
        ticks = ticks_of(duration.amount, duration.unit, self._time_unit, self._findings)
        if duration.unit is not None and duration.unit.text.lower() not in UNITS:
            return 1  # reported
        if duration.unit is None and ticks != min(duration.amount, LONGEST):
            hint = f"write {max(ticks, 1)}, or a unit: {duration.amount} sec"
            self._findings.error(
                "fraction-of-a-tick", "a number alone is in ticks, which are whole", duration.span, hint
            )
        elif ticks < 1:
            self._findings.error(
                "empty-context", "this context has no length", duration.span, "write at least one tick"
            )
        return max(ticks, 1)
