"""Parsers made from the grammar files; their tables are kept on disk, since making them takes longer than parsing."""

from __future__ import annotations

import hashlib
from importlib.resources import files
from typing import Any

import lark

from weft.cache import cache_folder


def load_parser(package: str, transformer: Any = None) -> lark.Lark:
    """The parser of a language's `grammar.lark`, which makes syntax nodes as it goes (without a transformer, trees)."""
    grammar = files(package).joinpath("grammar.lark").read_text(encoding="utf-8")
    digest = hashlib.sha256((lark.__version__ + grammar).encode()).hexdigest()[:16]
    folder = cache_folder()
    return lark.Lark(
        grammar,
        parser="lalr",
        lexer="contextual",
        transformer=transformer,
        maybe_placeholders=True,
        cache=str(folder / f"{package}-{digest}.lark") if folder else False,
    )
