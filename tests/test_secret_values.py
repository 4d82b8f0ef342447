"""Values that may be secrets, and no public call shows one."""

from __future__ import annotations

import datetime
import logging
import traceback
from collections.abc import Callable, Iterator
from fractions import Fraction
from io import StringIO
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakelsm import Catalog, Table
from lakelsm.arguments import wrong_argument
from lakelsm.cli.main import main
from lakelsm.schema.table_schema import create_schema
from lakelsm.schema_changes import SetOption
from lakelsm.secret_values import REDACTED, is_secret, shown_text, shown_uri

SECRET = "hunter2Zq"
KEYS = (
    "s3.secret-key", "s3.access-key", "s3.session-token", "fs.s3a.secret.key", "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN", "gs.auth.service.account.json", "azure.account.key", "azure.sas.token",
    "azure.account.oauth2.client.secret", "password", "jdbc.Password", "token", "my.credential", "sas", "signature",
    "s3.secret-kye", "parquet.encryption.footer.key",
)  # fmt: skip


class Shouting:
    def __repr__(self) -> str:
        return SECRET

    __str__ = __repr__


#: Values of every kind that may be given for the key of a secret.
VALUES: tuple[object, ...] = (
    SECRET, f"{SECRET}\ud800", f"{SECRET}\0\n", SECRET * 50, SECRET.encode(), bytearray(SECRET.encode()),
    [SECRET], (SECRET,), {SECRET}, frozenset([SECRET]), {"value": SECRET}, {"password": {"deep": [SECRET]}},
    ("token", SECRET), [("sas", SECRET)], Shouting(), pa.scalar(SECRET), Exception(SECRET), Path(SECRET),
    datetime.datetime(2024, 1, 1), None, 10**40, Fraction(1, 3), float("nan"), lambda: SECRET,
)  # fmt: skip


def chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and all its causes and contexts, also those that ``from None`` hides."""
    seen: list[BaseException] = []
    waiting: list[BaseException | None] = [error]
    while waiting:
        each = waiting.pop()
        if each is not None and each not in seen:
            seen.append(each)
            waiting += [each.__cause__, each.__context__]
    return iter(seen)


def check_hidden(call: Callable[..., object], *arguments: Any, **named: Any) -> None:
    """Assert that no result, error or log line of a call shows a secret."""
    log = StringIO()
    logger, handler = logging.getLogger("lakelsm"), logging.StreamHandler(log)
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    try:
        shown = [repr(call(*arguments, **named))]
    except Exception as error:  # noqa: BLE001 (any error)
        shown = [f"{each} {each!r} {each.args!r}" for each in chain(error)]
        shown.append("".join(traceback.format_exception_only(type(error), error)))
    finally:
        logger.removeHandler(handler)
        logger.setLevel(logging.NOTSET)
    shown.append(log.getvalue())
    for text in shown:
        assert SECRET not in text and SECRET.lower() not in text.lower()


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Table:
    return Catalog(str(tmp_path_factory.mktemp("wh"))).create_table("db.t", "id INT", primary_key=["id"])


def test_options_of_a_store_are_never_shown() -> None:
    locations = ("s3://bucket/wh", "gs://bucket/wh", "abfss://c@account.dfs.core.windows.net/wh", "/tmp/wh")
    for key in KEYS:
        for value in VALUES:
            mapping = {key: value}
            for options in (mapping, {**mapping, "s3.region": b"x"}, [(key, value)], (key, value), f"{key}={value!r}"):
                for location in locations:
                    check_hidden(Catalog, location, storage_options=options)
                check_hidden(Table.for_path, "/nowhere/t", storage_options=options)


def test_options_of_tables_catalogs_writes_and_lookups_show_no_secret(table: Table, tmp_path: Path) -> None:
    catalog = Catalog(str(table._opened.paths.root).removesuffix("/db.db/t"))
    rows = pa.table({"id": pa.array([1], pa.int32())})
    for key in KEYS:
        for value in VALUES:
            options: Any = {key: value}
            check_hidden(Catalog, str(tmp_path), options=options)
            check_hidden(catalog.create_table, "db.new", "id INT", primary_key=["id"], options=options)
            check_hidden(catalog.create_table, "db.new", "id INT", primary_key=["id"], options=[options])
            check_hidden(lambda key, value: catalog.alter_table("db.t", SetOption(key, value)), key, value)
            check_hidden(SetOption, key, value)
            check_hidden(table.write, rows, options=options)
            check_hidden(table.lookup, options=options)
            check_hidden(table.lookup_join, "id", options=options)
            check_hidden(create_schema, "id INT", ["id"], options=options)


def test_options_passed_as_another_argument_show_no_secret(table: Table) -> None:
    for key in KEYS[:4]:
        for value in VALUES:
            one = {key: value}
            for given in (one, [one], {"a": one}, [(key, value)], {key.encode(): value}, f"{key}={value}"):
                check_hidden(Catalog, given)
                check_hidden(Catalog, "/tmp/wh", given)
                check_hidden(table.to_arrow, columns=given)
                check_hidden(table.at, timestamp=given)
                if value is not None and SECRET in str(value):
                    assert SECRET not in str(wrong_argument("a", given, "b"))


URIS = (
    f"s3://{SECRET}@bucket/wh", f"s3://AKIA:{SECRET}@bucket/wh", f"s3://AKIA:a/{SECRET}@bucket/wh",
    f"gs://u:{SECRET}@bucket/x",
    f"abfss://c:{SECRET}@account.dfs.core.windows.net/x", f"https://u:{SECRET}@host/x", f"hdfs://u:{SECRET}@host/x",
    f"file://u:{SECRET}@host/x", f"s3://bucket/wh?X-Amz-Signature={SECRET}&a=b", f"s3://bucket/wh?a=b&X-Amz-Security-Token={SECRET}",
    f"https://account.blob.core.windows.net/c?sv=2022&sig={SECRET}", f"abfss://c@account.dfs.core.windows.net/x?sig={SECRET}",
    f"hdfs://host/x?token={SECRET}", f"x://[{SECRET}", f"u:{SECRET}@host/x?sig={SECRET}",
)  # fmt: skip


def test_a_location_with_a_user_or_a_signed_query_is_refused_and_not_shown(capsys: pytest.CaptureFixture[str]) -> None:
    for uri in URIS[:-2]:
        for call in (Catalog, Table.for_path):
            with pytest.raises(Exception):  # noqa: B017 (any error of lakelsm)
                call(uri)
            check_hidden(call, uri)
            check_hidden(call, uri * 60)
        for more in ([], ["--report", "json"]):
            assert main(["status", "--path", uri, *more]) == 1
            assert main(["status", "--warehouse", uri, "--table", "d.t", *more]) == 1
            assert main(["status", "--warehouse", uri, "--database", "d", *more]) == 1
        with pytest.raises(SystemExit):
            main(["status", "--pathh", uri])
        printed = capsys.readouterr()
        assert SECRET not in printed.out + printed.err


def test_a_signed_address_passed_as_a_time_a_tag_or_rows_is_not_shown(table: Table) -> None:
    given = f"https://host/data?X-Amz-Signature={SECRET}"
    for call in (table.changelog_reader, table.rollback, table.tags.create, table.tags.delete, table.branches.create):
        check_hidden(call, given)
    for call in (table.write, table.overwrite, table.to_arrow, table.maintenance.expire_snapshots, table.head):
        check_hidden(call, given)
    check_hidden(table.at, timestamp=given)
    check_hidden(table.at, tag=given)
    check_hidden(table.consumers.record, given, 1)


def test_the_command_shows_no_secret(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for key in KEYS:
        for words in (
            ["--storage-option", f"{key}={SECRET} {SECRET}"],
            ["--storage-option", key, SECRET],
            ["--storage-options", f"{key}={SECRET} {SECRET}"],
            [f"--storage-options={key}={SECRET}"],
            [f"--{key}", SECRET],
            [f"{key}={SECRET}'{SECRET}"],
            ["--catalog-option", f"{key}={SECRET}"],
        ):
            for more in ([], ["--verbose", "--report", "json"]):
                try:
                    status = main(["status", "--warehouse", str(tmp_path), "--table", "db.t", *words, *more])
                except SystemExit as ended:
                    status = ended.code  # type: ignore[assignment]
                printed = capsys.readouterr()
                assert status in (1, 2)
                assert SECRET not in printed.out + printed.err


def test_hostile_texts_take_linear_time() -> None:
    for piece in ("a", "a.", "key", "key.", "?", "&a", "a://", "a@", "s3://k:", "secret ", "secret'", "=", "\0"):
        shown_text(piece * 200_000)
    assert SECRET not in shown_text("a" * 100_000 + f" secret = {SECRET}")


def test_names_show_which_values_may_be_secrets() -> None:
    assert all(map(is_secret, KEYS)) and is_secret("sig") and not is_secret("s3.endpoint") and not is_secret("bucket")
    kept = ("s3://bucket/a?b=c", "/data/a@b/c", "file:///data/a@b/c", "abfss://c@account.dfs.core.windows.net/x", "a = 5")
    assert [shown_text(each) for each in kept] == list(kept)
    assert shown_uri(f"s3://a:{SECRET}@bucket/x?sig={SECRET}&z=1") == f"s3://{REDACTED}@bucket/x?sig={REDACTED}&z=1"


def test_options_that_lakelsm_knows_are_shown() -> None:
    assert repr(SetOption("bucket-key", "id")) == "SetOption(key='bucket-key', value='id')"
    assert repr(SetOption("fields.token.aggregate-function", "sum")).endswith("value='sum')")
