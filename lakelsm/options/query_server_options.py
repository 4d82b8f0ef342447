"""Options of the servers of a table's query service: what a client may ask of them."""


from __future__ import annotations

from dataclasses import dataclass

from lakelsm.options.option import DURATION, INT, SIZE, option


@dataclass(frozen=True, kw_only=True)
class QueryServerOptions:
    """Query service part of TableOptions. Sizes are bytes, durations milliseconds. Other engines ignore all of them."""

    lakelsm_lookup_service_idle_timeout: int = option(
        "lakelsm.lookup-service.idle-timeout",
        DURATION,
        10_000,
        "How long a server of the table's query service waits for a client to send its keys, or to take rows; then it "
        "closes the client's connection; of lakelsm alone.",
        low=100,
        per_call=False,
    )
    lakelsm_lookup_service_max_calls: int = option(
        "lakelsm.lookup-service.max-calls",
        INT,
        500,
        "Calls that a server of the table's query service answers at a time; it refuses others; of lakelsm alone.",
        low=1,
        high=100_000,
        per_call=False,
    )
    lakelsm_lookup_service_max_request_size: int = option(
        "lakelsm.lookup-service.max-request-size",
        SIZE,
        64 << 20,
        "Bytes of keys that a server of the table's query service takes in one request; of lakelsm alone.",
        low=1 << 10,
        per_call=False,
    )
