"""What the README shows works as it stands."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> str:
    return "\n".join(re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL))


def test_every_make_target_that_the_readme_names_exists() -> None:
    named = set(re.findall(r"\bmake ([a-z-]+)", blocks("sh")))
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    assert {"demo", "test"} <= named
    assert named <= targets


def test_every_file_that_the_readme_links_to_exists() -> None:
    links = re.findall(r"\]\(([^)#:]+)\)", README)
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_the_example_runs_from_top_to_bottom(spark: SparkSession, tmp_path: Path) -> None:
    rows = [(i, f"2013-01-0{1 + i % 2}", "XX" if i % 3 == 0 else "UA", 500 + i) for i in range(20)]
    schema = "id BIGINT, dt STRING, carrier STRING, dep_time INT"
    df = spark.createDataFrame(rows, schema)
    changes = spark.createDataFrame([("-D", *rows[1]), ("+U", *rows[2])], f"op STRING, {schema}")
    first_day = spark.createDataFrame([row for row in rows if row[1] == "2013-01-01"], schema)
    example = blocks("python").replace("file:///tmp/wh", tmp_path.as_uri())
    gone = pa.table({"id": pa.array([4], pa.int64()), "dt": ["2013-01-01"]})
    namespace = {"rows": df.toArrow(), "df": df, "changes": changes, "first_day": first_day, "gone": gone}
    namespace |= {"keys": gone, "delays": df.select("id", "dt")}
    exec(compile(example, "README.md", "exec"), namespace)
