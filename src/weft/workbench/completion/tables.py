"""Where names of which role stand in the languages: after which words, and in which brackets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from weft.algebra.situations import KINDS
from weft.languages.epn.policies import POLICIES, values_of

Binding = Literal["as", "beside", "slash", "alias"]
UNITS = ("msec", "sec", "min", "hours", "days")
VALUES = ("int", "double", "string", "boolean")


@dataclass(frozen=True)
class Table:
    """A language: words with the role of names after them, and how types declare attributes and bind variables."""

    starts: frozenset[str]  # words that begin a statement
    roles: Mapping[str, str]  # by word: the role of the names that follow
    declares: Mapping[str, str]  # by word: the bracket after the name that opens its attributes
    binds: Binding  # `T AS v`, `T v`, `T/v`, `T(…) AS v`
    brackets: Mapping[str, str]  # in what role a bracket behind a type or variable is, of which it has the attributes
    comment: str = "--"
    first: str = "nothing"  # the role of names before any word
    words: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def types_are_variables(self) -> bool:
        """Whether an event without a variable is called by its type."""
        return self.binds != "as"


CEQL = Table(
    starts=frozenset({"SELECT", "QUERY", "CREATE", "DECLARE"}),
    roles={
        "SELECT": "variables", "FROM": "streams", "WHERE": "types", "FILTER": "variables", "BY": "attributes",
        "WITHIN": "units", "SESSION": "units", "EVERY": "units", "AS": "nothing", "QUERY": "nothing",
        "CREATE": "nothing", "DECLARE": "nothing", "STREAM": "nothing", "EVENT": "nothing", "LIMIT": "nothing",
    },
    declares={"EVENT": "{("},
    binds="as",
    brackets={"[": "variables"},
    words={"units": ("EVENTS", "MILLISECONDS", "SECONDS", "MINUTES", "HOURS", "DAYS"), "kinds": VALUES},
)  # fmt: skip
EQL = Table(
    starts=frozenset({"SELECT", "SOURCE", "SINK"}),
    roles={
        "SELECT": "variables", "FROM": "types", "WHERE": "variables", "INTO": "streams", "AS": "nothing",
        "SOURCE": "nothing", "SINK": "nothing", "RATE": "nothing", "TO": "nothing", "WITHIN": "units",
    },
    declares={"SOURCE": "("},
    binds="beside",
    brackets={},
    words={"units": UNITS, "kinds": VALUES},
)  # fmt: skip
STEP = Table(
    starts=frozenset({"EXTERNAL", "TOPOLOGY"}),
    roles={"TOPOLOGY": "nothing", "EXTERNAL": "nothing", "AS": "nothing"},
    declares={"EXTERNAL": "("},
    binds="slash",
    brackets={"[": "types"},
    comment="//",
    words={"kinds": ("int", "real", "string", "boolean")},
)
TESLA = Table(
    starts=frozenset({"DEFINE", "RULE", "ASSIGN"}),
    roles={
        "DEFINE": "nothing", "RULE": "nothing", "ASSIGN": "nothing", "FROM": "types", "AND": "types", "EACH": "types",
        "FIRST": "types", "LAST": "types", "NOT": "types", "WITHIN": "units", "BETWEEN": "variables",
        "WHERE": "variables", "CONSUMING": "variables", "AS": "nothing",
    },
    declares={"DEFINE": "("},
    binds="alias",
    brackets={"(": "types"},
    words={"units": UNITS, "kinds": VALUES},
)  # fmt: skip
EPN = Table(
    starts=frozenset({"PATTERN"}),
    roles={
        "PATTERN": "nothing", "WHERE": "variables", "DERIVE": "variables", "POLICIES": "policies", "CONTEXT": "nothing",
        "FROM": "types", "UNTIL": "types", "BY": "attributes", "FIXED": "units", "SLIDING": "units", "EVERY": "units",
        "FORGET": "units", "FOR": "units",
    },
    declares={},
    binds="beside",
    brackets={"[": "types"},
    words={
        "units": UNITS,
        "shapes": KINDS,
        "policies": (*POLICIES, *(value for policy in POLICIES for value in values_of(policy))),
    },
)  # fmt: skip
SQL = Table(
    starts=frozenset({"SELECT", "WITH"}),
    roles={
        "SELECT": "attributes", "BY": "attributes", "MEASURES": "attributes", "DEFINE": "attributes",
        "AS": "attributes",
        "FROM": "nothing", "PATTERN": "nothing", "SUBSET": "nothing", "WITHIN": "nothing", "SKIP": "nothing",
    },
    declares={},
    binds="as",
    brackets={},
)  # fmt: skip
TABLES = {"ceql": CEQL, "eql": EQL, "step": STEP, "tesla": TESLA, "epn": EPN, "sql": SQL}
