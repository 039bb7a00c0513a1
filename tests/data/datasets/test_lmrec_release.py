from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import recbias
from recbias.core.context import collect_warnings
from recbias.core.dataset import Dataset
from recbias.core.errors import MissingEvidence, MissingFile, UserError
from recbias.data.fetch import find_source
from recbias.data.lmrec import LMRecRelease, LMRecSentences
from support.files.lmrec_files import DEAR, FOLDER, PIZZA, write_outputs, write_release
from support.worlds.small_worlds import make_interactions

RNG = np.random.default_rng(0)


def test_users_are_sentences_and_items_are_businesses(tmp_path: Path) -> None:
    path = write_release(tmp_path)
    source = LMRecRelease()
    data = source.load(tmp_path, RNG)
    own = LMRecRelease(path=path).load(tmp_path, RNG)
    assert own.user_ids.ids.tolist() == data.user_ids.ids.tolist()
    assert source.gives() == {"users", "items"}
    assert data.user_ids.ids.tolist() == [
        *("names-01:Ann", "names-01:Bob", "names-02:Ann", "names-02:Bob")
    ]
    assert len(data.item_ids) == 6
    assert len(data.interactions) == 0
    assert data.items is not None
    assert data.items.ids is data.item_ids


def test_each_sentence_is_one_query_with_its_labels(tmp_path: Path) -> None:
    write_release(tmp_path)
    queries = LMRecSentences().ask(LMRecRelease().load(tmp_path, RNG), RNG)
    assert queries.texts is not None
    assert queries.texts.tolist() == [
        *("Seat Ann now", "Seat Bob now", "Feed Ann's cat", "Feed Bob's cat")
    ]
    assert queries.users.tolist() == [-1] * 4
    assert queries.unit == "prompt"
    assert queries.labels.names == ["kind", "template", "name", "race", "gender"]
    assert queries.labels.frame["race"].tolist() == ["white", "black"] * 2


def test_absent_kinds_are_skipped_and_named(tmp_path: Path) -> None:
    write_release(tmp_path)
    source = LMRecRelease(kinds=("age", "names"), missing="skip")
    assert [path.name for path in source.files(tmp_path)] == ["yelp_qa_names.csv"]
    with collect_warnings() as notes:
        assert len(source.load(tmp_path, RNG).user_ids) == 4
    (note,) = notes
    assert note.startswith("Boston: 1 of 2 kinds skipped: there are no outputs of the kind 'age'")
    with pytest.raises(MissingFile, match="the kind 'occupations'"):
        LMRecRelease(kinds=("occupations",), missing="skip").files(tmp_path)


def test_cities_without_files_are_skipped_and_the_others_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_release(tmp_path)
    (tmp_path / FOLDER / "Austin_output_dataframes_5f" / "archive").mkdir(parents=True)
    cities = [
        {"name": "lmrec-release", "label": city, "city": city, "missing": "skip"}
        for city in ("Austin", "Boston", "Toronto")
    ]
    spec = {
        "name": "release",
        "seed": 1,
        "dataset": cities,
        "queries": "lmrec-release",
        "k": 2,
        "models": ["lmrec_lists"],
        "metrics": [
            {"name": "attribute_share", "attribute": "price"},
            {"name": "mean_attribute", "label": "location", "attribute": "price"},
        ],
    }
    monkeypatch.chdir(tmp_path)
    run = recbias.run(spec, data=tmp_path)
    shares = run.metrics.query("metric.str.startswith('attribute_share')")
    assert shares["dataset"].unique().tolist() == ["Boston"]
    assert shares["value"].notna().all()
    skipped = "2 of 3 datasets skipped, as their files are absent: Austin, Toronto"
    assert skipped in run.manifest["warnings"]
    # the names of Boston have no location: this metric fails there, and the others are measured
    (failure,) = run.manifest["failures"]
    assert "no query carries the label 'location'" in failure["message"]
    with pytest.raises(UserError, match="the kind 'names'"):
        recbias.plan({**spec, "dataset": cities[:1]}, data=tmp_path)


def test_planted_shares_come_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # white names have the dear restaurant in 4 of 5 sentences, black names in 1 of 5
    names = {"Ann": ("white", 4), "Eve": ("white", 4), "Bob": ("black", 1), "Tom": ("black", 1)}
    rows = [
        (name, f"Sentence {number} for {name}", race, [DEAR if number < n_dear else PIZZA])
        for name, (race, n_dear) in names.items()
        for number in range(5)
    ]
    write_outputs(write_release(tmp_path), rows)
    monkeypatch.chdir(tmp_path)
    spec = {
        "name": "planted",
        "dataset": "lmrec-release",
        "queries": "lmrec-release",
        "k": 1,
        "models": ["lmrec_lists"],
        "metrics": [
            {"name": "price_percentage", "label": "race", "attribute": "price"},
            {"name": "attribute_share", "attribute": "price"},
        ],
    }
    values = recbias.run(spec, data=tmp_path).metrics.set_index(["group", "target"])["value"]
    assert values["race=white", "price=$$$$"] == pytest.approx(4 / 5)
    assert values["race=black", "price=$$$$"] == pytest.approx(1 / 5)
    assert values["race=black", "price=$$"] == pytest.approx(4 / 5)
    assert values["", "price=$$$$"] == pytest.approx(1 / 2)


def test_the_queries_need_the_dataset_of_the_release() -> None:
    with pytest.raises(MissingEvidence, match="no input sentences") as caught:
        LMRecSentences().ask(Dataset(make_interactions([(0, 0)])), RNG)
    assert "lmrec-release" in caught.value.remedy


def test_the_release_is_downloaded_at_a_fixed_commit() -> None:
    source = find_source("lmrec-release")
    assert source.base == "https://github.com/TinaBBB/Unintended-Bias-LMRec/archive/"
    assert source.files == ("5dcf7332b974e0186c3e147fb6bcc5df063d184e.zip",)
    assert source.digest == ""  # GitHub publishes no checksum of its archives
    assert FOLDER.parts[1:3] == Path(source.holds[0]).parts[:2]
