"""Servers that break HTTP: a download ends with an error, and what was there stays."""

from __future__ import annotations

import random
import time
from contextlib import suppress
from pathlib import Path

import pytest

from recbias.core.errors import DownloadFailed
from recbias.data.fetch import RetryPolicy, fetch_text, transfer
from support.faults.hostile_servers import make_hostile_response
from support.faults.samples import choose_seeds
from support.files.publisher import serve_bytes

POLICY = RetryPolicy(attempts=2, pause_s=0.0, timeout_s=1.0)
MAX_BYTES = 2**16
SECONDS = 10.0


@pytest.mark.parametrize("seed", choose_seeds(30, 300))
def test_a_hostile_server_ends_a_download_and_changes_nothing(tmp_path: Path, seed: int) -> None:
    response = make_hostile_response(random.Random(seed))
    retained, target = tmp_path / "kept.csv", tmp_path / "a.csv"
    retained.write_bytes(b"kept")
    begin = time.monotonic()
    with serve_bytes(response.send) as base:
        with suppress(DownloadFailed):
            transfer(f"{base}a.csv", target, policy=POLICY, max_bytes=MAX_BYTES)
        with suppress(DownloadFailed):
            assert len(fetch_text(f"{base}a.md5", policy=POLICY)) <= MAX_BYTES
    assert time.monotonic() - begin < SECONDS
    assert retained.read_bytes() == b"kept"
    assert {path.name for path in tmp_path.iterdir()} <= {
        "kept.csv",
        "a.csv",
        "a.csv.part",
        "a.csv.part.json",
    }
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) < 2 * MAX_BYTES
    if target.exists():
        sent = b"".join(response.parts)
        assert target.read_bytes() in sent or b"chunked" in sent or response.is_endless
