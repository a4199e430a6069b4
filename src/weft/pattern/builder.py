"""The builder of chains: `Pattern.begin("a").where(e.price > 2).followed_by("b")…`, as FlinkCEP's Pattern API is used.

Every call gives a new pattern, so that parts can be shared. A pattern is a program wherever weft takes one.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, replace
from datetime import timedelta

from weft.algebra import patterns as algebra
from weft.algebra.chains import Chain, Contiguity, Fits, Link, Skip, SkipTo
from weft.algebra.predicates import Always, And, Or, Predicate
from weft.algebra.query import Program, Query, Window
from weft.described import described
from weft.errors import UsageError
from weft.languages.durations import LONGEST, TICKS, UNITS
from weft.pattern.expressions import Condition, condition_of, joined
from weft.pattern.gathered import comparisons_of, variables_of
from weft.pattern.limits import require_steps, require_text
from weft.pattern.text import chain_text

Duration = int | str | timedelta
_AMOUNT = re.compile(r"[0-9]{1,100}")
BUILT = "pattern"  # the language of programs that were built in Python


class AfterMatch:
    """What a match leaves of those that overlap it; without one, every match is reported."""

    @staticmethod
    def no_skip() -> None:
        """Every match is reported."""

    @staticmethod
    def skip_to_next() -> Skip:
        """One match for each start."""
        return Skip(SkipTo.NEXT)

    @staticmethod
    def skip_past_last_event() -> Skip:
        """No match starts inside another."""
        return Skip(SkipTo.PAST_LAST)

    @staticmethod
    @described()
    def skip_to_first(name: str) -> Skip:
        """No match starts before the first event of this step of another."""
        return Skip(SkipTo.FIRST, name)

    @staticmethod
    @described()
    def skip_to_last(name: str) -> Skip:
        """No match starts before the last event of this step of another."""
        return Skip(SkipTo.LAST, name)


@dataclass(frozen=True)
class Pattern:
    """A pattern as it has been built so far; calls about a step are about its last one."""

    links: tuple[Link, ...]
    duration: Duration | None = None
    skip: Skip | None = None
    keys: tuple[str, ...] = ()
    conditions: tuple[Predicate, ...] = ()

    # -- steps ---------------------------------------------------------------------------------

    @staticmethod
    @described()
    def begin(step: str | Pattern, skip: Skip | None = None) -> Pattern:
        """The first step: events of any type until `subtype` and `where` say more; or a pattern as a group."""
        return Pattern((), skip=skip)._followed(step, Contiguity.STRICT)

    @described()
    def next(self, step: str | Pattern) -> Pattern:
        """A step whose event comes directly after."""
        return self._followed(step, Contiguity.STRICT)

    @described()
    def followed_by(self, step: str | Pattern) -> Pattern:
        """A step whose event is the next one that fits."""
        return self._followed(step, Contiguity.NEXT)

    @described()
    def followed_by_any(self, step: str | Pattern) -> Pattern:
        """A step whose event is any later one that fits."""
        return self._followed(step, Contiguity.ANY)

    @described()
    def not_next(self, name: str) -> Pattern:
        """No such event comes directly after."""
        return self._followed(name, Contiguity.STRICT, negated=True)

    @described()
    def not_followed_by(self, name: str) -> Pattern:
        """No such event comes before the next step; at the end of a pattern, before its time is up (`within`)."""
        return self._followed(name, Contiguity.NEXT, negated=True)

    def _followed(self, step: str | Pattern, contiguity: Contiguity, *, negated: bool = False) -> Pattern:
        if negated and self._last("a negated step").optional:
            raise UsageError(
                f"{self.links[-1].name!r} is optional, so it is not clear from where on {step!r} must not come: "
                "write two patterns, one with the optional step and one without it"
            )
        if isinstance(step, Pattern):
            if negated or not step.links:
                raise UsageError("only a single step can be negated: give it a name, and say what fits by where")
            if _ends_open(step.links):
                raise UsageError(f"{step.links[-1].name!r} must not come, but until when? end the group with an event")
            if step.conditions:
                raise UsageError("having is about the whole pattern: call it there, not on the group")
            link = Link("", contiguity=contiguity, group=step._closed().links)
            shorter = [d for d in (self.duration, step.duration) if d is not None]
            pattern = replace(self, links=(*self.links, link), duration=min(shorter, key=_nanoseconds, default=None))
        elif isinstance(step, str) and step:
            link = Link(require_text(step, "the name of a step"), contiguity=contiguity, negated=negated)
            pattern = replace(self, links=(*self.links, link))
        else:
            raise UsageError(f"a step is the name of its events, or a pattern, not {step!r}")
        twice = next((name for name, number in Counter(pattern._names()).items() if number > 1), None)
        if twice is not None:
            raise UsageError(f"two steps are called {twice!r}: give each a unique name")
        return pattern

    # -- what fits -----------------------------------------------------------------------------

    @described()
    def subtype(self, *types: str) -> Pattern:
        """Only events of one of these types fit the step."""
        link = self._last("subtype", group=False)
        for name in types:
            require_text(name, "an event type")
        return self._with(fits=replace(link.fits, types=types))

    @described()
    def where(self, condition: Condition | str) -> Pattern:
        """Only events that satisfy the condition too fit the step."""
        fits = self._last("where", group=False).fits
        return self._with(fits=replace(fits, where=_all(fits.where, condition_of(condition).predicate)))

    @described()
    def or_where(self, condition: Condition | str) -> Pattern:
        """Events that satisfy this condition fit the step as well."""
        fits = self._last("or_where", group=False).fits
        given = condition_of(condition).predicate
        return self._with(fits=replace(fits, where=given if fits.where == Always() else joined(Or, fits.where, given)))

    @described()
    def until(self, condition: Condition | str) -> Pattern:
        """With the first event that satisfies the condition, a repeated step takes no more."""
        link = self._last("until")
        if link.most is not None:
            raise UsageError(f"until ends a repetition: call one_or_more or times_or_more on {link.name!r} first")
        if link.until is not None:
            raise UsageError(f"{link.name!r} has an until already: join the conditions by |")
        return self._with(until=Fits((), condition_of(condition).predicate))

    # -- how often -----------------------------------------------------------------------------

    @described()
    def times(self, least: int, most: int | None = None) -> Pattern:
        """Exactly `least` events, or from `least` to `most` events."""
        highest = least if most is None else most
        _require_counts(least, highest)
        if not 0 <= least <= highest or highest < 1:
            raise UsageError(f"times({least}, {highest}) is no number of events: write times(n), or times(least, most)")
        if least == 0:
            return self._repeated(1, highest).optional()
        return self._repeated(least, highest)

    @described()
    def times_or_more(self, least: int) -> Pattern:
        """At least this many events."""
        _require_counts(least)
        if least < 1:
            raise UsageError("times_or_more takes a number from 1 on; for none or more write one_or_more().optional()")
        return self._repeated(least, None)

    def one_or_more(self) -> Pattern:
        """At least one event."""
        return self._repeated(1, None)

    def _repeated(self, least: int, most: int | None) -> Pattern:
        link = self._last("a repetition", negated=False)
        if (link.least, link.most) != (1, 1):
            raise UsageError(f"{link.name!r} is repeated already: say once how many events it takes")
        if most is None and link.group and _may_be_empty(link):
            raise UsageError("every step of the group may be left out, so it would repeat nothing: require one of them")
        return self._with(least=least, most=most)

    def optional(self) -> Pattern:
        """The step may be left out."""
        link = self._last("optional", negated=False)
        if link.optional:
            raise UsageError(f"{link.name!r} is optional already")
        return self._with(optional=True)

    def greedy(self) -> Pattern:
        """The step takes every event that fits before the next step begins."""
        link = self._looping("greedy")
        if link.inner is Contiguity.ANY:
            raise UsageError("a step cannot be greedy and allow combinations: leave one of them out")
        return self._with(greedy=True)

    def consecutive(self) -> Pattern:
        """The events of the step follow each other without a gap."""
        self._looping("consecutive")
        return self._with(inner=Contiguity.STRICT)

    def allow_combinations(self) -> Pattern:
        """The events of the step are any of those that fit, not each time the next one."""
        if self._looping("allow_combinations").greedy:
            raise UsageError("a step cannot be greedy and allow combinations: leave one of them out")
        return self._with(inner=Contiguity.ANY)

    def _looping(self, call: str) -> Link:
        link = self._last(call, negated=False)
        if (link.least, link.most) == (1, 1):
            raise UsageError(f"{call} is about a repeated step: call times, one_or_more or times_or_more first")
        return link

    # -- the whole -----------------------------------------------------------------------------

    @described()
    def within(self, duration: Duration, unit: str | None = None) -> Pattern:
        """From its first event to its last one less time passes: ticks, "10 minutes", (10, "minutes"), a timedelta."""
        given = duration if unit is None else f"{duration} {unit}"
        if _nanoseconds(given) <= 0:
            raise UsageError(f"within takes a time that is longer than nothing, not {given!r}")
        return replace(self, duration=given)

    @described()
    def having(self, condition: Condition) -> Pattern:
        """Of the matches only those whose events satisfy this: `step("a").price.sum() < step("b").price`."""
        return replace(self, conditions=(*self.conditions, *comparisons_of(condition)))

    @described()
    def by(self, *attributes: str) -> Pattern:
        """Events that agree in these attributes are a stream of their own; those that lack one take no part."""
        for name in attributes:
            require_text(name, "the name of an attribute")
        return replace(self, keys=attributes)

    @described()
    def after_match(self, skip: Skip | None) -> Pattern:
        """Set the after-match skip strategy; see `AfterMatch`."""
        return replace(self, skip=skip)

    @described()
    def program(self, name: str = "q", *, time_unit: str = "ms") -> Program:
        """The program that finds the pattern; its matches are called `name`."""
        closed = self._closed()
        require_steps(closed.links)
        links, unless = closed.links, None
        if _ends_open(links):
            if self.duration is None:
                raise UsageError(f"{links[-1].name!r} must not come, but until when? call within on the pattern")
            links, unless = links[:-1], links[-1].fits
        if self.skip is not None and self.skip.variable is not None and self.skip.variable not in self._names():
            raise UsageError(
                f"there is no step {self.skip.variable!r} to skip to: use one of {', '.join(self._names())}"
            )
        whole: algebra.Pattern = Chain(links)
        for condition in self.conditions:
            for unknown in sorted(variables_of(condition) - set(taken_by(links)), key=str):
                raise UsageError(f"no events are taken by {unknown!r}: having is about {', '.join(taken_by(links))}")
            whole = algebra.Correlate(whole, condition)
        query = Query(
            name,
            whole,
            partition=tuple((key,) for key in self.keys),
            window=None if self.duration is None else Window("time", _ticks(self.duration, time_unit) - 1),
            skip=self.skip,
            unless=unless,
        )
        return Program(BUILT, (query,), text=str(self), time_unit=time_unit)

    def __str__(self) -> str:
        return chain_text(self.links, self.duration, self.skip, self.keys, self.conditions)

    __repr__ = __str__

    # -- parts ---------------------------------------------------------------------------------

    def _closed(self) -> Pattern:
        """The pattern, checked as a whole."""
        if not self.links:
            raise UsageError("a pattern has at least one step: start with Pattern.begin('name')")
        if self.links[0].negated:
            raise UsageError("a pattern starts with an event: begin with a step that is not negated")
        return self

    def _last(self, call: str, *, negated: bool = True, group: bool = True) -> Link:
        if not self.links:
            raise UsageError(f"{call} is about a step: start with Pattern.begin('name')")
        link = self.links[-1]
        if link.negated and not negated:
            raise UsageError(f"{link.name!r} must not come, so {call} says nothing about it: leave it out")
        if link.group and not group:
            raise UsageError(f"{call} is about a single step: call it inside the group")
        return link

    def _with(self, **changes: object) -> Pattern:
        return replace(self, links=(*self.links[:-1], replace(self.links[-1], **changes)))  # type: ignore[arg-type]

    def _names(self) -> list[str]:
        return [node.name for node in _all_links(self.links) if node.name]


def _all_links(links: tuple[Link, ...]) -> list[Link]:
    return [node for link in links for node in link.walk(Link) if isinstance(node, Link)]


def taken_by(links: tuple[Link, ...]) -> list[str]:
    """The names of the steps that take events."""
    return [link.name for link in _all_links(links) if link.name and not link.negated]


def _ends_open(links: tuple[Link, ...]) -> bool:
    """Whether the last step is one that must not come, from now on."""
    return links[-1].negated and links[-1].contiguity is not Contiguity.STRICT


def _may_be_empty(link: Link) -> bool:
    return link.optional or link.negated or (bool(link.group) and all(map(_may_be_empty, link.group)))


def _all(one: Predicate, other: Predicate) -> Predicate:
    return other if one == Always() else joined(And, one, other)


def _require_counts(*counts: object) -> None:
    for count in counts:
        if not isinstance(count, int) or isinstance(count, bool):
            raise UsageError(f"a number of events is an integer, not {count!r}")


def _nanoseconds(duration: Duration) -> int:
    """How long a duration is; ticks count as milliseconds when durations are compared."""
    return _ticks(duration, "ms" if isinstance(duration, int) else "ns") * (
        TICKS["ms"] if isinstance(duration, int) else 1
    )


def _ticks(duration: Duration, time_unit: str) -> int:
    if time_unit not in TICKS:
        raise UsageError(f"there is no time unit {time_unit!r}; use one of {', '.join(TICKS)}")
    if isinstance(duration, bool) or not isinstance(duration, int | str | timedelta):
        raise UsageError(f"a time is a number of ticks, a text like '10 minutes', or a timedelta, not {duration!r}")
    if isinstance(duration, int):
        return min(duration, LONGEST)
    if isinstance(duration, timedelta):
        nanoseconds = (duration.days * 86400 + duration.seconds) * TICKS["s"] + duration.microseconds * TICKS["us"]
    else:
        amount, _, unit = duration.strip().partition(" ")
        if not _AMOUNT.fullmatch(amount) or unit.strip().lower() not in UNITS:
            raise UsageError(f"{duration[:50]!r} is no time: write a number and a unit, as in '10 minutes'")
        nanoseconds = int(amount) * UNITS[unit.strip().lower()]
    ticks, rest = divmod(nanoseconds, TICKS[time_unit])
    if rest:
        raise UsageError(f"{duration} is not a whole number of ticks, which are in {time_unit}")
    return min(ticks, LONGEST)
