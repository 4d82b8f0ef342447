"""``python -m lakelsm VERB …``, and the program of a ``spark-submit`` that is given the path of this file."""

import os
import sys

if not __package__:  # By its path: the package's own directory would hide the standard library's module `types`.
    _HERE = os.path.dirname(os.path.realpath(__file__))
    sys.path[:] = [path for path in sys.path if os.path.realpath(path) != _HERE]

try:
    from lakelsm.cli.main import console
except ModuleNotFoundError as error:
    if error.name != "lakelsm":
        raise
    sys.exit(
        f"lakelsm: {sys.executable} has no lakelsm. Install it there (pip install lakelsm), or name the Python that has "
        "it in PYSPARK_PYTHON."
    )

if __name__ == "__main__":
    sys.exit(console())
