"""Tests are in the rooms of the code that they test: ``tests/<room>/test_<module>.py`` for each module with logic."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from configparser import ConfigParser
from functools import cache
from graphlib import TopologicalSorter
from itertools import chain
from pathlib import Path

import pytest

_TESTS = Path(__file__).parent
_PACKAGE = _TESTS.parent / "lakelsm"

#: Test files for behaviour of several modules: they are named after this behaviour, not after a module.
_SPANNING = frozenset(
    {
        "commit/commits_on_object_stores",
        "commit/commit_faults",
        "commit/copied_properties",
        "commit/stream_users",
        "compact/compaction_changelog",
        "compact/killed_and_racing_compactions",
        "compact/lost_compactions",
        "compact/table_compact",
        "compact/task_memory",
        "compact/vector_histories",
        "data_source/streams_on_spark",
        "format/data_file/durable_files",
        "format/data_file/full_disk",
        "local/every_type",
        "local/writes_in_this_process",
        "lookup/lookups_of_tables",
        "lookup/store/damaged_stores",
        "lookup/store/stores_against_a_dict",
        "lookup/store/stores_on_a_full_disk",
        "lsm/conformance_planning",
        "maintain/check/damaged_tables",
        "maintain/missing_snapshots",
        "maintain/check/random_damage",
        "maintain/check/sound_tables",
        "maintain/orphans/leftovers_of_kills",
        "maintain/orphans/random_histories",
        "options/option_readers",
        "data_source/watermarks_of_streams",
        "expressions/conditions_beside_spark",
        "predicate/expressions_against_spark",
        "predicate/predicate_against_spark",
        "read/changelog_states",
        "read/engine_files",
        "read/engine_histories",
        "read/every_type",
        "read/indexed_reads",
        "read/masked_reads",
        "read/merge_on_read",
        "read/names",
        "read/pruned_read",
        "read/pushed_down",
        "read/session_settings",
        "read/vector_histories",
        "snapshots/checksums",
        "spark/all_types",
        "sql/expressions_beside_spark",
        "sql/each_statement", "sql/hostile_statements", "sql/paimon_documentation",
        "sql/queries_beside_spark",
        "write/interleaved_rows",
        "write/level0_engines",
        "storage/requests",
        "storage/running_servers",
        "storage/whole_tables",
        "table/merge_options",
        "table/merges_beside_rows",
    }
)


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


@pytest.fixture(scope="module", autouse=True)
def _free_trees() -> Iterator[None]:
    yield
    _tree.cache_clear()


def _has_logic(path: Path) -> bool:
    """Return whether a module has logic. Modules with only enums, options, error types or protocols need no tests."""
    functions = (node for node in ast.walk(_tree(path)) if isinstance(node, _FUNCTIONS))
    return any(not _declares(statement) for function in functions for statement in function.body)


_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def _declares(statement: ast.stmt) -> bool:
    """Return whether a statement is a docstring or an ellipsis, the whole body of a protocol's method."""
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _modules() -> dict[str, Path]:
    """Return each module of the package by its path in the package, without ``.py``."""
    paths = (path for path in _PACKAGE.rglob("*.py") if path.name != "__init__.py")
    return {path.relative_to(_PACKAGE).with_suffix("").as_posix(): path for path in paths}


def _tested() -> set[str]:
    """Return the module name of each test file, in the same form, even if the module does not exist."""
    files = (path.relative_to(_TESTS) for path in _TESTS.rglob("test_*.py"))
    return {path.with_name(path.stem.removeprefix("test_")).as_posix() for path in files}


def _in_a_room(name: str) -> bool:
    room, _, rest = name.partition("/")
    return rest != "" and (_PACKAGE / room).is_dir()


def test_each_module_with_logic_has_its_tests_in_the_same_room() -> None:
    with_logic = {name for name, path in _modules().items() if _has_logic(path)}
    missing = with_logic - _tested()
    assert not missing, f"no tests/<room>/test_<module>.py for {sorted(missing)}"


def test_a_file_of_tests_in_a_room_is_named_after_a_module_or_says_that_it_spans_several() -> None:
    folders = {path.relative_to(_PACKAGE).as_posix() for path in _PACKAGE.rglob("*") if path.is_dir()}
    spanning = {name for name in _tested() if _in_a_room(name)} - set(_modules()) - folders
    assert spanning == _SPANNING, "tests of a module that moved, or a name that _SPANNING lacks or need not have"


def test_no_two_classes_have_the_same_name() -> None:
    trees = (_tree(path) for path in _modules().values())
    times = Counter(node.name for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    assert {name for name, count in times.items() if count > 1} == set()


def test_files_have_at_most_400_lines_and_functions_at_most_60() -> None:
    long = {name: lines for name, path in _modules().items() if (lines := len(path.read_text().splitlines())) > 400}
    for name, path in _modules().items():
        functions = [node for node in ast.walk(_tree(path)) if isinstance(node, _FUNCTIONS)]
        spans = {f"{name}: {each.name}": (each.end_lineno or 0) - each.lineno + 1 for each in functions}
        long.update({function: lines for function, lines in spans.items() if lines > 60})
    assert long == {}


def test_a_frozen_dataclass_declares_no_lock_and_no_collection_that_changes() -> None:
    changing = re.compile(r"(?:dict|list|set|Counter|OrderedDict|defaultdict|deque|R?Lock|Event|Condition|Queue)\b")
    trees = {name: _tree(path) for name, path in _modules().items()}
    classes = [(name, node) for name, tree in trees.items() for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    frozen = [(name, each) for name, each in classes if "frozen=True" in " ".join(map(ast.unparse, each.decorator_list))]
    fields = [(f"{name}: {each.name}", field) for name, each in frozen for field in each.body]
    assert [
        (where, ast.unparse(field))
        for where, field in fields
        if isinstance(field, ast.AnnAssign) and changing.match(ast.unparse(field.annotation))
    ] == []


def test_the_list_of_rooms_is_complete_and_in_the_order_of_the_import_contract() -> None:
    contracts = ConfigParser()
    contracts.read(_PACKAGE.parent / "setup.cfg")
    lines = contracts["importlinter:contract:layers"]["layers"].split("\n")
    line_numbers = {name: number for number, line in enumerate(lines) for name in re.findall(r"\w+", line)}
    page = (_PACKAGE.parent / "ARCHITECTURE.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`.+?) \|", page[page.index("| room |") : page.index("## Two engines")], re.MULTILINE)
    listed = [name for row in rows for name in re.findall(r"`(\w+)(?:/|\.py)`", row)]
    assert Counter(listed) == Counter(line_numbers.keys())
    assert listed == sorted(listed, key=line_numbers.__getitem__)


def _imported(path: Path) -> set[str]:
    """Return what a module imports, within functions and for type checkers included, as paths in the package."""
    nodes = list(ast.walk(_tree(path)))
    plain = (alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names)
    froms = ((node.module or "", node.names) for node in nodes if isinstance(node, ast.ImportFrom))
    parts = (name for module, names in froms for name in (module, *(f"{module}.{alias.name}" for alias in names)))
    return {name.removeprefix("lakelsm.").replace(".", "/") for name in chain(plain, parts)}


def test_no_module_imports_itself_over_others() -> None:
    packages = {path.parent.relative_to(_PACKAGE).as_posix(): path for path in _PACKAGE.rglob("*/__init__.py")}
    modules = _modules() | packages
    graph = {name: _imported(path) & modules.keys() - {name} for name, path in modules.items()}
    TopologicalSorter(graph).prepare()  # Raises CycleError, which names the modules.
