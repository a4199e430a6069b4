"""Each rewrite by cost on programs where it fires and on programs where it must not, with costs and refusals."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.languages.golden import check_golden, golden_files

from weft.languages import compile_text
from weft.optimizer.pipeline import trace
from weft.optimizer.report import refusal_lines, rewrite_lines
from weft.statistics import Statistics

RULES = (
    *("lift_plain_conditions", "rebracket_each", "rebracket_next", "reorder_union", "spread_key"),
    *("order_conditions", "order_lookbacks", "order_overlap", "split_sequence", "share_prefix"),
)
RATES = "rates "  # how a line begins that says what is known, where a language does not declare it
CASES = [(rule, path) for rule in RULES for path in golden_files(f"rewrites/{rule}")]


@pytest.mark.parametrize(("rule", "path"), CASES, ids=[f"{rule}-{path.stem}" for rule, path in CASES])
def test_rewrites_are_as_stored(rule: str, path: Path) -> None:
    def render(text: str) -> str:
        given, _, rest = text.partition("\n") if text.startswith(RATES) else ("", "", text)
        rates = {name: float(rate) for name, rate in (one.split("=") for one in given.removeprefix(RATES).split())}
        found = trace(compile_text(rest)[0], Statistics(rates) if rates else None)
        fired = rule in {rewrite.rule for rewrite in found.rewrites}
        assert fired == path.stem.startswith("fires"), [rewrite.rule for rewrite in found.rewrites]
        return "\n".join([*rewrite_lines(found), *refusal_lines(found)]) or "nothing to do"

    check_golden(path, render)


@pytest.mark.parametrize("rule", RULES)
def test_every_rule_has_cases_of_both_kinds(rule: str) -> None:
    kinds = {path.stem.split("_")[0] for path in golden_files(f"rewrites/{rule}")}
    assert kinds == {"fires", "stays"}
