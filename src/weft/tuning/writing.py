"""A split written into the text of a program, which stays as it is otherwise."""

from __future__ import annotations

from weft.errors import UsageError
from weft.languages.epn import syntax
from weft.languages.epn.parser import parse
from weft.languages.epn.policies import SPLIT
from weft.source import SourceText


def with_split(text: str, pattern: str, split: str) -> str:
    """The text with a pattern's split set: in place of the one it has, or as the first of its policies."""
    node = next((one for one in parse(SourceText(text)).patterns if one.name.text == pattern), None)
    if node is None:
        raise UsageError(f"there is no pattern {pattern!r} in this text")
    policies = next((clause for clause in node.clauses if isinstance(clause, syntax.Policies)), None)
    if policies is None:
        return f"{text[: node.span.end]}\n  policies {SPLIT} {split}{text[node.span.end :]}"
    own = [setting for group in policies.groups for setting in group.settings if setting.policy.text.lower() == SPLIT]
    if own:
        return text[: own[0].value.span.start] + split + text[own[0].value.span.end :]
    first = policies.groups[0]
    joint = "; " if first.variables else ", "
    return f"{text[: first.span.start]}{SPLIT} {split}{joint}{text[first.span.start :]}"
