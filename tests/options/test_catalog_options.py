"""Options of a catalog are checked like those of a table."""

from __future__ import annotations

from zoneinfo import ZoneInfo

import pytest

from lakelsm.errors import InvalidInputError
from lakelsm.options.catalog_options import CATALOG_KEYS, CatalogOptions
from lakelsm.options.table_options import OPTIONS


def test_the_options_of_a_catalog_are_table_options_and_unset_by_default() -> None:
    assert set(CATALOG_KEYS) <= set(OPTIONS)
    assert CatalogOptions.parse({}) == CatalogOptions(lakelsm_time_zone=None)
    parsed = CatalogOptions.parse({"lakelsm.time-zone": "Asia/Tokyo"})
    assert parsed.lakelsm_time_zone == ZoneInfo("Asia/Tokyo")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lakelsm.time.zone": "UTC"}, "'lakelsm.time.zone' is not an option of catalogs. Use 'lakelsm.time-zone'"),
        ({"bucket": "4"}, "option 'bucket' is not an option of catalogs. A catalog accepts lakelsm.time-zone"),
        ({"lakelsm.time-zone": "Nowhere/City"}, "option 'lakelsm.time-zone': 'Nowhere/City' is not a time zone"),
    ],
)
def test_an_unknown_key_and_an_invalid_value_are_refused(options: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        CatalogOptions.parse(options)
