"""The classes that queries and programs are made of, by the names under which they are stored."""

from __future__ import annotations

from weft import schema, source
from weft.algebra import (
    chains,
    composites,
    contexts,
    definition,
    endpoints,
    functions,
    patterns,
    policies,
    predicates,
    query,
    row_patterns,
    rules,
    situations,
    terms,
)
from weft.algebra.query import Program
from weft.stored import Plain, classes_in, from_plain, to_plain

CLASSES = classes_in(
    (
        source,
        schema,
        chains,
        composites,
        contexts,
        definition,
        endpoints,
        functions,
        patterns,
        policies,
        predicates,
        query,
        row_patterns,
        rules,
        situations,
        terms,
    )
)


def program_to_plain(program: Program) -> Plain:
    """A program as plain data."""
    return to_plain(program)


def program_from_plain(plain: Plain) -> Program:
    """The program that was made into plain data."""
    found = from_plain(plain, CLASSES)
    assert isinstance(found, Program)
    return found
