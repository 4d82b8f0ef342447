"""Options of a catalog: few keys, checked as a table's are."""

from __future__ import annotations

from zoneinfo import ZoneInfo

import pytest

from lakelsm.errors import InvalidInputError
from lakelsm.options.catalog_options import CATALOG_KEYS, CatalogOptions
from lakelsm.options.table_options import OPTIONS


def test_a_catalog_has_options_of_tables_and_none_is_set_by_itself() -> None:
    assert set(CATALOG_KEYS) <= set(OPTIONS)
    assert CatalogOptions.parse({}) == CatalogOptions(lakelsm_time_zone=None)
    parsed = CatalogOptions.parse({"lakelsm.time-zone": "Asia/Tokyo"})
    assert parsed.lakelsm_time_zone == ZoneInfo("Asia/Tokyo")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lakelsm.time.zone": "UTC"}, "unknown catalog option 'lakelsm.time.zone': did you mean 'lakelsm.time-zone'"),
        ({"bucket": "4"}, "unknown catalog option 'bucket': a catalog takes lakelsm.time-zone"),
        ({"lakelsm.time-zone": "Nowhere/City"}, "option 'lakelsm.time-zone' cannot be 'Nowhere/City'"),
    ],
)
def test_another_key_or_value_is_refused(options: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        CatalogOptions.parse(options)
