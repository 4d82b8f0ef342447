"""System columns: those that rows have beside the table's own, in data files and on their way to and from them.

Paimon reserves the names of those in files, and the prefix of key columns (`SpecialFields`). Columns that never reach a
file begin with that prefix too, so that no table has one of the name.
"""

from __future__ import annotations

from lakelsm.types import DataField, parse_type

# Persisted: do not change, down to the reserved names.
KEY_FIELD_PREFIX = "_KEY_"
KEY_FIELD_ID_START = 1073741823
SEQUENCE_NUMBER = "_SEQUENCE_NUMBER"
VALUE_KIND = "_VALUE_KIND"
SYSTEM_FIELDS = (
    DataField(2147483646, SEQUENCE_NUMBER, parse_type("BIGINT NOT NULL")),
    DataField(2147483645, VALUE_KIND, parse_type("TINYINT NOT NULL")),
)

#: The kind of a change as a text, in what reads of changes give.
ROW_KIND = "rowkind"
#: Names that no column of a table may have.
RESERVED_NAMES = (SEQUENCE_NUMBER, VALUE_KIND, "_LEVEL", ROW_KIND, "_ROW_ID")

#: Of reads of changes that ask for positions: the snapshot that made a change.
SNAPSHOT_ID = "_SNAPSHOT_ID"

# On the way to files: the row's bucket, the hash of its key, parts of the expression of a bucket, the kind of a
# row that is deleted or updated, and what an update sets.
BUCKET = "_KEY__BUCKET"
KEY_HASH = "_KEY__HASH"
HASHED_COLUMN = "_KEY__K{}"
HASH_STEP = "_KEY__H{}"
CHANGED_KIND = "_KEY__KIND"
NEW_VALUE = "_KEY__NEW{}"

# Beside a column of times finer than Spark's: the same values as the engine has them.
EXACT_VALUE = "_KEY__EXACT_{}"

# Of facts that are joined by bucket: the columns of the bucket key.
BUCKET_KEY = "_KEY__B{}"

# Of rows read: the name of their file, or its number within the unit, and the row index in it.
FILE_NAME = "_KEY__FILE_NAME"
FILE_NUMBER = "_KEY__FILE"
POSITION = "_KEY__POSITION"

# Of a bitmap of a file's hidden rows: the file, its range of rows, and the bits; and a row's index within this range.
HIDDEN_FILE = "_KEY__HIDDEN_FILE"
HIDDEN_SIZE = "_KEY__HIDDEN_SIZE"
HIDDEN_CHUNK = "_KEY__HIDDEN_CHUNK"
HIDDEN_WORDS = "_KEY__HIDDEN_WORDS"
HIDDEN = "_KEY__HIDDEN"
CHUNK = "_KEY__CHUNK"
ROW = "_KEY__ROW"

# Within a merge: the row's key group, and its row index in the merged table.
GROUP = "_KEY__GROUP"
PLACE = "_KEY__PLACE"

# Within a read of changes: the snapshot that made a change. Beside what any task yields: the error that ended it.
SNAPSHOT = "_KEY__SNAPSHOT"
ERROR = "_KEY__ERROR"
