"""`make torture`: a run on a real Spark under everything at once, for some minutes, by a seed that it prints.

Kills of every process, other numbers of lanes, second runs on the same checkpoint, events from the far future, files
that vanish, and attributes that come and change their kind. Afterwards all matches are compared, by id, with `meaning`.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from random import Random

from tests.chaos import lives as life
from tests.chaos.killing import kills
from tests.chaos.lives import Lives
from tests.chaos.test_spark_kills import PROGRAMS

from weft import api

FAR = 20 * 3_600_000  # ticks: less than a run rejects by the clock, more than it believes
REFUSED = "in use by process"


class Tortured(Lives):
    """A run that suffers more than kills."""

    def __init__(self, folder: Path, chance: Random) -> None:
        super().__init__(folder, "local[2]", tuple(PROGRAMS), chance)
        self.done: Counter[str] = Counter()
        self.wrong: list[str] = []

    def feed(self) -> None:
        """Write another file of events, now and then with one of the far future, or with other attributes."""
        chance, number = self._chance, self._files
        part: list[dict[str, object]] = [
            {"type": chance.choice("AABC"), "ts": 3 * n + chance.randrange(9), "k": "uvw"[n % 3], "x": n * 5 % 8}
            for n in range(number * life.PER_FILE, (number + 1) * life.PER_FILE)
        ]
        drift = chance.choice([None, 7, "seven"])
        if drift is not None:
            self.done["files with other attributes"] += 1
            part = [event | {"extra": drift} for event in part]
        if chance.random() < 0.3:
            self.done["far events"] += 1
            part.append({"type": "X", "ts": 3 * (number + 1) * life.PER_FILE + FAR})
        hidden = self._folder / "in" / f".{number:04d}.jsonl"
        hidden.write_text("".join(json.dumps(event) + "\n" for event in part))
        os.utime(hidden, (1000 + number, 1000 + number))
        hidden.rename(hidden.with_name(hidden.name[1:]))
        self._files += 1
        self.events += part

    def vanish(self) -> None:
        """Write a file without events, and take it away at once."""
        path = self._folder / "in" / f"gone{self._chance.randrange(10**9)}.jsonl"
        path.write_text("\n")
        time.sleep(self._chance.random() / 2)
        path.unlink()
        self.done["vanished files"] += 1

    def intrude(self) -> None:
        """Start a second run on the same checkpoint, which must be refused."""
        command = [sys.executable, "-W", "ignore", "-m", "weft", "run", *PROGRAMS, *life.OPTIONS, "--until", "read"]
        if self._now is None or self._now.poll() is not None:
            return
        found = subprocess.run(command, cwd=self._folder, capture_output=True, text=True, timeout=240, check=False)
        self.done["second runs"] += 1
        if self._now.poll() is None and (found.returncode == 0 or REFUSED not in found.stderr + found.stdout):
            self.wrong.append(f"a second run was not refused: {found.returncode} {found.stderr[-500:]}")

    def reshare(self) -> None:
        """Let the next process have another number of lanes."""
        life.SHARES[:] = ["--lanes", str(self._chance.choice([1, 2, 3])), "--partitions", "2"]
        self.done["other lanes"] += 1


def torture(folder: Path, seed: int, minutes: float) -> list[str]:
    """Torture a run for so many minutes; what is wrong afterwards."""
    chance = Random(seed)
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in PROGRAMS.items():
        (folder / name).write_text(text)
    run = Tortured(folder, chance)
    limit = time.monotonic() + 60 * minutes
    planned = [kill for kill in kills(seed, 10_000) if kill.master == "local"]
    try:
        run.prepared()
        for kill in planned:
            if time.monotonic() > limit:
                break
            for trouble in chance.sample([run.vanish, run.intrude, run.reshare], chance.randrange(3)):
                trouble()
            if run.suffer(kill, limit) is not None:
                run.done[f"kills of {kill.victim}"] += 1
        run.finish()
    finally:
        run.end()
    print(f"seed {seed}: {len(run.events)} events; {dict(run.done)}", flush=True)
    return [*run.wrong, *run.complaints(), *differences(folder, run.events)]


def differences(folder: Path, events: list[dict[str, object]]) -> list[str]:
    """What the sink has too much or too little of, by id, against the definition of meaning."""
    program = api.together([api.compile(folder / name) for name in PROGRAMS])
    expected = Counter(match.id for match in api.detect(events, program, engine="local"))
    sample = events[:400]
    meant = Counter(match.id for match in api.detect(sample, program, engine="meaning"))
    here = Counter(match.id for match in api.detect(sample, program, engine="local"))
    lines = [line for path in sorted((folder / "out").glob("*.jsonl")) for line in path.read_text().splitlines()]
    found = Counter(json.loads(line)["id"] for line in lines)
    print(f"{found.total()} matches, {expected.total()} expected", flush=True)
    pairs = (("lost", expected - found), ("too much", found - expected), ("engine and meaning differ", meant - here))
    return [f"{what}: {some.total()}, as {sorted(some)[:3]}" for what, some in pairs if some]


def main() -> None:
    """Run it from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    given = parser.parse_args()
    print(f"torture with --seed {given.seed} for {given.minutes:g} minutes", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        wrong = torture(Path(folder) / "run", given.seed, given.minutes)
    for one in wrong:
        print(f"wrong: {one}", flush=True)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
