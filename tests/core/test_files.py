from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from recbias.core.errors import MissingFile
from recbias.core.files import (
    OFFLINE,
    compute_digest,
    derive_seed,
    forbid_network,
    has_file,
    is_offline,
    open_input,
    to_canonical_json,
    to_local_path,
)


def make_folder(path: Path) -> None:
    path.mkdir()


def make_pipe(path: Path) -> None:
    os.mkfifo(path)


def make_loop(path: Path) -> None:
    path.symlink_to(path)


@pytest.mark.parametrize(
    ("make", "reason"),
    [(make_folder, "folder"), (make_pipe, "pipe"), (make_loop, "symbolic links")],
)
def test_a_path_that_is_no_file_is_an_error_and_does_not_block(
    make: Callable[[Path], None], reason: str, tmp_path: Path
) -> None:
    path = tmp_path / "x.csv"
    make(path)
    for read in (has_file, lambda path: open_input(path).__enter__()):
        with pytest.raises(MissingFile, match=reason) as caught:
            read(path)
        assert caught.value.where == str(path)
        assert caught.value.remedy


def test_a_folder_without_permission_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def deny(path: Path) -> os.stat_result:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr("recbias.core.files.os.stat", deny)
    with pytest.raises(MissingFile, match="Permission denied"):
        has_file(tmp_path / "x")


def test_a_leading_tilde_is_the_home_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert to_local_path("~/results") == tmp_path / "results"
    assert to_local_path(Path("~")) == tmp_path


@pytest.mark.parametrize("path", ["a:b", "s3:x", "http://x", "x/a:b"])
def test_a_path_that_looks_like_a_url_becomes_absolute(path: str) -> None:
    assert to_local_path(path) == Path.cwd() / path


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"b": 1, "a": 2}, '{"a":2,"b":1}'),
        ((1, 2), "[1,2]"),
        (Path("a") / "b", '"a/b"'),
        (frozenset({3, 1, 2}), "[1,2,3]"),
        ({"z", "y"}, '["y","z"]'),
        (np.int64(7), "7"),
        (np.float64(0.5), "0.5"),
        (np.bool_(True), "true"),
        ("é", '"é"'),
        (None, "null"),
        (float("nan"), "NaN"),
    ],
)
def test_equal_values_have_the_same_json_text(value: object, text: str) -> None:
    assert to_canonical_json(value) == text


def test_an_object_that_is_not_json_is_an_error() -> None:
    with pytest.raises(TypeError, match="not JSON: object"):
        compute_digest(object())


def test_derived_seeds_do_not_change() -> None:
    # SHA-256 of "42\0split\0" + "0", first 8 bytes, halved: results of old runs depend on it
    digest = hashlib.sha256(b"42\0split\x000").digest()[:8]
    assert derive_seed(42, "split", 0) == int.from_bytes(digest, "big") >> 1


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
