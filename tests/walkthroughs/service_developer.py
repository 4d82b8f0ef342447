"""A service developer looks rows up by key while a table changes. No Spark."""

from __future__ import annotations

import logging
import tempfile

from lakelsm import Catalog
from lakelsm.errors import InvalidInputError

logging.basicConfig(level=logging.INFO)
customers = Catalog(tempfile.mkdtemp()).create_table(
    "crm.customers", {"id": "INT", "name": "STRING", "tier": "STRING"}, primary_key="id"
)
customers.write({"id": [1, 2, 3], "name": ["ada", "bob", "cyd"], "tier": ["gold", "tin", "tin"]})

with customers.lookup(refresh="never") as lookup:
    print(lookup)
    assert lookup.get(2) == {"id": 2, "name": "bob", "tier": "tin"}
    assert lookup.get(9) is None
    assert lookup.get_many([3, 9, 1])["name"].to_pylist() == ["cyd", None, "ada"]
    customers.write([{"id": 2, "name": "bob", "tier": "gold"}])
    assert lookup.get(2)["tier"] == "tin", "it answers from its snapshot until it is refreshed"
    lookup.refresh()
    assert lookup.get(2)["tier"] == "gold"
    try:
        lookup.get("two")
    except InvalidInputError as error:
        print(error)
    else:
        raise AssertionError("a key of another type is refused")
