from __future__ import annotations

import os
import subprocess
import sys

import pytest

from recbias.core.network import OFFLINE, forbid_network, is_offline


@pytest.fixture(autouse=True)
def _as_usual(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(OFFLINE, raising=False)
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)


def test_it_is_forbidden_inside_the_block_only() -> None:
    assert not is_offline()
    with forbid_network():
        assert is_offline()
        with forbid_network():
            assert is_offline()
        assert is_offline()
    assert not is_offline()
    assert OFFLINE not in os.environ


def test_the_hubs_own_variable_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert is_offline()


def test_processes_are_told() -> None:
    code = "from recbias.core.network import is_offline; print(is_offline())"
    with forbid_network():
        said = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert said.stdout.strip() == b"True"
