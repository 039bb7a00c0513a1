from __future__ import annotations

import os
from pathlib import Path

import pytest

from recbias.core.errors import MissingFile
from recbias.core.files import to_local_path


def test_a_leading_tilde_is_the_home_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert to_local_path("~/results") == tmp_path / "results"
    assert to_local_path(Path("~")) == tmp_path


@pytest.mark.parametrize("path", ["a:b", "s3:x", "http://x", "x/a:b"])
def test_a_path_that_looks_like_a_url_becomes_absolute(path: str) -> None:
    assert to_local_path(path) == Path.cwd() / path


def test_a_path_that_is_not_in_utf_8_is_an_error() -> None:
    with pytest.raises(MissingFile, match="not in UTF-8") as caught:
        to_local_path(os.fsdecode(b"caf\xe9"))
    assert "rename it" in caught.value.remedy


@pytest.mark.parametrize("path", ["x" * 300, "folder/" * 600, "a\0b"])
def test_a_path_that_the_system_cannot_have_is_an_error(path: str) -> None:
    with pytest.raises(MissingFile, match=r"the path is too long|is no path"):
        to_local_path(path)
