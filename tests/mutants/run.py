"""`make mutants`: put mistakes into a copy of the source one by one, run the tests near them, report what survives.

    python tests/mutants/run.py --minutes 10 --seed 1 --only plan/keys

A mutant that survives is a line that no test near it looks at: write the test that fails with it.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from mutate import Mutant, mutants

from weft.cache import cache_folder

ROOT = Path(__file__).resolve().parents[2]
COPY = ROOT / "build" / "mutants"
FOLDERS = ("plan", "optimizer", "runtime")
LONGEST = 600.0  # seconds for the tests of one mutant
UNIT, PROPERTY, LANGUAGES = "tests/unit/", "tests/property/", "tests/languages/test_"
# The tests of the first folder or file that a path begins with, the quick ones first; one that fails finds the mutant.
NEAR = {
    "optimizer/cost": (
        f"{UNIT}optimizer/test_cost_model.py",
        f"{LANGUAGES}golden_rewrites.py",
        f"{PROPERTY}forms/test_rewriting.py",
    ),
    "optimizer/": (
        f"{UNIT}optimizer/test_optimizer_rules.py",
        f"{UNIT}optimizer/test_forbidden_rewrites.py",
        f"{LANGUAGES}golden_rewrites.py",
        f"{PROPERTY}forms/test_optimizer.py",
        f"{PROPERTY}forms/test_inequalities.py",
        f"{PROPERTY}forms/test_rewriting.py",
    ),
    "plan/automaton": (f"{LANGUAGES}golden_plans.py", f"{PROPERTY}engines/test_engines_equal_meaning.py"),
    "plan/changes": (f"{UNIT}service/test_changes.py", f"{PROPERTY}running/test_live_equals_meaning.py"),
    "plan/chains": (
        f"{UNIT}plan/test_plans.py",
        f"{LANGUAGES}golden_plans.py",
        f"{PROPERTY}engines/test_key_chains.py",
    ),
    "plan/keyed": (f"{UNIT}algebra/test_situations.py", f"{PROPERTY}engines/test_keyed_sequences.py"),
    "plan/keys": (f"{UNIT}plan/test_lane_keys.py", f"{LANGUAGES}golden_plans.py", f"{PROPERTY}parts/test_keys.py"),
    "plan/partitioning": (
        f"{UNIT}plan/test_partitioning.py",
        f"{UNIT}plan/test_lane_keys.py",
        f"{LANGUAGES}golden_plans.py",
        f"{PROPERTY}lanes/test_strategies_equal_meaning.py",
    ),
    "plan/reuse": (
        f"{UNIT}service/test_live_sharing.py",
        f"{PROPERTY}running/test_live_equals_meaning.py::test_composite_queries_that_share_operators",
    ),
    "plan/search": (
        f"{UNIT}algebra/test_dependencies.py",
        f"{LANGUAGES}golden_plans.py",
        f"{PROPERTY}engines/test_blocks.py",
    ),
    "plan/spans": (
        f"{UNIT}plan/test_lane_keys.py",
        f"{UNIT}engine/test_graph_runs.py",
        f"{PROPERTY}engines/test_composites_equal_meaning.py",
    ),
    "plan/stored": (f"{UNIT}service/test_changes.py",),
    "plan/forms/replanning": (f"{UNIT}optimizer/test_measuring.py", f"{PROPERTY}forms/test_adapting.py"),
    "plan/": (f"{UNIT}plan/test_plans.py", f"{UNIT}plan/test_lane_keys.py", f"{LANGUAGES}golden_plans.py"),
    "runtime/adapting": (f"{UNIT}optimizer/test_measuring.py", f"{PROPERTY}forms/test_adapting.py"),
    "runtime/automaton": (
        f"{UNIT}engine/test_engine_promises.py",
        f"{UNIT}engine/test_counting.py",
        f"{PROPERTY}engines/test_engines_equal_meaning.py",
        f"{PROPERTY}forms/test_forms_in_place.py",
    ),
    "runtime/classify": (
        f"{UNIT}engine/test_classify.py",
        f"{PROPERTY}parts/test_classify.py",
        f"{PROPERTY}parts/test_keys.py",
    ),
    "runtime/live/deployments": (
        f"{UNIT}service/test_live.py",
        f"{UNIT}service/test_changes.py",
        f"{PROPERTY}running/test_live_equals_meaning.py",
    ),
    "runtime/joins": (
        f"{UNIT}plan/test_lane_keys.py",
        f"{UNIT}engine/test_graph_runs.py",
        f"{UNIT}service/test_live_sharing.py",
        f"{PROPERTY}engines/test_composites_equal_meaning.py",
        f"{PROPERTY}engines/test_key_chains.py",
    ),
    "runtime/lanes": (f"{UNIT}plan/test_lanes.py", f"{PROPERTY}lanes/test_strategies_equal_meaning.py"),
    "runtime/machine": (
        f"{UNIT}engine/test_exact_conditions.py",
        f"{UNIT}inputs/test_exact_numbers.py",
        f"{PROPERTY}engines/test_rules_equal_meaning.py",
    ),
    "runtime/watching/measuring": (f"{UNIT}optimizer/test_measuring.py", f"{PROPERTY}forms/test_adapting.py"),
    "runtime/reading": (
        f"{UNIT}inputs/test_order.py",
        f"{UNIT}inputs/test_stabilise.py",
        f"{UNIT}inputs/test_stream_order.py",
        f"{PROPERTY}parts/test_order.py",
    ),
    "runtime/results": (f"{UNIT}engine/test_results.py", f"{PROPERTY}engines/test_results.py"),
    "runtime/rules": (
        f"{UNIT}engine/test_rule_runs.py",
        f"{PROPERTY}engines/test_rules_equal_meaning.py",
        f"{PROPERTY}parts/test_rule_index.py",
        f"{PROPERTY}forms/test_forms_in_place.py",
    ),
    "runtime/situations": (
        f"{UNIT}engine/test_situation_runs.py",
        f"{PROPERTY}engines/test_situations_equal_meaning.py",
        f"{PROPERTY}forms/test_forms_in_place.py",
    ),
    "runtime/state/structure": (f"{UNIT}service/test_changes.py", f"{PROPERTY}running/test_live_equals_meaning.py"),
    "runtime/writing": (
        f"{UNIT}engine/test_matches.py",
        f"{UNIT}inputs/test_json_texts.py",
        f"{UNIT}engine/test_keyed_ids.py",
    ),
    "runtime/": (
        f"{UNIT}engine/test_local.py",
        f"{UNIT}service/test_live.py",
        f"{UNIT}engine/test_derived.py",
        f"{UNIT}inputs/test_places.py",
        f"{PROPERTY}engines/test_mixed_equals_meaning.py",
    ),
}


def candidates(only: str) -> list[Path]:
    """The files that may be changed; not Spark's, whose tests take long."""
    files = [path for folder in FOLDERS for path in sorted((ROOT / "src" / "weft" / folder).rglob("*.py"))]
    return [path for path in files if "spark" not in path.parts and only in path.as_posix()]


