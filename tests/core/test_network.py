from __future__ import annotations

import os

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
