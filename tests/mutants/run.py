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
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from mutate import Mutant, mutants

ROOT = Path(__file__).resolve().parents[2]
COPY = ROOT / "build" / "mutants"
FOLDERS = ("plan", "optimizer", "runtime")
# The tests of the first folder or file that a path begins with; one that fails says that the mutant is found.
NEAR = {
    "optimizer/": ("tests/unit/test_optimizer_rules.py", "tests/property/test_optimizer.py"),
    "plan/automaton": ("tests/languages/test_golden_plans.py", "tests/property/test_engines_equal_meaning.py"),
    "plan/": ("tests/languages/test_golden_plans.py", "tests/unit/test_lane_keys.py"),
    "runtime/joins": (
        "tests/unit/test_lane_keys.py",
        "tests/unit/test_graph_runs.py",
        "tests/property/test_composites_equal_meaning.py",
    ),
    "runtime/situations": ("tests/unit/test_situation_runs.py", "tests/property/test_situations_equal_meaning.py"),
    "runtime/rules": ("tests/unit/test_rule_runs.py", "tests/property/test_rules_equal_meaning.py"),
    "runtime/automaton": ("tests/unit/test_engine_promises.py", "tests/property/test_engines_equal_meaning.py"),
    "runtime/classify": ("tests/unit/test_classify.py", "tests/property/test_classify.py"),
    "runtime/reading": ("tests/unit/test_order.py", "tests/unit/test_stabilise.py", "tests/property/test_order.py"),
    "runtime/writing": ("tests/unit/test_matches.py", "tests/unit/test_json_texts.py"),
    "runtime/": ("tests/unit/test_local.py", "tests/unit/test_live.py", "tests/property/test_mixed_equals_meaning.py"),
}


def candidates(only: str) -> list[Path]:
    """The files that may be changed; not Spark's, whose tests take long."""
    files = [path for folder in FOLDERS for path in sorted((ROOT / "src" / "weft" / folder).rglob("*.py"))]
    return [path for path in files if "spark" not in path.parts and only in path.as_posix()]


def near(path: Path) -> tuple[str, ...]:
    """The tests that should notice a mistake in a file."""
    name = path.relative_to(ROOT / "src" / "weft").as_posix()
    return next(tests for start, tests in NEAR.items() if name.startswith(start))


def survives(path: Path, mutant: Mutant, seconds: float) -> bool:
    """Whether the tests near a file pass in spite of a mutant. One that takes too long is found."""
    target = COPY / path.relative_to(ROOT)
    target.write_text(mutant.text, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *near(path)]
    try:
        ended = subprocess.run(
            command,
            cwd=COPY,
            env={**os.environ, "PYTHONPATH": str(COPY / "src")},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=seconds,
            check=False,
        )
        return ended.returncode == 0
    except subprocess.TimeoutExpired:
        return False
    finally:
        shutil.copyfile(path, target)


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
    for name in ("src", "tests"):
        shutil.copytree(ROOT / name, COPY / name, dirs_exist_ok=True)
    shutil.copyfile(ROOT / "pyproject.toml", COPY / "pyproject.toml")
    chosen = random.Random(options.seed)
    until = time.monotonic() + 60 * options.minutes
    tried, survivors = 0, 0
    while time.monotonic() < until:
        path = chosen.choice(files)
        found = list(mutants(path.read_text(encoding="utf-8")))
        if not found:
            continue
        mutant = chosen.choice(found)
        tried += 1
        where = f"{path.relative_to(ROOT)}:{mutant.line}: {mutant.before}  ->  {mutant.after}"
        if survives(path, mutant, max(120.0, until - time.monotonic())):
            survivors += 1
            print(f"SURVIVED  {where}", flush=True)
        else:
            print(f"found     {where}", flush=True)
    print(f"{tried} mutants, {survivors} survived")


if __name__ == "__main__":
    main()
