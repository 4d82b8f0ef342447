"""jobs/query_service.py with ``spark-submit``. tests/lookup/service has the tests without a JVM."""

from __future__ import annotations

import signal
from pathlib import Path

from lakelsm.lookup.service.remote_cache import RemoteCache
from lakelsm.lookup.service.service_access import published_addresses
from tests.cli.fake_table import last_object
from tests.jobs.submitted import submit
from tests.lookup.service.test_remote_cache import simple, spec_of
from tests.lookup.service.test_servers import until
from tests.processes import PATIENCE


def test_sigterm_ends_a_submitted_service_with_its_report_and_leaves_nothing(tmp_path: Path) -> None:
    table = simple(tmp_path / "t")
    left = Path(table.store.paths.lookup_lease("of a killed driver"))
    left.parent.mkdir()
    left.write_text("[]")
    process = submit("query_service.py", "--path", str(table.root), "--servers", "2", "--report", "json")
    try:
        until(lambda: published_addresses(table.store) or process.poll() is not None)
        assert RemoteCache.open(spec_of(table)).find_key((5,)) == [(5, "row 5")]
        process.send_signal(signal.SIGTERM)  # It reaches the JVM alone.
        out, err = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
        process.communicate()
    assert process.returncode == 0, err
    assert last_object(out) == {"table": str(table.root), "status": "stopped", "exit_status": 0}
    assert "crashed" not in err and "ERROR" not in err, err
    assert list(left.parent.iterdir()) == []