def near(path: Path) -> tuple[str, ...]:
    """The tests that should notice a mistake in a file."""
    name = path.relative_to(ROOT / "src" / "weft").as_posix()
    return next(tests for start, tests in NEAR.items() if name.startswith(start))


def passes(tests: tuple[str, ...], seconds: float) -> bool:
    """Whether tests pass in the copy; if they take too long they do not."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests]
    try:
        ended = subprocess.run(
            command,
            cwd=COPY,
            env={**os.environ, "PYTHONPATH": str(COPY / "src"), "WEFT_CACHE": str(cache_folder() or "")},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return False
    return ended.returncode == 0


def survives(path: Path, mutant: Mutant, seconds: float) -> bool:
    """Whether the tests near a file pass in spite of a mutant."""
    target = COPY / path.relative_to(ROOT)
    target.write_text(mutant.text, encoding="utf-8")
    try:
        return passes(near(path), seconds)
    finally:
        shutil.copyfile(path, target)


def copy_source() -> None:
    """Make the copy anew, with all that tests read."""
    shutil.rmtree(COPY, ignore_errors=True)
    for name in ("src", "tests", "examples", "docs"):
        shutil.copytree(ROOT / name, COPY / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "CHANGELOG.md"):
        shutil.copyfile(ROOT / name, COPY / name)


def drawn(files: list[Path], seed: int) -> Iterator[tuple[Path, Mutant]]:
    """Mutants of the files at random, no mistake twice."""
    chosen, made = random.Random(seed), set[tuple[Path, str]]()
    left = list(files)
    while left:
        path = chosen.choice(left)
        fresh = [mutant for mutant in mutants(path.read_text(encoding="utf-8")) if (path, mutant.text) not in made]
        if not fresh:
            left.remove(path)
            continue
        mutant = chosen.choice(fresh)
        made.add((path, mutant.text))
        yield path, mutant


def main() -> None:
    """Try mutants until the time is over, and say which were not noticed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--minutes", type=float, default=10, help="how long to go on (10)")
    parser.add_argument("--seed", type=int, default=0, help="which mutants are drawn (0)")
    parser.add_argument("--only", default="", help="part of the path of the files to change")
    options = parser.parse_args()
    files = candidates(options.only)
    if not files:
        parser.error(f"no file of {', '.join(FOLDERS)} has {options.only!r} in its path")
    copy_source()
    until = time.monotonic() + 60 * options.minutes
    sound: set[tuple[str, ...]] = set()  # tests that pass without a mistake
    tried, survivors = 0, 0
    for path, mutant in drawn(files, options.seed):
        if time.monotonic() >= until:
            break
        if near(path) not in sound:
            if not passes(near(path), LONGEST):
                sys.exit(f"these tests fail, or take too long, without any mistake: {' '.join(near(path))}")
            sound.add(near(path))
        tried += 1
        where = f"{path.relative_to(ROOT)}:{mutant.line}: {mutant.before}  ->  {mutant.after}"
        if survives(path, mutant, LONGEST):
            survivors += 1
            print(f"SURVIVED  {where}", flush=True)
        else:
            print(f"found     {where}", flush=True)
    print(f"{tried} mutants, {survivors} survived")


if __name__ == "__main__":
    main()
