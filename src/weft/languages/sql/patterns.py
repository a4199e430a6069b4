"""PATTERN in the algebra: quantifiers and their bounds, permutations, and what may not be excluded."""

from __future__ import annotations

from math import factorial

from weft.algebra.row_patterns import (
    Alternation,
    Concatenation,
    EmptyRows,
    Exclusion,
    Permutation,
    Quantifier,
    RowAnchor,
    RowRegex,
    RowVariable,
)
from weft.languages.findings import Findings
from weft.languages.sql import syntax

MOST_PERMUTED = 6
MOST_ITERATIONS = 1_000
MOST_STATES = 50_000  # variables of a pattern whose quantifiers and permutations are written out


def variables_of(pattern: syntax.PatternTerm) -> tuple[str, ...]:
    """The primary variables of a pattern, each once, in the order in which they are named first."""
    named = (node.name.folded for node in pattern.walk() if isinstance(node, syntax.VariableTerm))
    return tuple(dict.fromkeys(named))


def lower_pattern(pattern: syntax.PatternTerm, rows: str, findings: Findings) -> RowRegex:
    """A pattern in the algebra; what is wrong in it is reported."""
    if not variables_of(pattern):
        hint = "write PATTERN (A B+) and say in DEFINE which rows are A and B"
        findings.error("no-variable", "PATTERN names no variable", pattern.span, hint)
    for node in pattern.walk():
        if isinstance(node, syntax.ExcludedTerm) and rows == "unmatched":
            message = "{- -} cannot be combined with ALL ROWS PER MATCH WITH UNMATCHED ROWS"
            hint = "a row that is left out of a match is neither shown nor unmatched: choose one of them"
            findings.error("excluded-unmatched", message, node.span, hint)
        elif isinstance(node, syntax.ExcludedTerm) and rows == "one":
            message = "{- -} has no effect with ONE ROW PER MATCH"
            findings.warning("excluded-one-row", message, node.span, "write ALL ROWS PER MATCH to show the other rows")
    lowered = _lower(pattern, findings)
    size = _size(lowered)
    if size > MOST_STATES:
        message = f"written out, this pattern has {size:,} variables; {MOST_STATES:,} is the limit"
        findings.error("too-large", message, pattern.span, "use smaller bounds, or * and +")
    return lowered


def _lower(node: syntax.PatternTerm, findings: Findings) -> RowRegex:
    match node:
        case syntax.VariableTerm(name):
            return RowVariable(name.folded)
        case syntax.AnchorTerm(end):
            return RowAnchor(end)
        case syntax.SequenceTerm(parts):
            return Concatenation(tuple(_lower(part, findings) for part in parts))
        case syntax.AlternativeTerm(parts):
            return Alternation(tuple(_lower(part, findings) for part in parts))
        case syntax.PermuteTerm(parts):
            if len(parts) > MOST_PERMUTED:
                message = f"PERMUTE of {len(parts)}: there are {factorial(len(parts)):,} orders of them"
                hint = f"{MOST_PERMUTED} is the limit: permute groups, or write (A | B | C)+ and count in DEFINE"
                findings.error("too-large", message, node.span, hint)
                parts = parts[:MOST_PERMUTED]
            return Permutation(tuple(_lower(part, findings) for part in parts))
        case syntax.ExcludedTerm(part):
            return Exclusion(_lower(part, findings))
        case syntax.QuantifiedTerm():
            return _quantified(node, findings)
    return EmptyRows()


def _quantified(node: syntax.QuantifiedTerm, findings: Findings) -> RowRegex:
    least, most = node.least, node.most
    if most == 0:
        hint = "remove the variable, or make it optional: A?"
        findings.error("quantifier", "this quantifier takes no row at all", node.span, hint)
    elif most is not None and most < least:
        findings.error("quantifier", f"no number is from {least} to {most}", node.span, f"write {{{most},{least}}}")
    elif max(least, most or 0) > MOST_ITERATIONS:
        hint = "use * or +, and test the number in DEFINE: COUNT(A.*) <= 5000"
        message = f"{max(least, most or 0):,} iterations; {MOST_ITERATIONS:,} is the limit"
        findings.error("too-large", message, node.span, hint)
        least = most = 1
    return Quantifier(_lower(node.part, findings), least, most, node.greedy)


def _size(pattern: RowRegex) -> int:
    """How many variables a pattern has whose quantifiers and permutations are written out."""
    inner = sum(_size(child) for child in pattern.children() if isinstance(child, RowRegex))
    match pattern:
        case RowVariable():
            return 1
        case Permutation(parts):
            return inner * factorial(len(parts))
        case Quantifier(_, least, most):
            return inner * max(1, most if most is not None else least + 1)
    return inner
