"""Compact a table: ``spark-submit --properties-file spark-defaults.conf jobs/compact.py --help``."""

from __future__ import annotations

import sys

try:
    from lakelsm.cli.compact import COMPACT
    from lakelsm.cli.main import job
except ModuleNotFoundError as error:
    if error.name != "lakelsm":
        raise
    sys.exit(
        f"compact.py: {sys.executable} has no lakelsm. Install it there (pip install lakelsm), or name the Python that "
        "has it in PYSPARK_PYTHON."
    )

if __name__ == "__main__":
    sys.exit(job(COMPACT, "compact.py"))
