"""`make torture`: a run on a real Spark under everything at once, for some minutes, by a seed that it prints.

Kills of every process, here and in a cluster, full disks, second runs on the same checkpoint, other programs and
lanes, programs with mistakes, clocks that jump, slow sinks, processes that hang, events from the far future, other
columns and formats, files that vanish or are written again while they are read. Afterwards all matches are compared,
by id, with `meaning`.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random

from tests.chaos.killing import kills
from tests.chaos.test_spark_kills import PROGRAMS
from tests.chaos.torture_check import compared, meant, rejected, written, wrong_rejects
from tests.chaos.tortured import AGAIN, Tortured, disks
from tests.spark.standalone import cluster

SAID_EVERY = 10  # kills


def torture(folder: Path, seed: int, minutes: float, *, in_cluster: bool = True, only: Sequence[str] = ()) -> list[str]:
    """Torture a run for so many minutes, by `only` some troubles if they are named; what is wrong afterwards."""
    chance = Random(seed)
    folder.mkdir(parents=True, exist_ok=True)
    limit = time.monotonic() + 60 * minutes
    with disks(folder) as are_small, cluster(folder / "cluster") as url:
        run = Tortured(folder, chance, ["local[2]", "local[2]", url] if in_cluster else ["local[2]"])
        troubles = run.troubles if are_small else [one for one in run.troubles if one != run.fill]
        troubles = [one for one in troubles if not only or one.__name__.lstrip("_") in only]
        if not are_small:
            print("full disks are left out: no small disks can be mounted here", flush=True)
        wrong: list[str] = []
        try:
            run.begin()
            for number, kill in enumerate(kills(seed, 10_000)):
                if time.monotonic() > limit:
                    break
                for trouble in chance.sample(troubles, min(len(troubles), chance.randrange(4))):
                    run.note(trouble.__name__)
                    trouble()
                chosen = run.possible(kill)
                run.note(f"kill {chosen.victim} in {chosen.place}")
                if run.suffer(chosen, limit) is not None:
                    run.done[f"kills of {chosen.victim}"] += 1
                if number % SAID_EVERY == 0:
                    print(f"{(limit - time.monotonic()) / 60:.1f} minutes left: {dict(run.done)}", flush=True)
            run.finish_in_peace()
        except AssertionError as problem:
            wrong.append(f"the run could not go on: {problem}")
        finally:
            run.end()
        print(f"seed {seed}: {len(run.feeder.events)} events; {dict(run.done)}", flush=True)
        wrong += [*run.wrong, *run.complaints(), *([] if wrong else differences(run, folder))]
        if wrong:
            kept = Path(tempfile.mkdtemp(prefix=f"weft-torture-{seed}-"))
            shutil.copytree(folder, kept, dirs_exist_ok=True, ignore=shutil.ignore_patterns("cluster"))
            print(f"all files of the run are in {kept}", flush=True)
        return wrong


def differences(run: Tortured, folder: Path) -> list[str]:
    """What the sink has too much or too little of, by id, against the definition of meaning."""
    sink, rejects = written(folder / "out"), rejected(folder / "out")
    always = [folder / "rules" / name for name in PROGRAMS]
    expected = meant(run.feeder.events, always)
    wrong = [f"{name} has no match at all" for name, ids in expected.items() if not ids]
    for name, ids in expected.items():
        wrong += compared(name, ids, sink.pop(name, Counter()))
    last = run.guests[-1]
    for guest in run.guests:  # queries that came and went: some of their matches, the last one all since it began
        ids = meant(run.feeder.events, [guest])[guest.stem]
        wrong += compared(guest.stem, ids, sink.get(guest.stem, Counter()), all_of_them=False)
        if guest == last:
            since = [(stretch, event) for stretch, event in run.feeder.events if stretch == run.last_stretch]
            wrong += compared(
                f"{guest.stem} at last", meant(since, [guest])[guest.stem] - sink.pop(guest.stem), Counter()
            )
        sink.pop(guest.stem, None)
    wrong += rewritten(run, folder, sink.pop(AGAIN, Counter()), [str(one) for one in rejects])
    wrong += [f"matches of a query that nobody wrote: {name}" for name in sink]
    print(f"{sum(ids.total() for ids in expected.values())} matches expected; {len(rejects)} rejects", flush=True)
    return [*wrong, *wrong_rejects(rejects, "ABC")]


def rewritten(run: Tortured, folder: Path, found: Counter[str], rejects: list[str]) -> list[str]:
    """What is wrong with files that were written while they were read: what is missing must be among the rejects."""
    wrong = []
    for number, (name, events) in enumerate(run.feeder.rewritten.items()):
        ids = meant([(number, event) for event in events], [folder / "rules" / f"{AGAIN}.ceql"])[AGAIN]
        missing = ids - found
        if missing and not any(name in one for one in rejects):
            wrong.append(f"{name}: {missing.total()} matches are missing, and nobody was told")
        found = found - ids
    return wrong + ([f"{AGAIN}: {found.total()} not expected, or twice"] if found else [])


def main() -> None:
    """Run it from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--local", action="store_true", help="without a cluster")
    parser.add_argument("--only", nargs="*", default=[], help="names of troubles: fill, reshare, change_program, …")
    given = parser.parse_args()
    print(f"torture with --seed {given.seed} for {given.minutes:g} minutes", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        wrong = torture(Path(folder) / "run", given.seed, given.minutes, in_cluster=not given.local, only=given.only)
    for one in wrong:
        print(f"wrong: {one}", flush=True)
    print("nothing is wrong" if not wrong else f"{len(wrong)} things are wrong", flush=True)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
