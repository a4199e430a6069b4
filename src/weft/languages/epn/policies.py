"""The policies clause: the settings of a pattern and of single participants, checked and put together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum

from weft.algebra.analysis.dependencies import dependencies, why_whole
from weft.algebra.policies import Cardinality, Consumption, Evaluation, Repeated
from weft.algebra.situations import Situation
from weft.errors import did_you_mean
from weft.languages.epn import syntax
from weft.languages.findings import Findings
from weft.languages.limits import MOST_DIGITS
from weft.languages.syntax import Name

POLICIES: dict[str, type[Enum]] = {
    "evaluation": Evaluation,
    "cardinality": Cardinality,
    "repeated": Repeated,
    "consumption": Consumption,
}
DEFAULTS: dict[str, Enum] = {
    "evaluation": Evaluation.IMMEDIATE,
    "cardinality": Cardinality.UNRESTRICTED,
    "repeated": Repeated.EVERY,
    "consumption": Consumption.REUSE,
}
OF_PARTICIPANTS = ("repeated", "consumption")
SPLIT = "split"  # how a pattern is worked out: its value is numbers of blocks


def values_of(policy: str) -> tuple[str, ...]:
    """The values that a policy can have."""
    return tuple(member.value for member in POLICIES[policy])


@dataclass
class Settings:
    """The policies of a pattern, and where those of single participants differ."""

    chosen: dict[str, Enum] = field(default_factory=dict)
    of_variable: dict[str, dict[str, Enum]] = field(default_factory=dict)
    split: Name | None = None

    def value(self, policy: str, variable: str | None = None) -> Enum:
        """The value of a policy, for the pattern or for a participant."""
        own = self.of_variable.get(variable or "", {})
        return own.get(policy) or self.chosen.get(policy) or DEFAULTS[policy]

    def finds_all(self, variables: Iterable[str]) -> bool:
        """Whether every set is found, whatever other sets there are."""
        chooses = any(self.value(policy, name) != DEFAULTS[policy] for policy in OF_PARTICIPANTS for name in variables)
        return not chooses and self.value("cardinality") is Cardinality.UNRESTRICTED


def lower_policies(clause: syntax.Policies | None, variables: Iterable[str], findings: Findings) -> Settings:
    """The settings of a clause; what is unknown, or set twice, is reported."""
    settings = Settings()
    known = list(variables)
    for group in clause.groups if clause is not None else ():
        pairs = [pair for setting in group.settings if (pair := _setting(setting, findings)) is not None]
        for setting in group.settings:
            if setting.policy.text.lower() == SPLIT:
                _put_split(setting, group, settings, findings)
        if not group.variables:
            _put(pairs, settings.chosen, "the pattern", findings)
        for variable in group.variables:
            if variable.text not in known:
                message = f"nothing is called {variable.text!r} here"
                findings.error("unknown-variable", message, variable.span, did_you_mean(variable.text, known))
            own = settings.of_variable.setdefault(variable.text, {})
            _put([pair for pair in pairs if _is_own(pair[0], findings)], own, repr(variable.text), findings)
    return settings


def _setting(node: syntax.Setting, findings: Findings) -> tuple[Name, Enum] | None:
    policy, value = node.policy.text.lower(), node.value.text.lower()
    if policy == SPLIT:
        return None
    if policy not in POLICIES:
        owner = next((name for name in POLICIES if policy in values_of(name)), None)
        hint = f"write {owner} {policy}" if owner else did_you_mean(policy, [*POLICIES, SPLIT])
        findings.error("unknown-policy", f"there is no policy {node.policy.text!r}", node.policy.span, hint)
        return None
    if value not in values_of(policy):
        message = f"the policy {policy!r} has no value {node.value.text!r}"
        near = did_you_mean(value, values_of(policy)) or ""
        hint = near if near.startswith("did") else f"it can be {' or '.join(values_of(policy))}"
        if policy == "repeated" and value == "each":
            hint = "write every"
        findings.error("unknown-policy", message, node.value.span, hint)
        return None
    return node.policy, POLICIES[policy](value)


def _put_split(node: syntax.Setting, group: syntax.Group, settings: Settings, findings: Findings) -> None:
    if group.variables:
        _is_own(node.policy, findings)
    elif settings.split is not None:
        findings.error("policy-twice", "the pattern is split a second time", node.span, "remove one of the two")
    else:
        settings.split = node.value


def lowered_split(value: Name, situation: Situation, findings: Findings) -> Situation:
    """The situation with the split that was chosen; one that it does not have is reported."""
    graph = dependencies(situation)
    parts = [int(part) for part in value.text.split(":") if part.isdigit() and len(part) < MOST_DIGITS]
    most, why = len(graph.blocks), why_whole(situation)
    if why is not None:
        findings.error("no-such-split", f"this pattern cannot be split: {why}", value.span, "remove the policy")
    elif len(parts) < 2 or sum(parts) != most or parts[-1] < 1:
        message = f"{value.text!r} does not divide the {most} blocks of this pattern: {graph.to_text()}"
        hint = f"write one of {', '.join(f'{first}:{most - first}' for first in range(most))}"
        findings.error("no-such-split", message, value.span, hint)
    else:
        return replace(situation, split=sum(parts[:-1]))
    return situation


def _is_own(policy: Name, findings: Findings) -> bool:
    """Whether a policy can be set for a single participant."""
    if policy.text.lower() in OF_PARTICIPANTS:
        return True
    message = f"the policy {policy.text.lower()!r} is that of the whole pattern"
    hint = "write it before the first semicolon; single participants have repeated and consumption"
    findings.error("policy-of-the-pattern", message, policy.span, hint)
    return False


def _put(pairs: Sequence[tuple[Name, Enum]], into: dict[str, Enum], whose: str, findings: Findings) -> None:
    for policy, value in pairs:
        name = policy.text.lower()
        if name in into:
            message = f"the policy {name!r} of {whose} is set a second time"
            findings.error("policy-twice", message, policy.span, "remove one of the two")
        into.setdefault(name, value)
