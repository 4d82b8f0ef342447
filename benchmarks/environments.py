"""The peers' packages: a virtual environment for each, created once, and the Maven coordinates of their jars."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class PeerPackages:
    """The packages of a peer (a module of `benchmarks.peers`). Peers with the same ``environment`` share it; Spark's
    launcher, with which the peer starts its JVM, downloads the jar of ``coordinate``."""

    environment: str
    requirements: tuple[str, ...]
    coordinate: str = ""


# Not every registry has a connector of Paimon 1.x for Spark; that of 0.9 needs Spark 3.5.
PEERS = {
    "paimon_java": PeerPackages("spark35", ("pyspark==3.5.*",), "org.apache.paimon:paimon-bundle:1.4.2"),
    "paimon_spark": PeerPackages("spark35", ("pyspark==3.5.*",), "org.apache.paimon:paimon-spark-3.5:0.9.0"),
    "pypaimon": PeerPackages("pypaimon", ("pypaimon==2.1.*",)),
    "deltalake": PeerPackages("deltalake", ("deltalake==1.*", "pyarrow")),
    "chdb": PeerPackages("chdb", ("chdb==4.*", "pandas", "pyarrow")),
    "rocksdb": PeerPackages("rocksdict", ("rocksdict==0.3.*", "numpy", "pyarrow")),
    "duckdb": PeerPackages("duckdb", ("duckdb==2.*", "pyarrow", "pytz")),
}


def install_peers(folder: Path, names: Sequence[str]) -> tuple[dict[str, str], dict[str, str]]:
    """Create the environments of these peers below ``folder``, unless they exist with the same requirements.

    Returns the Pythons of the working ones, and the last line of the error for the others.
    """
    pythons, failed = {}, {}
    for name in names:
        packages = PEERS[name]
        home = folder / packages.environment
        python, done = home / "bin" / "python", home / "installed"
        wanted = "\n".join(packages.requirements)
        if not done.exists() or done.read_text(encoding="utf-8") != wanted:
            error = _install(home, python, packages.requirements)
            if error:
                failed[name] = error
                continue
            done.write_text(wanted, encoding="utf-8")
        pythons[name] = str(python)
    return pythons, failed


def _install(home: Path, python: Path, requirements: Sequence[str]) -> str:
    """Return the last line of the error, or an empty text."""
    for command in (
        [sys.executable, "-m", "venv", "--clear", str(home)],
        [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *requirements],
    ):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            lines = (done.stderr or done.stdout).strip().splitlines()
            return f"{', '.join(requirements)} cannot be installed: {lines[-1] if lines else done.returncode}"
    return ""
