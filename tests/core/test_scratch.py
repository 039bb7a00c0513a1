from __future__ import annotations

from pathlib import Path

import pytest

from recbias.core.scratch import made_once, scratch_in


def written(path: Path) -> None:
    path.write_text("once")


def refused(path: Path) -> None:
    raise AssertionError


def test_a_file_is_made_once_and_kept(tmp_path: Path) -> None:
    with scratch_in(tmp_path / "new"):
        with made_once("a", written) as path:
            assert path.read_text() == "once"
        with made_once("a", refused) as again:
            assert again == path
    assert [each.name for each in (tmp_path / "new").iterdir()] == ["a"]


def test_half_a_file_is_none(tmp_path: Path) -> None:
    def torn(path: Path) -> None:
        path.write_text("on")
        raise OSError("full")

    with scratch_in(tmp_path), pytest.raises(OSError, match="full"), made_once("a", torn):
        pass
    assert not list(tmp_path.iterdir())


def test_where_nobody_keeps_it_goes_with_the_block() -> None:
    with made_once("a", written) as path:
        assert path.read_text() == "once"
    assert not path.parent.exists()
