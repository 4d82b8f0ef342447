"""System columns: columns that rows have in addition to the table's own, in data files and during reads and writes.

Paimon reserves the names of those in files and the prefix of key columns (`SpecialFields`). Names of columns that are
never written to a file also begin with this prefix, so that no column of a table can have them.
"""

from __future__ import annotations

from lakelsm.types import DataField, parse_type

# Persisted: do not change any name up to the reserved names.
KEY_FIELD_PREFIX = "_KEY_"
KEY_FIELD_ID_START = 1073741823
SEQUENCE_NUMBER = "_SEQUENCE_NUMBER"
VALUE_KIND = "_VALUE_KIND"
SYSTEM_FIELDS = (
    DataField(2147483646, SEQUENCE_NUMBER, parse_type("BIGINT NOT NULL")),
    DataField(2147483645, VALUE_KIND, parse_type("TINYINT NOT NULL")),
)

#: The row kind as text, in the result of changelog reads.
ROW_KIND = "rowkind"
#: Names that are refused for columns of tables.
RESERVED_NAMES = (SEQUENCE_NUMBER, VALUE_KIND, "_LEVEL", ROW_KIND, "_ROW_ID")

#: The snapshot of a change, in changelog reads with positions.
SNAPSHOT_ID = "_SNAPSHOT_ID"

# During a write: the row's bucket, the hash of its key, parts of the expression of a bucket, the row kind of a
# deleted or updated row, and the new values of an update.
BUCKET = "_KEY__BUCKET"
KEY_HASH = "_KEY__HASH"
HASHED_COLUMN = "_KEY__K{}"
HASH_STEP = "_KEY__H{}"
CHANGED_KIND = "_KEY__KIND"
NEW_VALUE = "_KEY__NEW{}"

# Exact values of a column of times that are finer than Spark's.
EXACT_VALUE = "_KEY__EXACT_{}"

# The columns of the bucket key, in facts that are joined by bucket.
BUCKET_KEY = "_KEY__B{}"

# In rows that were read: the name of the file, or its number within the unit, and the row index.
FILE_NAME = "_KEY__FILE_NAME"
FILE_NUMBER = "_KEY__FILE"
POSITION = "_KEY__POSITION"

# In the bitmaps of hidden rows: the file, its range of rows, and the bits; and the index of a row within this range.
HIDDEN_FILE = "_KEY__HIDDEN_FILE"
HIDDEN_SIZE = "_KEY__HIDDEN_SIZE"
HIDDEN_CHUNK = "_KEY__HIDDEN_CHUNK"
HIDDEN_WORDS = "_KEY__HIDDEN_WORDS"
HIDDEN = "_KEY__HIDDEN"
CHUNK = "_KEY__CHUNK"
ROW = "_KEY__ROW"

# During a merge: the key group of a row, and its row index in the merged table.
GROUP = "_KEY__GROUP"
ROW_INDEX = "_KEY__ROW_INDEX"

# In a changelog read: the snapshot of a change. In the output of a task: the error that stopped it.
SNAPSHOT = "_KEY__SNAPSHOT"
ERROR = "_KEY__ERROR"
