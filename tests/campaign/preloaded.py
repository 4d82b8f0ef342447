"""What processes of a campaign have loaded when they begin: all of the engine."""

from __future__ import annotations

import importlib
import os
import pkgutil

import lakelsm
import tests.campaign.kills
import tests.campaign.soak  # noqa: F401

for _module in pkgutil.walk_packages(lakelsm.__path__, "lakelsm."):
    if not _module.name.endswith("__main__"):
        importlib.import_module(_module.name)

#: Processes are killed, and no machine is turned off: thousands of files need not wait for the disk.
os.fsync = os.fstat  # type: ignore[assignment]
