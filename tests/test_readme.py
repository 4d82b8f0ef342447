"""The snippets of the README and the tutorial run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession, datasource

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str, text: str = README) -> str:
    return "\n".join(re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL))


def test_every_make_target_that_the_readme_names_exists() -> None:
    named = set(re.findall(r"\bmake ([a-z-]+)", blocks("sh")))
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    assert {"demo", "test"} <= named
    assert named <= targets


#: The pages whose snippets run here, and what they have before their first line. tests/test_lookup_page.py and
#: tests/benchmarks/test_modes_page.py run two others; those of docs/object-stores.md need a server.
CATALOG = 'from lakelsm import Catalog\ncatalog = Catalog("file:///tmp/wh")\n'
ORDERS = CATALOG + 'orders = table = catalog.create_table("shop.orders", "id INT, amount INT", primary_key="id")\n'
PAGES = {
    "README.md": "",
    "docs/tutorial.md": "",
    "docs/api.md": ORDERS,
    "docs/check.md": ORDERS,
    "docs/keys.md": CATALOG,
    "docs/sql.md": CATALOG,
    "docs/streaming.md": "",
}


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("page", PAGES)
def test_the_snippets_of_a_page_run_from_top_to_bottom(page: str, spark: SparkSession, tmp_path: Path) -> None:
    if page == "docs/streaming.md" and not hasattr(datasource, "DataSourceStreamArrowWriter"):
        pytest.skip("PySpark 4.0 has no stream writer for Arrow")
    snippets = PAGES[page] + blocks("python", (ROOT / page).read_text(encoding="utf-8"))
    snippets = snippets.replace("file:///tmp/wh", tmp_path.as_uri()).replace("/tmp/wh", str(tmp_path))
    exec(compile(snippets, page, "exec"), {"spark": spark})


def test_every_page_is_on_the_page_map() -> None:
    pages = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")} - {"index.md"}
    linked = set(re.findall(r"\]\(([^)]+\.md)\)", (ROOT / "docs" / "index.md").read_text(encoding="utf-8")))
    assert pages - linked == set()
