"""What processes of a campaign have loaded when they begin."""

from __future__ import annotations

import obstore  # noqa: F401

import tests.campaign.kills
import tests.campaign.soak  # noqa: F401
