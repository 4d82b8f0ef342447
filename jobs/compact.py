"""Compact tables: ``spark-submit --properties-file spark-defaults.conf jobs/compact.py --help``."""

from __future__ import annotations

import sys

try:
    from lakelsm.cli.compact import COMPACT
    from lakelsm.cli.main import job
except ModuleNotFoundError as error:
    if error.name != "lakelsm":
        raise
    sys.exit(
        f"compact.py: the package lakelsm is not installed for {sys.executable}. Install it (pip install lakelsm), or "
        "set PYSPARK_PYTHON to a Python that has it."
    )

if __name__ == "__main__":
    sys.exit(job(COMPACT, "compact.py"))
