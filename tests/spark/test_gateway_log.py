"""Credentials are not in the log of what is said to the JVM."""

from __future__ import annotations

import logging

import pytest

from lakelsm.spark.gateway_log import unlogged


def test_what_is_said_meanwhile_is_not_logged_and_what_a_user_has_switched_off_stays_so(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.DEBUG)
    sender, off = logging.getLogger("py4j.clientserver"), logging.getLogger("py4j.java_gateway")
    monkeypatch.setattr(off, "disabled", True)
    with unlogged():
        sender.debug("secret")
    sender.debug("after")
    off.debug("off")
    assert [record.message for record in caplog.records] == ["after"]
