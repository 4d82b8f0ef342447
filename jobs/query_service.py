"""Serve lookups of a table on a cluster: ``spark-submit … jobs/query_service.py --help``."""

from __future__ import annotations

import sys

try:
    from lakelsm.cli.main import job
    from lakelsm.cli.query_service import QUERY_SERVICE
except ModuleNotFoundError as error:
    if error.name != "lakelsm":
        raise
    sys.exit(
        f"query_service.py: the package lakelsm is not installed for {sys.executable}. Install it (pip install lakelsm), "
        "or set PYSPARK_PYTHON to a Python that has it."
    )

if __name__ == "__main__":
    sys.exit(job(QUERY_SERVICE, "query_service.py"))
