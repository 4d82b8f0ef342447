"""Compact a table: ``spark-submit --properties-file spark-defaults.conf jobs/compact.py --help``."""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession

try:
    from lakelsm.cli.compact import compact_main
except ModuleNotFoundError as error:
    if error.name != "lakelsm":
        raise
    sys.exit(
        f"compact.py: {sys.executable} has no lakelsm. Install it there (pip install lakelsm), or name the Python that "
        "has it in PYSPARK_PYTHON."
    )


def main() -> int:
    """Run the job and end its Spark session; the exit status."""
    try:
        return compact_main()
    finally:
        session = SparkSession.getActiveSession()
        if session is not None:
            session.stop()


if __name__ == "__main__":
    sys.exit(main())
