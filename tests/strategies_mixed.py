"""Random programs of several languages in which queries read what others define, and streams to run them on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise

from hypothesis import strategies as st

from weft.algebra.query import Program
from weft.api import compile_with_findings
from weft.languages.defined import compile_together

EventDict = dict[str, object]
INPUTS = {"A": ("x", "k"), "B": ("x", "k"), "C": ("x", "k")}
HUGE = 2**53
EXTERNALS = " ".join(f'external {type_}(x: real, k: real) < "{type_}" [1.0]' for type_ in INPUTS)


@dataclass(frozen=True)
class Text:
    """One query as text, and the type that it defines with its fields."""

    language: str
    name: str
    text: str
    fields: tuple[str, ...]


@dataclass(frozen=True)
class Mixed:
    """Texts that are one program, events in stream order, and how these are cut into batches."""

    texts: tuple[Text, ...]
    events: list[EventDict] = field(default_factory=list)
    cuts: tuple[int, ...] = ()

    @property
    def program(self) -> Program:
        found = compile_together([partial(compile_with_findings, t.text, t.language, stem=t.name) for t in self.texts])
        assert all(program is not None for program, _ in found), [str(finding) for _, own in found for finding in own]
        whole = Program("", ())
        for program, _ in found:
            assert program is not None
            whole = whole.extended(program)
        return whole

    @property
    def batches(self) -> list[list[EventDict]]:
        bounds = [0, *sorted(set(self.cuts)), len(self.events)]
        parts = [self.events[begin:end] for begin, end in pairwise(bounds)]
        return [part for part in parts if part]

    def __repr__(self) -> str:
        shown = "\n".join(f"  {t.language}: {t.text}" for t in self.texts)
        return f"Mixed\n{shown}\n  events={self.events}\n  cuts={self.cuts}"


class Drawing:
    """Draws the parts of one query: which types it reads, and conditions on their fields."""

    def __init__(self, draw: Callable[..., object], known: dict[str, tuple[str, ...]], must: str) -> None:
        self._draw = draw
        self._known = known
        self._must = must

    def one(self, *values: object) -> str:
        return str(self._draw(st.sampled_from(values)))

    def maybe(self, text: str, otherwise: str = "") -> str:
        return text if self._draw(st.sampled_from([False, False, True])) else otherwise

    def number(self, low: int, high: int) -> int:
        found = self._draw(st.integers(low, high))
        assert isinstance(found, int)
        return found

    def types(self) -> list[str]:
        """Three types, of which the first or second is the one that must be read."""
        others = [self.one(*self._known), self.one(*self._known)]
        others.insert(self.number(0, 1), self._must)
        return others

    def field_of(self, type_: str) -> str:
        return self.one(*self._known[type_])

    def constant(self) -> str:
        return self.one("0", "1", "2", "1", str(HUGE))

    def comparison(self) -> str:
        return self.one(">=", "<=", ">", "=", "<>")


def _ceql(d: Drawing, name: str) -> Text:
    one, two, three = d.types()
    f, g = d.field_of(one), d.field_of(two)
    link = d.one(";", ";", ";", ":", f"; NOT({three}) :")
    left = d.one(f"{one} AS a", f"{one} AS a", f"{one}+ AS a", f"{one} :+ AS a", f"({one} OR {three}) AS a")
    conditions = [d.maybe(f"a[`{f}` {d.comparison()} {d.constant()}]"), d.maybe(f"a[`{f}`] {d.comparison()} b[`{g}`]")]
    where = " AND ".join(part for part in conditions if part and "OR" not in left)
    is_plain = left == f"{one} AS a"
    strategy = d.one("", "", "", "NEXT", "LAST", "MAX", "STRICT")
    window = d.one("3 EVENTS", "7 EVENTS", "9 MILLISECONDS")
    text = (
        f"QUERY {name} AS SELECT {strategy} {f'a[`{f}`], b' if is_plain else f'a, b[`{g}`]'} "
        f"WHERE {left} {link} {two} AS b {f'FILTER {where}' if where else ''} "
        f"{'PARTITION BY [k]' if f == g == 'k' else ''} WITHIN {window} {d.one('', '', 'CONSUME BY ANY', 'LIMIT 1')}"
    )
    return Text("ceql", name, text, (f if is_plain else g,))


def _eql(d: Drawing, name: str) -> Text:
    one, two, three = d.types()
    f, g = d.field_of(one), d.field_of(two)
    a, b = f"{one} a", f"{two} b"
    pattern = d.one(
        f"{a} ; {b}", f"{a} ; {b}+", f"({a} | {b})", f"({a} ; {b}) \\ {three} c", f"({a} ; {b}) @ 2", f"{a} @ 3"
    )
    has_b, is_union = " b" in pattern, "|" in pattern
    conditions = [d.maybe(f"FILTER(a.`{f}` {d.comparison()} {d.constant()})")]
    if has_b and not is_union:
        conditions.append(d.maybe(f"FILTER(a.`{f}` {d.comparison()} b.`{g}`)"))
        conditions.append(d.maybe("(a, b) OCCURS WITHIN 5"))
    where = ", ".join(part for part in conditions if part)
    selected = [("a", f), *([("b", g)] if has_b else [])]
    text = f"SELECT {', '.join(f'{v}.`{n}`' for v, n in selected)} FROM {pattern}"
    return Text("eql", name, text + (f" WHERE {where}" if where else ""), tuple(f"{v}.{n}" for v, n in selected))


def _step(d: Drawing, name: str) -> Text:
    one, two, three = d.types()
    f, g = d.field_of(one), d.field_of(two)
    comparison = d.comparison().replace("<>", "!=")
    joined = d.one(f"a.`{f}` {comparison} b.`{g}`", "dur <= 5", f"a.`{f}` <= b.`{g}`")
    pattern = d.one(
        f"{one}/a ; {two}/b",
        f"{one}/a ;[{joined}] {two}/b",
        f"{one}/a ;?[{joined}] {two}/b",
        f"{one}/a ,[{joined}] {two}/b",
        f"{one}/a ; !{three}/c ; {two}/b",
        f"{one}/a[a.`{f}` > 0] +[a.`{f}` >= prev(a.`{f}`)]",
        f"{one}/a +?[dur < 9]",
        f"!{three}/c ; {one}/a",
    )
    text = f'topology "t" {EXTERNALS} {name}(a.`{f}`): {pattern}'
    return Text("step", name, text, (f"a.{f}",))


def _epn(d: Drawing, name: str) -> Text:
    one, two, three = d.types()
    f, g = d.field_of(one), d.field_of(two)
    kind = d.one("sequence", "all", "any", "sequence", "absence")
    where = d.maybe(f"where a.`{f}` {d.comparison()} {d.constant()}")
    if kind in ("sequence", "all"):
        where = d.one(where, f"where a.`{f}` {d.comparison()} b.`{g}`", "")
    contexts = ["context fixed 8", "context sliding 6 every 2", f"context from {three} for 9"]
    context = d.one(*contexts, *(["", f"context from {three} until {two}"] if kind != "absence" else []))
    settings = {
        "evaluation": d.one("immediate", "deferred"),
        "cardinality": d.one("unrestricted", "single"),
        "repeated": d.one("every", "first", "last"),
        "consumption": d.one("reuse", "consume"),
    }
    policies = "policies " + ", ".join(f"{name} {value}" for name, value in settings.items())
    value = "7" if kind == "absence" else f"a.`{f}`"
    derive = f"derive v = {value}, w = {value} {d.one('+ 1', '* 2', '- 1')}"
    slots = f"{one} a, {two} b" if kind != "absence" else f"{one} a"
    return Text("epn", name, f"pattern {name} {kind}({slots}) {where} {policies} {context} {derive}", ("v", "w"))


def _tesla(d: Drawing, name: str) -> Text:
    one, two, three = d.types()
    f, g = d.field_of(one), d.field_of(two)
    taken = d.one("each", "last", "first", "2-last")
    wanted = d.maybe(f"`{f}` {d.comparison()} {d.constant()}")
    tied = d.maybe(f"`{g}` {d.comparison()} a.`{f}`")
    more = d.one(
        "",
        f" and not {three}() between a and b",
        f" and not {three}() within 3 from a",
        f" and Count({three}() within 4 from a) < 2",
    )
    text = (
        f"define {name}(v: int, w: double) from {one}({wanted}) as a and {taken} {two}({tied}) as b within "
        f"{d.number(4, 9)} from a{more} where v = a.`{f}`, w = b.`{g}` + a.`{f}`{d.one('', '', ' consuming b')}"
    )
    return Text("tesla", name, text, ("v", "w"))


MAKERS = {"ceql": _ceql, "eql": _eql, "step": _step, "epn": _epn, "tesla": _tesla}


@st.composite
def mixed_texts(draw: Callable[..., object], languages: tuple[str, ...] = tuple(MAKERS)) -> tuple[Text, ...]:
    """Two to four queries, each but the first over what one before it defines, in any order."""
    known: dict[str, tuple[str, ...]] = dict(INPUTS)
    texts: list[Text] = []
    count = draw(st.integers(2, 4))
    assert isinstance(count, int)
    for number in range(count):
        must = str(draw(st.sampled_from([text.name for text in texts] or list(known))))
        language = str(draw(st.sampled_from(languages)))
        text = MAKERS[language](Drawing(draw, known, must), f"Q{number}")
        texts.append(text)
        known[text.name] = text.fields
    shuffled = draw(st.permutations(texts))
    assert isinstance(shuffled, list)
    return tuple(shuffled)


ODD = [float("nan"), None, 0.5, -(2**60), 2**63 - 1]
numbers = st.sampled_from([1, 2, 3, 1, 2, 3, 2.0, HUGE, HUGE + 1, *ODD])


@st.composite
def mixed_events(draw: Callable[..., object]) -> list[EventDict]:
    """Instants and intervals with ties; attributes that are missing, NaN, or whole numbers that no float holds."""
    events: list[EventDict] = []
    count = draw(st.integers(4, 10))
    assert isinstance(count, int)
    for _ in range(count):
        end, length = draw(st.integers(0, 12)), draw(st.sampled_from([0, 0, 0, 1, 3]))
        assert isinstance(end, int)
        assert isinstance(length, int)
        event: EventDict = {"type": draw(st.sampled_from(sorted(INPUTS)))}
        event |= {"ts": end} if length == 0 else {"start": end - length, "end": end}
        for name in ("x", "k"):
            value = draw(numbers if name == "x" else st.sampled_from([1, 2, 1, 2, None]))
            if value is not None:
                event[name] = value
        events.append(event)
    return sorted(events, key=lambda e: (e.get("ts", e.get("end")), e.get("ts", e.get("start"))))


@st.composite
def mixed_examples(draw: Callable[..., object]) -> Mixed:
    """A program, events, and batches."""
    events = draw(mixed_events())
    texts = draw(mixed_texts())
    cuts = draw(st.lists(st.integers(0, 9), max_size=4))
    assert isinstance(events, list)
    assert isinstance(texts, tuple)
    assert isinstance(cuts, list)
    # Sources that are declared come in the order of their declaration, which is that of their names.
    ordered = sorted(events, key=lambda e: (e.get("ts", e.get("end")), e.get("ts", e.get("start")), str(e["type"])))
    return Mixed(texts, ordered, tuple(cut for cut in cuts if 0 < cut < len(ordered)))
