"""Options that name a column follow its new name (Paimon's `SchemaManager#applyRenameColumnsToOptions`)."""

from __future__ import annotations

from collections.abc import Mapping

from lakelsm.options.field_options import FIELDS_PREFIX, split_field_key
from lakelsm.options.file_index_options import FILE_INDEX_PREFIX, INDEX_OPTIONS, columns_key, split_index_key

_NAMES_IN_VALUE = (
    *map(columns_key, INDEX_OPTIONS),
    "bucket-key",
    "sequence.field",
    "rowkind.field",
    "record-level.time-field",
    "partial-update.remove-record-on-sequence-group",
    "changelog-producer.row-deduplicate-ignore-fields",
)
_NAMES_IN_FIELD_VALUE = ("sequence-group",)


def rename_in_options(options: Mapping[str, str], old: str, new: str) -> dict[str, str]:
    """The options with column `old` called `new`, in keys (`fields.<columns>.<x>`) and values."""
    renamed: dict[str, str] = {}
    for key, text in options.items():
        split = split_field_key(key)
        if split is not None:
            columns, name = split
            moved = text if name not in _NAMES_IN_FIELD_VALUE else _rename(text, old, new)
            renamed[f"{FIELDS_PREFIX}{_rename(columns, old, new)}.{name}"] = moved
        elif (of_index := split_index_key(key)) is not None and of_index[1]:
            kind, column, name = of_index
            renamed[f"{FILE_INDEX_PREFIX}{kind}.{_rename(column, old, new)}.{name}"] = text
        elif key in _NAMES_IN_VALUE:
            renamed[key] = _rename(text, old, new)
        else:
            renamed[key] = text
    return renamed


def _rename(names: str, old: str, new: str) -> str:
    return ",".join(new if name.strip() == old else name for name in names.split(","))
