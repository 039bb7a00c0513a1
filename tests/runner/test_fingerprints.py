from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from recbias.runner import fingerprints
from recbias.runner.fingerprints import Fingerprints
from recbias.runner.store import Store


@pytest.mark.parametrize("large", [1, 10**9])
def test_a_file_is_known_by_its_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, large: int
) -> None:
    monkeypatch.setattr(fingerprints, "LARGE", large)
    path = tmp_path / "ratings.dat"
    path.write_bytes(b"1::2::3::4\n")
    prints = Fingerprints(Store(tmp_path / "store"))
    expected = hashlib.sha256(b"1::2::3::4\n").hexdigest()
    assert prints.of(path) == expected
    assert prints.of(path) == expected
    path.write_bytes(b"1::2::3::5\n")
    os.utime(path, ns=(1, 1))
    assert prints.of(path) == hashlib.sha256(b"1::2::3::5\n").hexdigest()
