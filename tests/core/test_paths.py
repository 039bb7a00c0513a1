from __future__ import annotations

from pathlib import Path

import pytest

from recbias.core.paths import local_path


def test_a_tilde_in_front_is_the_home_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert local_path("~/results") == tmp_path / "results"
    assert local_path(Path("~")) == tmp_path


@pytest.mark.parametrize("path", ["results", "a/~", "~nobody-is-called-so/results", "/a:b"])
def test_other_paths_stay(path: str) -> None:
    assert local_path(path) == Path(path)


@pytest.mark.parametrize("path", ["a:b", "s3:x", "http://x", "x/a:b"])
def test_what_looks_like_an_address_is_made_absolute(path: str) -> None:
    assert local_path(path) == Path.cwd() / path
