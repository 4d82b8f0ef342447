"""The program of ``python -m lakelsm VERB …``, and of a ``spark-submit`` with the path of this file."""

import os
import sys

if not __package__:  # Run by path: the directory of the package would hide the standard module `types`.
    _HERE = os.path.dirname(os.path.realpath(__file__))
    sys.path[:] = [path for path in sys.path if os.path.realpath(path) != _HERE]

try:
    from lakelsm.cli.main import console
except ModuleNotFoundError as error:
    if error.name != "lakelsm":
        raise
    sys.exit(
        f"lakelsm: the package lakelsm is not installed for {sys.executable}. Install it (pip install lakelsm), or set "
        "PYSPARK_PYTHON to a Python that has it."
    )

if __name__ == "__main__":
    sys.exit(console())
