"""Constructors take at most four values by position; others are named."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Iterator

import lakelsm

_MAX_BY_POSITION = 4
#: Made by `map` over the columns of manifests, many thousands together: one column for each field, in their order.
_BY_POSITION = frozenset(
    ["lakelsm.format.manifest.data_file_meta.DataFileMeta", "lakelsm.format.manifest.entry.ManifestEntry"]
)
#: The arguments of a public method, in its order.
_OF_METHODS = frozenset(["lakelsm.table.readable_table.RowsRequest", "lakelsm.table.table_changes.ChangesRequest"])
#: Modules that the oldest supported release of PySpark cannot import.
_OF_NEWER_SPARK = frozenset(["lakelsm.data_source.limited_reader", "lakelsm.data_source.stream_writer"])


def _classes() -> Iterator[type]:
    for module in pkgutil.walk_packages(lakelsm.__path__, "lakelsm."):
        try:
            found = importlib.import_module(module.name)
        except ImportError:
            if module.name not in _OF_NEWER_SPARK:
                raise
            continue
        for each in vars(found).values():
            if inspect.isclass(each) and each.__module__ == module.name:
                yield each


def _by_position(kind: type) -> list[str]:
    parameters = inspect.signature(kind.__init__).parameters.values()
    return [each.name for each in parameters if each.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD][1:]


def test_no_constructor_takes_more_than_four_values_by_position() -> None:
    long = {
        f"{kind.__module__}.{kind.__qualname__}": len(_by_position(kind))
        for kind in _classes()
        if "__init__" in vars(kind) and len(_by_position(kind)) > _MAX_BY_POSITION
    }
    assert set(long) == _BY_POSITION | _OF_METHODS, f"give them keywords (kw_only=True, KW_ONLY or *): {long}"
