"""Runs tools/matrix_checks.py on each supported pair of a Spark release and a Python: `make matrix`.

Each pair has a virtual environment in a directory outside of the tree, with the wheel of lakelsm and not an editable
install, so that the package is tested as users get it. Environments are used again by the next run. PySpark has no wheel
in the index, so each release is built once for all Pythons.

A Python is `python3.N` on the PATH, or one that pyenv or uv installed. One that is missing is printed, and the run fails
unless --allow-missing.
"""

from __future__ import annotations

import argparse
import datetime
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
#: The Pythons that each release of Spark supports, of those that lakelsm supports.
PAIRS = {
    "4.0": ("3.10", "3.11", "3.12", "3.13"),
    "4.1": ("3.10", "3.11", "3.12", "3.13"),
    "4.2": ("3.10", "3.11", "3.12", "3.13"),
    "4.3": ("3.11", "3.12", "3.13"),
}
PYTHONS = ("3.10", "3.11", "3.12", "3.13")
#: The directory of the Pythons that uv installs.
UV_PYTHONS = Path(os.environ.get("UV_PYTHON_INSTALL_DIR", Path.home() / ".local" / "share" / "uv" / "python"))
#: The longest time of one pair, in seconds.
TIMEOUT = 1800


def main() -> int:
    """Run the chosen pairs, print a table of results, and return the exit status."""
    parser = argparse.ArgumentParser(prog="make matrix", description=__doc__.partition("\n")[0])
    parser.add_argument("--spark", help="releases with commas between them, such as 4.0,4.3 (default: all)")
    parser.add_argument("--python", help="versions with commas between them, such as 3.10,3.13 (default: all)")
    parser.add_argument("--directory", type=Path, help="the environments (default: ~/.cache/lakelsm/matrix)")
    parser.add_argument("--allow-missing", action="store_true", help="succeed although a Python is not found")
    given = parser.parse_args()
    releases = chosen(parser, "--spark", given.spark, tuple(PAIRS))
    versions = chosen(parser, "--python", given.python, PYTHONS)
    directory = (given.directory or Path.home() / ".cache" / "lakelsm" / "matrix").resolve()
    if directory.is_relative_to(ROOT):
        parser.error(f"--directory {directory} is in the tree. Choose another one.")
    directory.mkdir(parents=True, exist_ok=True)
    pythons = {version: found_python(version) for version in versions}
    missing = [version for version, path in pythons.items() if path is None]
    for version in missing:
        print(f"matrix: python{version} is not found: its pairs do not run", flush=True)
    wheel = built_wheel(directory)
    results: dict[tuple[str, str], dict[str, str]] = {}
    for release in releases:
        for version in versions:
            python = pythons[version]
            if version in PAIRS[release] and python is not None:
                results[release, version] = run_pair(directory, release, (version, python), wheel)
    if not results:
        print("matrix: no supported pair is left", flush=True)
        return 2
    print(table(results))
    failed = any(text.startswith("failed") for each in results.values() for text in each.values())
    return 1 if failed or (missing and not given.allow_missing) else 0


def chosen(parser: argparse.ArgumentParser, flag: str, given: str | None, known: tuple[str, ...]) -> tuple[str, ...]:
    """Return the values of a flag."""
    values = known if given is None else tuple(value.strip() for value in given.split(","))
    for value in values:
        if value not in known:
            parser.error(f"{flag}: {value!r} is not one of {', '.join(known)}")
    return values


def found_python(version: str) -> str | None:
    """Return a Python of a version that starts and can create environments; None if there is none."""
    program = "import ensurepip, sys, venv; print('%d.%d' % sys.version_info[:2])"
    name = f"python{version}"
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    managed = [*pyenv.glob(f"{version}.*/bin"), *UV_PYTHONS.glob(f"cpython-{version}.*/bin")]
    for folder in [*os.environ.get("PATH", "").split(os.pathsep), *map(str, sorted(managed))]:
        path = shutil.which(name, path=folder)
        if path is not None:  # A shim of a version manager may not start.
            ran = subprocess.run([path, "-c", program], capture_output=True, text=True, check=False)
            if ran.stdout.strip() == version:
                return path
    return None


