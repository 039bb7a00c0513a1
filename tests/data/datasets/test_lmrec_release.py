from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from recbias.core.dataset.dataset import Dataset
from recbias.core.errors import MissingEvidence, MissingFile
from recbias.data.datasets.lmrec_release import LMRecRelease, LMRecSentences
from recbias.data.fetch.download import source_of
from support.lmrec_files import FOLDER, NAMES, release, write_outputs
from support.worlds import rows

CHANCE = np.random.default_rng(0)


def test_a_city_has_sentences_and_businesses(tmp_path: Path) -> None:
    release(tmp_path)
    source = LMRecRelease()
    found = source.load(tmp_path, CHANCE)
    assert source.gives() == {"users", "items"}
    assert found.user_ids.ids.tolist() == [
        *("names-01:Ann", "names-01:Bob", "names-02:Ann", "names-02:Bob"),
    ]
    assert len(found.item_ids) == 6
    assert len(found.interactions) == 0
    assert found.items is not None
    assert found.items.ids is found.item_ids


def test_each_sentence_is_asked_once_with_its_labels(tmp_path: Path) -> None:
    release(tmp_path)
    queries = LMRecSentences().ask(LMRecRelease().load(tmp_path, CHANCE), CHANCE)
    assert queries.texts is not None
    assert queries.texts.tolist() == [
        *("Seat Ann now", "Seat Bob now", "Feed Ann's cat", "Feed Bob's cat"),
    ]
    assert queries.users.tolist() == [-1] * 4
    assert queries.unit == "prompt"
    assert queries.labels.names == ["kind", "template", "name", "race", "gender"]
    assert queries.labels.frame["race"].tolist() == ["white", "black"] * 2


def test_several_kinds_are_read_together(tmp_path: Path) -> None:
    first = release(tmp_path)
    write_outputs(
        first.with_name("yelp_qa_occupations.csv"), [("bank", "At the bank", "all", NAMES[0][3])]
    )
    source = LMRecRelease(kinds=("names", "occupations", "names"))
    assert [each.name for each in source.files(tmp_path)] == [
        *("yelp_qa_names.csv", "yelp_qa_occupations.csv"),
    ]
    queries = LMRecSentences().ask(source.load(tmp_path, CHANCE), CHANCE)
    assert queries.labels.frame["location"].tolist() == [None] * 4 + ["bank"]
    assert queries.labels.frame["kind"].tolist() == ["names"] * 4 + ["occupations"]


def test_a_file_may_lie_elsewhere(tmp_path: Path) -> None:
    path = write_outputs(tmp_path / "mine" / "yelp_qa_names.csv", NAMES)
    found = LMRecRelease(path=path).load(Path("nowhere"), CHANCE)
    assert len(found.user_ids) == 4


def test_what_is_absent_names_the_command_that_fetches_it(tmp_path: Path) -> None:
    with pytest.raises(MissingFile) as caught:
        LMRecRelease().files(tmp_path)
    assert "recbias data fetch lmrec-release" in caught.value.remedy


@pytest.mark.parametrize(
    ("source", "said", "remedy"),
    [
        (LMRecRelease(kinds=("name",)), "no outputs of the kind 'name'", "did you mean names?"),
        (LMRecRelease(kinds=("age",)), "no outputs of the kind 'age'", "save yelp_qa_age.xlsx"),
        (LMRecRelease(city="Austin"), "no such outputs of Austin", "Boston_output_dataframes_5f"),
        (
            LMRecRelease(outputs="first"),
            "no such outputs of Boston",
            "Boston_output_dataframes_5f",
        ),
    ],
)
def test_outputs_that_are_not_in_the_release(
    tmp_path: Path, source: LMRecRelease, said: str, remedy: str
) -> None:
    release(tmp_path).with_name("yelp_qa_age.xlsx").touch()
    with pytest.raises(MissingFile, match=said) as caught:
        source.files(tmp_path)
    assert remedy in caught.value.remedy


def test_another_dataset_has_no_sentences() -> None:
    with pytest.raises(MissingEvidence, match="no input sentences") as caught:
        LMRecSentences().ask(Dataset(rows([(0, 0)])), CHANCE)
    assert "lmrec-release" in caught.value.remedy


def test_the_release_is_fetched_from_one_commit() -> None:
    source = source_of("lmrec-release")
    assert source.base == "https://github.com/TinaBBB/Unintended-Bias-LMRec/archive/"
    assert source.files == ("5dcf7332b974e0186c3e147fb6bcc5df063d184e.zip",)
    assert source.digest == ""  # GitHub publishes no checksum of its archives
    assert FOLDER.parts[1:3] == Path(source.holds[0]).parts[:2]
