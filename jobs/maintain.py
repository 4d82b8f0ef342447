"""Maintain tables: ``spark-submit --properties-file spark-defaults.conf jobs/maintain.py VERB --help``.

``python jobs/maintain.py VERB`` works in this process alone.
"""

from __future__ import annotations

import sys

try:
    from lakelsm.cli.main import upkeep_job
except ModuleNotFoundError as error:
    if error.name != "lakelsm":
        raise
    sys.exit(
        f"maintain.py: the package lakelsm is not installed for {sys.executable}. Install it (pip install lakelsm), or "
        "set PYSPARK_PYTHON to a Python that has it."
    )

if __name__ == "__main__":
    sys.exit(upkeep_job("maintain.py"))
