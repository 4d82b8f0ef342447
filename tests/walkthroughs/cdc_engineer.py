"""A data engineer applies a change feed, computes totals from its changelog, and follows it as a consumer. No Spark."""

from __future__ import annotations

import tempfile
from decimal import Decimal

from lakelsm import Catalog

catalog = Catalog(tempfile.mkdtemp())
orders = catalog.create_table(
    "shop.orders",
    {"id": "BIGINT", "customer": "STRING", "amount": "DECIMAL(10, 2)"},
    primary_key=["id"],
    options={"bucket": "1", "changelog-producer": "lookup"},
)
totals = catalog.create_table(
    "shop.totals",
    {"customer": "STRING", "amount": "DECIMAL(20, 2)"},
    primary_key=["customer"],
    options={"bucket": "1", "merge-engine": "aggregation", "fields.amount.aggregate-function": "sum"},
)


def apply(batch: int, *changes: tuple[str, int, str, float]) -> None:
    """Apply a batch of changes; a repeated batch changes nothing."""
    rows = [dict(zip(("op", "id", "customer", "amount"), change)) for change in changes]
    orders.write(rows, row_kind="op", commit_user="debezium", batch_id=batch)


def follow() -> None:
    """Update the totals with the changes that the consumer has not read."""
    changes = orders.changelog_reader(consumer_id="totals").read_all()
    if changes.num_rows:
        totals.write(changes.select(["rowkind", "customer", "amount"]), row_kind="rowkind")


apply(1, ("+I", 1, "ada", 10.00), ("+I", 2, "bob", 20.00))
follow()
apply(2, ("-U", 1, "ada", 10.00), ("+U", 1, "ada", 15.00), ("-D", 2, "bob", 20.00))
apply(2, ("-D", 1, "ada", 15.00))  # A repeated batch changes nothing.
follow()

assert orders.to_arrow().to_pylist() == [{"id": 1, "customer": "ada", "amount": Decimal("15.00")}]
found = {row["customer"]: row["amount"] for row in totals.to_arrow().to_pylist()}
assert found["ada"] == Decimal("15.00") and found.get("bob") in (None, 0), found
(consumer,) = orders.consumers.list()
assert consumer.lag_snapshots == 0, consumer
print(orders.inspect.status().as_text())
