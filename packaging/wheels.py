"""Build a pure wheel, and one with compiled kernels for each Python that is here; install each and find a match.

Each wheel is installed into an environment of its own. The pure wheel is tried on every Python, and its demo on the
first: it compiles what the demo needs.

usage: wheels.py [--only 3.11] [--demo]   PYTHONS="python3.12 /opt/…/python3.13" names further interpreters.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).parents[1]
BUILD, DIST = ROOT / "build", ROOT / "dist"
TREE = BUILD / "wheel"
VERSIONS = ("3.11", "3.12", "3.13", "3.14")
FIRST_MATCH = """import weft
n = weft.count([{"type": "A", "ts": 1}, {"type": "B", "ts": 2}], "SELECT * FROM S WHERE A ; B WITHIN 2 EVENTS")
assert sum(n.values()) == 1, n
"""
ELSEWHERE = "is not here: .github/workflows/wheels.yml builds for it, or name an interpreter in PYTHONS"


def run(*command: str | Path, **settings: str) -> None:
    """Run a command with further environment variables; fail if it does."""
    subprocess.run([str(part) for part in command], check=True, cwd=BUILD, env={**os.environ, **settings})


def pip(python: Path, *arguments: str | Path) -> None:
    """Run the pip of an environment, quietly."""
    run(python, "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments)


def interpreters() -> dict[str, str]:
    """Return the Pythons that are here, by version: those that are named, this one, on the path, and pyenv's."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    kept = [str(found) for found in sorted(pyenv.glob("*/bin/python3"), reverse=True)]
    named = [*os.environ.get("PYTHONS", "").split(), sys.executable, *(f"python{one}" for one in VERSIONS), *kept]
    found: dict[str, str] = {}
    for name in named:
        asked = [name, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
        answer = subprocess.run(asked, capture_output=True, text=True) if shutil.which(name) else None
        version = answer.stdout.strip() if answer is not None and answer.returncode == 0 else ""
        if version in VERSIONS:
            found.setdefault(version, name)
    return found


def prepare() -> None:
    """Copy what a wheel is made of, with links that work on PyPI."""
    shutil.rmtree(TREE, ignore_errors=True)
    TREE.mkdir(parents=True)
    DIST.mkdir(exist_ok=True)
    for old in DIST.glob("weft_cep-*.whl"):
        old.unlink()
    shutil.copytree(ROOT / "src", TREE / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info", "compiled"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, TREE)
    run(sys.executable, ROOT / "packaging" / "readme.py", TREE / "README.md", TREE / "pyproject.toml")


def build(python: Path, tag: str | None = None) -> Path:
    """Build a wheel of the prepared files, for one Python on this platform if it has a tag."""
    before = set(DIST.glob("*.whl"))
    shutil.rmtree(TREE / "build", ignore_errors=True)
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    option = [f"--config-settings=--build-option=--python-tag {tag} --plat-name {platform}"] if tag else []
    pip(python, "wheel", "--no-deps", "--wheel-dir", DIST, *option, TREE)
    (wheel,) = set(DIST.glob("*.whl")) - before
    return wheel


def installed(wheel: Path, version: str, interpreter: str) -> Path:
    """Install a wheel into a clean environment and return its Python."""
    folder = BUILD / "pythons" / version
    shutil.rmtree(folder, ignore_errors=True)
    run(interpreter, "-m", "venv", folder)
    python = folder / "bin" / "python"
    pip(python, "install", "--only-binary", "numba,llvmlite,numpy,pyarrow,pandas", wheel)
    return python


def compiled_wheel(python: Path, version: str) -> Path:
    """Compile all kernels for a common processor and build the wheel that carries them."""
    compiled = TREE / "src" / "weft" / "compiled"
    shutil.rmtree(compiled, ignore_errors=True)
    asked = [str(python), "-c", "from weft.kernels.store import BASELINE; print(BASELINE)"]
    baseline = subprocess.run(asked, check=True, capture_output=True, text=True).stdout.strip()
    processor = {"NUMBA_CPU_NAME": baseline, "NUMBA_CPU_FEATURES": ""}
    run(python, "-m", "weft", "warm", "--no-spark", PYTHONPATH=str(TREE / "src"), WEFT_CACHE=str(compiled), **processor)
    wheel = build(python, f"cp{version.replace('.', '')}")
    shutil.rmtree(compiled)
    return wheel


def match_without_compiling(python: Path, cache: Path) -> None:
    """Find a first match with an empty cache; fail if a kernel was compiled for it."""
    shutil.rmtree(cache, ignore_errors=True)
    run(python, "-c", FIRST_MATCH, WEFT_CACHE=str(cache))
    if compiled := [file.name for file in cache.glob("kernels/*")]:
        sys.exit(f"kernels were compiled that the wheel should supply: {', '.join(compiled)}")


def main() -> None:
    """Build and test all wheels."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=VERSIONS, help="build for this Python only")
    parser.add_argument("--demo", action="store_true", help="also run the demo from each wheel")
    wanted = parser.parse_args()
    BUILD.mkdir(exist_ok=True)
    prepare()
    pure = build(Path(sys.executable))
    print(f"built {pure.name}", flush=True)
    found = interpreters()
    demo_of_pure = wanted.demo
    for version in VERSIONS if wanted.only is None else [wanted.only]:
        if version not in found:
            print(f"Python {version} {ELSEWHERE}", flush=True)
        elif (wheel := release(pure, version, found[version], demo=wanted.demo, demo_of_pure=demo_of_pure)) is None:
            print(f"Python {version} is left out: not all dependencies have packages for it", flush=True)
        else:
            demo_of_pure = False
            print(f"built and tested {wheel.name} ({wheel.stat().st_size / 1e6:.1f} MB)", flush=True)


def release(pure: Path, version: str, interpreter: str, *, demo: bool, demo_of_pure: bool) -> Path | None:
    """Try the pure wheel on one Python, then build and try the one with compiled kernels; None if it cannot be."""
    try:
        python = installed(pure, version, interpreter)
    except subprocess.CalledProcessError:
        return None
    cache = BUILD / "pythons" / f"cache-{version}"
    run(python, "-c", FIRST_MATCH, WEFT_CACHE=str(cache))
    if demo_of_pure:
        run(python, ROOT / "examples" / "demo.py", WEFT_CACHE=str(cache))
    wheel = compiled_wheel(python, version)
    python = installed(wheel, version, interpreter)
    match_without_compiling(python, BUILD / "pythons" / f"unused-{version}")
    if demo:
        run(python, ROOT / "examples" / "demo.py")
    return wheel


if __name__ == "__main__":
    main()
