from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from recbias.core.context import collect_warnings
from recbias.core.dataset import Dataset
from recbias.core.errors import MalformedLine, NothingLeft, UnknownColumn
from recbias.data.sentences import GROUPS, CHBias
from recbias.language.terms import load_terms

RNG = np.random.default_rng(0)
PAIRS = (["the woman sings", "rain", "she reads"], ["the man sings", "rain", "he reads"])


def write_release(folder: Path, category: str = "age") -> Path:
    """Write a release of three pairs per part, of which one is identical; return the folder."""
    target = folder / category
    target.mkdir(parents=True)
    lines = {
        f"{category}_train": ["a sentence", "she reads"],
        f"{category}_train_cada": ["a sentence", "she reads", "another"],
        f"{category}_train_ctda": ["a sentence", "he reads"],
    }
    for group, texts in zip(GROUPS[category], PAIRS, strict=True):
        lines[f"{category}_{group}_valid"] = [f"before {text}" for text in texts]
        lines[f"{category}_{group}_test"] = texts
        rows = "".join(f"{row},{text}\r\n" for row, text in enumerate(texts))
        (target / f"{category}_{group}_test.csv").write_text(f",replaced_sentence\r\n{rows}")
    for name, texts in lines.items():
        (target / f"{name}.txt").write_text("\r\n".join(texts))
    return folder


@pytest.fixture
def data(tmp_path: Path) -> Path:
    write_release(tmp_path / "chbias")
    return tmp_path


def load(data: Path, **settings: Any) -> tuple[Dataset, list[str]]:
    with collect_warnings() as warnings:
        dataset = CHBias(**{"dimension": "age", **settings}).load(data, RNG)
    return dataset, list(warnings)


def test_lines_of_both_files_are_pairs(data: Path) -> None:
    dataset, warnings = load(data)
    assert dataset.sentences is not None
    test = dataset.sentences.take_part("test").frame
    assert test["id"].tolist()[:3] == ["age-test-1-old", "age-test-1-young", "age-test-2-old"]
    assert test["pair_id"].tolist()[:3] == ["age-test-1", "age-test-1", "age-test-2"]
    assert test["text"].tolist() == [text for pair in zip(*PAIRS, strict=True) for text in pair]
    assert test["target_set"].tolist() == ["T1", "T2"] * 3
    train = dataset.sentences.take_part("train").frame
    assert train["group"].tolist() == ["old", "old"]
    assert train["pair_id"].isna().all()
    assert (
        dataset.counts["identical_test_pairs"] == dataset.counts["identical_validation_pairs"] == 1
    )
    assert dataset.counts["test_in_train"] == 1
    assert any("1 of 3 test pairs have the same text" in warning for warning in warnings)
    assert any("1 test sentences are also training sentences" in text for text in warnings)


def test_released_augmentation_has_no_group(data: Path) -> None:
    dataset, _ = load(data, train="CADA")
    assert dataset.sentences is not None
    train = dataset.sentences.take_part("train").frame
    assert train["text"].tolist() == ["a sentence", "she reads", "another"]
    assert train["group"].isna().all()


def test_training_sentences_of_other_parts_are_dropped_on_request(data: Path) -> None:
    dataset, _ = load(data, overlap="drop")
    assert dataset.sentences is not None
    assert dataset.sentences.take_part("train").texts.tolist() == ["a sentence"]
    assert dataset.counts["dropped_from_train"] == 1


@pytest.mark.parametrize(
    ("name", "content", "message", "place"),
    [
        ("age_old_test.txt", b"one\ntwo\n", "has 3 sentences, but age_old_test.txt has 2", ":3"),
        ("age_old_test.txt", b"one\n\nthree\n", "an empty line", ":2"),
        ("age_old_test.txt", "一\n老".encode("gbk"), "is not UTF-8", ":2"),
    ],
)
def test_faulty_lines_are_named(
    data: Path, name: str, content: bytes, message: str, place: str
) -> None:
    (data / "chbias" / "age" / name).write_bytes(content)
    with pytest.raises(MalformedLine, match=message) as caught:
        load(data)
    assert caught.value.where.endswith(place)
    assert caught.value.remedy


def test_an_empty_file_and_another_column_are_refused(data: Path) -> None:
    folder = data / "chbias" / "age"
    (folder / "age_old_test.csv").write_text(",comments\n0,a\n")
    with pytest.raises(UnknownColumn, match="replaced_sentence"):
        load(data, form="csv")
    (folder / "age_train.txt").write_text("\n \n")
    with pytest.raises(NothingLeft, match="has no sentences"):
        load(data)


@pytest.mark.real_data
def test_the_released_files_have_their_known_counts(real_data: Path) -> None:
    require_chbias(real_data)
    dataset, _ = load(real_data, dimension="all")
    assert dataset.counts == {
        "train": 3198,
        "validation": 1600,
        "test": 1600,
        "validation_pairs": 800,
        "identical_validation_pairs": 22,
        "test_pairs": 800,
        "identical_test_pairs": 25,
        "validation_in_train": 12,
        "test_in_train": 11,
    }
    identical = [
        load(real_data, dimension=name)[0].counts["identical_test_pairs"] for name in GROUPS
    ]
    assert identical == [5, 7, 12, 1]
    csv, _ = load(real_data, dimension="all", form="csv")
    assert dataset.sentences is not None
    assert csv.sentences is not None
    assert csv.sentences.frame.equals(dataset.sentences.frame)


@pytest.mark.real_data
@pytest.mark.parametrize(
    ("category", "both_directions", "n_equal"),
    [
        ("gender", False, 126),
        ("gender", True, 143),
        ("orientation", False, 195),
        ("age", False, 191),
        ("appearance", False, 200),
    ],
)
def test_swapped_test_sentences_are_mostly_those_released(
    real_data: Path, category: Any, both_directions: bool, n_equal: int
) -> None:
    require_chbias(real_data)
    dataset, _ = load(real_data, dimension=category)
    assert dataset.sentences is not None
    first, second = (dataset.sentences.take_part("test").texts[side::2] for side in (0, 1))
    pairs = load_terms("chbias")[category]
    swapped = [pairs.swap_targets(text, both_directions=both_directions) for text in first]
    assert sum(text == released for text, released in zip(swapped, second, strict=True)) == n_equal


def require_chbias(data: Path) -> None:
    if not (data / "chbias").is_dir():
        pytest.skip("no CHBias in the folder of real data")
