"""PySpark's daemon for the campaign: its workers report their steps, so that they can be killed at one of them."""

from __future__ import annotations

import gc

from pyspark.daemon import manager

import tests.worker_daemon  # noqa: F401 - it loads what workers need
from tests.campaign.streams import hooked_source  # noqa: F401 - its processes report their steps
from tests.campaign.streams.steps import TASK, play, watch_files

if __name__ == "__main__":
    play(TASK)
    watch_files()
    gc.collect()
    gc.freeze()
    manager()
