from __future__ import annotations

import os
import subprocess
import sys

import pytest

from recbias.core.files import OFFLINE, forbid_network, is_offline


@pytest.fixture(autouse=True)
def _clear_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(OFFLINE, raising=False)
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)


def test_the_network_is_forbidden_inside_the_block_only() -> None:
    assert not is_offline()
    with forbid_network():
        assert is_offline()
        with forbid_network():
            assert is_offline()
        assert is_offline()
    assert not is_offline()
    assert OFFLINE not in os.environ


def test_the_variable_of_the_model_hub_forbids_the_network(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert is_offline()


def test_processes_inherit_the_prohibition() -> None:
    code = "from recbias.core.files import is_offline; print(is_offline())"
    with forbid_network():
        process = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert process.stdout.strip() == b"True"
