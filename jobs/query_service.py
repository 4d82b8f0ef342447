"""Answer lookups of a table on a cluster: ``spark-submit … jobs/query_service.py --help``."""

from __future__ import annotations

import sys

try:
    from lakelsm.cli.main import job
    from lakelsm.cli.query_service import QUERY_SERVICE
except ModuleNotFoundError as error:
    if error.name != "lakelsm":
        raise
    sys.exit(
        f"query_service.py: {sys.executable} has no lakelsm. Install it there (pip install lakelsm), or name the Python "
        "that has it in PYSPARK_PYTHON."
    )

if __name__ == "__main__":
    sys.exit(job(QUERY_SERVICE, "query_service.py"))
