"""The modules that processes of a campaign have loaded at their start: the whole engine."""

from __future__ import annotations

import importlib
import os
import pkgutil
from contextlib import suppress

import lakelsm
import tests.campaign.kills
import tests.campaign.soak  # noqa: F401

for _module in pkgutil.walk_packages(lakelsm.__path__, "lakelsm."):
    if not _module.name.endswith("__main__"):
        with suppress(ImportError):  # Some modules need a newer release of PySpark.
            importlib.import_module(_module.name)

#: Only processes are killed, not the machine, so that files need no sync.
os.fsync = os.fstat  # type: ignore[assignment]
