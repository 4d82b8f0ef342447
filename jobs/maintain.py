"""Keep tables in order: ``spark-submit --properties-file spark-defaults.conf jobs/maintain.py VERB --help``, or
``python jobs/maintain.py VERB`` in this process alone.
"""

from __future__ import annotations

import sys

try:
    from lakelsm.cli.main import upkeep_job
except ModuleNotFoundError as error:
    if error.name != "lakelsm":
        raise
    sys.exit(
        f"maintain.py: {sys.executable} has no lakelsm. Install it there (pip install lakelsm), or name the Python that "
        "has it in PYSPARK_PYTHON."
    )

if __name__ == "__main__":
    sys.exit(upkeep_job("maintain.py"))
