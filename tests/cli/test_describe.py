"""``lakelsm describe``. ``test_create`` tests its output for a new table."""

from __future__ import annotations

from lakelsm import Catalog
from tests.cli.called import Called


def test_secrets_in_options_are_not_described(called: Called) -> None:
    table = Catalog(str(called.warehouse)).create_table("db.t", "id INT", primary_key="id")
    path = called.warehouse / "db.db/t/schema/schema-0"
    path.write_text(path.read_text().replace('"options" : {', '"options" : {"my.secret-key": "hidden"'))
    assert table.schema.options["my.secret-key"] == "hidden"
    for output in (called.text("describe"), str(called.json("describe"))):
        assert "my.secret-key" in output and "hidden" not in output
