from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

import pytest

import recbias
from recbias.core.errors import ChangedFile
from recbias.runner import store as fingerprints
from recbias.runner.store import Fingerprints, Store, WatchedFiles
from support.specs import make_small_spec


@pytest.mark.parametrize("large", [1, 10**9])
def test_a_digest_depends_on_the_bytes_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, large: int
) -> None:
    monkeypatch.setattr(fingerprints, "LARGE", large)
    path = tmp_path / "ratings.dat"
    path.write_bytes(b"1::2::3::4\n")
    digests = Fingerprints(Store(tmp_path / "store"))
    expected = hashlib.sha256(b"1::2::3::4\n").hexdigest()
    assert digests.of(path) == expected
    assert Fingerprints(digests.store).of(path) == expected
    path.write_bytes(b"1::2::3::5\n")
    os.utime(path, ns=(1, 1))
    assert Fingerprints(digests.store).of(path) == hashlib.sha256(b"1::2::3::5\n").hexdigest()


@pytest.mark.parametrize("large", [1, 10**9])
@pytest.mark.parametrize("content", ["second", None])
def test_a_changed_or_removed_file_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, large: int, content: str | None
) -> None:
    monkeypatch.setattr(fingerprints, "LARGE", large)
    path, store = tmp_path / "lists.csv", Store(tmp_path / "store")
    path.write_text("first")
    planned = Fingerprints(store).of_files([path])
    watched = WatchedFiles(planned, store)
    watched.require_unchanged()
    path.unlink()
    if content is not None:
        path.write_text(content)
    with pytest.raises(ChangedFile, match=r"lists\.csv changed while the run was reading it"):
        watched.require_unchanged()


def test_the_digest_of_a_large_file_is_not_cached_for_another_one_of_its_size_and_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fingerprints, "LARGE", 1)
    monkeypatch.setattr(fingerprints, "RECENT_SECONDS", 0.0)
    path, store = tmp_path / "lists.csv", Store(tmp_path / "store")
    path.write_text("first")
    time = path.stat().st_mtime_ns
    Fingerprints(store).of(path)
    assert [*(store.folder / "files").iterdir()]
    with path.open("r+") as file:
        file.write("other")
    os.utime(path, ns=(time, time))
    assert Fingerprints(store).of(path) == hashlib.sha256(b"other").hexdigest()


REWRITING = '''
from dataclasses import dataclass
from pathlib import Path

from recbias.models.knn import ItemKNN


@dataclass(frozen=True, kw_only=True)
class Rewriting(ItemKNN):
    """ItemKNN; other input files replace the first ones while it is trained."""

    def fit(self, data, rng):
        for path in Path(__file__).parent.glob("*.new"):
            path.replace(path.with_suffix(""))
        return ItemKNN.fit(self, data, rng)
'''

LISTS = {
    "lists.csv": "user_id,item_id,rank\n1,c,1\n2,a,1\n3,b,1\n",
    "lists.csv.new": "user_id,item_id,rank\n1,d,1\n2,d,1\n3,c,1\n",
}

SPLIT = {
    "train.csv": "user_id,item_id\n1,a\n1,b\n2,b\n2,c\n3,a\n3,d\n",
    "test.csv": "user_id,item_id\n1,c\n2,a\n3,b\n",
}


def lists_spec(folder: Path) -> dict[str, Any]:
    """Return a spec whose second model's lists are exchanged while the first is trained."""
    for name, content in {**LISTS, **SPLIT}.items():
        (folder / name).write_text(content)
    (folder / "own.py").write_text(REWRITING)
    return make_small_spec(
        dataset={"name": "tables"},
        split={"name": "given", "train": f"{folder}/train.csv", "test": f"{folder}/test.csv"},
        models=[f"{folder}/own.py:Rewriting", {"name": "lists", "path": f"{folder}/lists.csv"}],
        metrics=["nDCG"],
        tests=[],
        k=1,
    )


def read_value(run: recbias.Run, model: str) -> float:
    metrics = run.metrics
    return float(metrics["value"][metrics["model"] == model].iloc[0])


@pytest.mark.parametrize("workers", [1, 2])
def test_a_file_that_changes_during_a_run_leaves_nothing_wrong_in_the_store(
    tmp_path: Path, workers: int
) -> None:
    spec = lists_spec(tmp_path)
    run = recbias.run(spec, out=tmp_path / "out", workers=workers)
    if len(run.failures):  # with two workers the lists may be read before they change
        (failure,) = run.failures.to_dict("records")
        assert failure["message"].endswith("lists.csv changed while the run was reading it")
        assert "run again" in failure["help"]
    assert workers == 2 or len(run.failures)
    (tmp_path / "lists.csv").write_text(LISTS["lists.csv"])
    again = recbias.run(spec, out=tmp_path / "out")
    assert again.failures.empty
    assert read_value(again, "lists") == 1.0
