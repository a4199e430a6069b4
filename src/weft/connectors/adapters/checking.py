"""The places that a program names → findings about those that cannot be read or written, before anything runs."""

from __future__ import annotations

from collections.abc import Iterator

from weft.algebra.query import Program
from weft.connectors.adapters.registry import Role, find_adapter, known_adapters, problem_of
from weft.connectors.uris import Uri, as_uri
from weft.errors import Diagnostic, UsageError, did_you_mean
from weft.source import SourceText, Span


def check_adapters(program: Program, text: str, name: str = "<text>") -> list[Diagnostic]:
    """Findings about sources and sinks: no such adapter is an error, a missing requirement a warning."""
    source = SourceText(text, name)
    found = [_finding(uri, role, source) for uri, role in _named(program)]
    return [finding for finding in found if finding is not None]


def _named(program: Program) -> Iterator[tuple[Uri, Role]]:
    roles: list[tuple[str | None, Role]] = [(one.uri, "source") for one in program.inputs]
    roles += [(one.uri, "sink") for one in program.outputs]
    for text, role in dict.fromkeys(roles):
        uri = None if text is None else as_uri(text)
        if uri is not None:
            yield uri, role


def _finding(uri: Uri, role: Role, source: SourceText) -> Diagnostic | None:
    begin = max(0, source.text.find(uri.text))
    span = Span(begin, min(len(source.text), begin + len(uri.text)))
    try:
        is_known = find_adapter(uri.scheme) is not None
    except UsageError as problem:
        return Diagnostic("broken-adapter", str(problem), source, span)
    if not is_known:
        hint = did_you_mean(uri.scheme, known_adapters())
        return Diagnostic("unknown-adapter", f"there is no adapter for {uri.scheme!r}", source, span, hint)
    reason = problem_of(uri, role)
    return None if reason is None else Diagnostic("adapter", reason, source, span, severity="warning")
