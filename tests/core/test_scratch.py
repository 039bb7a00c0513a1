from __future__ import annotations

from pathlib import Path

import pytest

from recbias.core.stage_context import create_once, stage_context


def written(path: Path) -> None:
    path.write_text("once")


def refused(path: Path) -> None:
    raise AssertionError


def test_a_file_is_made_once_and_kept(tmp_path: Path) -> None:
    with stage_context(scratch_folder=tmp_path / "new"):
        with create_once("a", written) as path:
            assert path.read_text() == "once"
        with create_once("a", refused) as again:
            assert again == path
    assert [each.name for each in (tmp_path / "new").iterdir()] == ["a"]


def test_half_a_file_is_none(tmp_path: Path) -> None:
    def torn(path: Path) -> None:
        path.write_text("on")
        raise OSError("full")

    with (
        stage_context(scratch_folder=tmp_path),
        pytest.raises(OSError, match="full"),
        create_once("a", torn),
    ):
        pass
    assert not list(tmp_path.iterdir())


def test_where_nobody_keeps_it_goes_with_the_block() -> None:
    with create_once("a", written) as path:
        assert path.read_text() == "once"
    assert not path.parent.exists()