def run(*command: str | Path) -> None:
    """Run a command of pip or venv. Raises RuntimeError with its output if it fails."""
    ran = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False)
    if ran.returncode:
        raise RuntimeError(f"{' '.join(map(str, command))}\n{ran.stdout}{ran.stderr}")


def built_wheel(directory: Path) -> Path:
    """Build the wheel of lakelsm from a copy, so that no files of the build are left in the tree."""
    target = directory / "lakelsm"
    shutil.rmtree(target, ignore_errors=True)
    with tempfile.TemporaryDirectory() as folder:
        for name in ("lakelsm", "pyspark_lakelsm"):
            shutil.copytree(ROOT / name, Path(folder) / name, ignore=shutil.ignore_patterns("__pycache__"))
        for name in ("setup.cfg", "pyproject.toml", "README.md", "LICENSE"):
            shutil.copy(ROOT / name, folder)
        run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", target, folder)
    return next(target.glob("lakelsm-*.whl"))


def environment(directory: Path, release: str, python: tuple[str, str]) -> Path:
    """Return the Python of the environment of a pair, with all that lakelsm needs."""
    version, base = python
    home = directory / f"spark-{release}-python-{version}"
    needs = (ROOT / "setup.cfg").read_bytes().partition(b"[tool:pytest]")[0]
    stamp = home / f".ready-{hashlib.sha256(needs).hexdigest()[:16]}"
    if not stamp.exists():
        wheels = directory / "wheels"
        if not list(wheels.glob(f"pyspark-{release}.*.whl")):
            run(base, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", wheels, f"pyspark=={release}.*")
        run(base, "-m", "venv", "--clear", home)
        wheel = next((directory / "lakelsm").glob("lakelsm-*.whl"))
        run(
            home / "bin" / "python", "-m", "pip", "install", "--quiet", "--no-compile", "--disable-pip-version-check",
            "--find-links", wheels, f"pyspark=={release}.*", f"lakelsm[sql] @ {wheel.as_uri()}",
        )  # fmt: skip
        stamp.touch()
    return home / "bin" / "python"


def run_pair(directory: Path, release: str, python: tuple[str, str], wheel: Path) -> dict[str, str]:
    """Run the checks on a pair, and return the result of each."""
    start = time.monotonic()
    try:
        program = environment(directory, release, python)
        pip = (program, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
        run(*pip, "--no-deps", "--force-reinstall", wheel)
    except RuntimeError as error:
        print(f"matrix: Spark {release}, Python {python[0]}: {error}", flush=True)
        return {"start": "failed"}
    settings = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "SPARK_HOME")}
    settings |= {"PYSPARK_PYTHON": str(program), "PYSPARK_DRIVER_PYTHON": str(program), "LC_ALL": "C.UTF-8", "TZ": "UTC"}
    settings["PATH"] = f"{program.parent}{os.pathsep}{settings.get('PATH', '')}"
    checks = Path(__file__).with_name("matrix_checks.py")
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        with (directory / f"spark-{release}-python-{python[0]}.log").open("w") as log:
            try:
                subprocess.run(
                    [program, checks, report, release], stdout=log, stderr=log, env=settings, cwd=folder, check=False,
                    timeout=TIMEOUT,
                )  # fmt: skip
            except subprocess.TimeoutExpired:
                log.write(f"stopped after {TIMEOUT} s\n")
        results: dict[str, str] = json.loads(report.read_text()) if report.exists() else {"start": "failed"}
    faults = [f"{name}: {text}" for name, text in results.items() if text.startswith("failed")]
    took = time.monotonic() - start
    print(f"matrix: Spark {release}, Python {python[0]}: {took:.0f} s", *faults, sep="\n  ", flush=True)
    return results


def table(results: dict[tuple[str, str], dict[str, str]]) -> str:
    """Return the results as a table of Markdown: a line for each pair, a column for each check."""
    names = [name for name in dict.fromkeys(name for each in results.values() for name in each) if name != "spark"]
    lines = [datetime.date.today().isoformat(), row(["Spark", "Python", *names]), row(["---"] * (len(names) + 2))]
    for (release, version), each in results.items():
        cells = [each.get(name, "failed").partition(":")[0] for name in names]
        lines.append(row([each.get("spark", release), version, *cells]))
    return "\n".join(lines)


def row(cells: Sequence[str]) -> str:
    """Return a line of a table of Markdown."""
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    sys.exit(main())
