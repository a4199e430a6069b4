"""Run the smoke suite on releases of Spark: `python run.py [3.5 4.0 …]`, all supported ones unless some are named.
With `--kafka` the tests with a real broker and with tables run instead: packages exist for some releases alone.

Each has an environment in build/versions, made once for what pyproject.toml asks for, with the newest patch of its
release. Needs nothing but Python.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).parents[2]
RELEASES = ("3.5", "4.0", "4.1", "4.2", "4.3")
TOOLS = ("pip>=23", "setuptools>=77", "wheel")  # PySpark comes as source, and 3.5 needs distutils


def environment(release: str) -> Path:
    """The Python of an environment with weft and this release of PySpark."""
    folder = ROOT / "build" / "versions" / release
    python, ready = folder / "bin" / "python", folder / "ready"
    made_for = hashlib.sha256((ROOT / "pyproject.toml").read_bytes()).hexdigest()
    if ready.exists() and ready.read_text() == made_for:
        return python
    print(f"Setting up {folder.relative_to(ROOT)} (about 1 GB)", flush=True)
    venv.create(folder, with_pip=True)
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--upgrade"]
    subprocess.run([*pip, *TOOLS], check=True)
    subprocess.run(
        [*pip, "--editable", f"{ROOT}[connect]", f"pyspark=={release}.*", "pytest", "hypothesis", "kafka-python"],
        check=True,
    )
    ready.write_text(made_for)
    return python


def smoke(release: str, tests: str) -> bool:
    """Whether tests pass on a release."""
    python = environment(release)
    say = "import pyspark, pandas; print('PySpark', pyspark.__version__, 'with pandas', pandas.__version__)"
    subprocess.run([str(python), "-c", say], check=True)
    command = [str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", "-rs", tests]
    hidden = {name: value for name, value in os.environ.items() if name not in ("SPARK_HOME", "PYTHONPATH")}
    return subprocess.run(command, cwd=ROOT, env=hidden, check=False).returncode == 0


def main(wanted: list[str]) -> int:
    tests = "tests/releases"
    if wanted[:1] == ["--kafka"]:
        wanted, tests = wanted[1:], "tests/kafka"
        os.environ.setdefault("WEFT_KAFKA", "1")
    unknown = [release for release in wanted if release not in RELEASES]
    if unknown:
        print(f"no such release: {', '.join(unknown)}; there are {', '.join(RELEASES)}", file=sys.stderr)
        return 2
    failed = [release for release in wanted or RELEASES if not smoke(release, tests)]
    print(f"failed: {', '.join(failed)}" if failed else f"passed: {', '.join(wanted or RELEASES)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
