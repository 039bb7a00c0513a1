from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from recbias.core.context import collect_facts
from recbias.core.dataset import Attributes, Dataset, Reviews
from recbias.core.errors import MissingEvidence, MissingFile, NothingLeft, UnknownColumn
from recbias.data.books_yelp import Yelp
from recbias.language.masking import MaskNames
from support.models.small_encoder import write_small_encoder
from support.worlds.small_worlds import make_interactions

RNG = np.random.default_rng(0)


def make_dataset(names: list[Any] | None, reviews: list[tuple[int, str]] | None) -> Dataset:
    n = len(names or [None])
    interactions = make_interactions([(0, item) for item in range(n)])
    attributes = None
    if names is not None:
        frame = pd.DataFrame({"name": pd.Series(names)})
        attributes = Attributes(interactions.item_ids, frame)
    if reviews is None:
        return Dataset(interactions, items=attributes)
    items = np.array([item for item, _ in reviews], dtype=np.int32)
    texts = np.array([text for _, text in reviews], dtype=object)
    return Dataset(interactions, None, attributes, Reviews(np.zeros_like(items), items, texts))


def mask(names: list[Any], reviews: list[tuple[int, str]], **settings: Any) -> list[str]:
    masked = MaskNames(**settings).apply(make_dataset(names, reviews), RNG).reviews
    assert masked is not None
    return [str(text) for text in masked.texts]


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("Wendy's Grill", "at Wendy’s GRILL, or wendys: WENDY!", "at [MASK], or [MASK]: [MASK]!"),
        ("Amul", "amulet Amul's Amul-like xAmul", "amulet [MASK]-like xAmul"),
        ("Café Olé", "the CAFE-OLE here", "the [MASK] here"),
        ("Joe & Ann (Mall)", "joe and ann; Joe Ann", "[MASK] and [MASK]; [MASK]"),
        ("Saba", "שלום saba عليكم 🍜", "שלום [MASK] عليكم 🍜"),
        ("שלום", "אכלנו ב שלום!", "אכלנו ב [MASK]!"),
        ("(.*)+", "what (.*)+ is this", "what (.*)+ is this"),
        ("A", "A soup, a tea", "A soup, a tea"),
        ("Owm", "", ""),
        ("Owm", "🍜🍜", "🍜🍜"),
        ("Owm", "soup " * 10_000 + "owm", "soup " * 10_000 + "[MASK]"),
    ],
)
def test_names_are_masked_as_whole_words(name: str, text: str, expected: str) -> None:
    other_reviews = [(1, "a soup and a tea like this what is the at or here like")] * 9
    assert mask([name, "Other"], [(0, text), *other_reviews])[0] == expected


def test_common_words_are_not_masked_and_names_of_them_need_capitals() -> None:
    names = ["Good Bread", "Zing Bread", None]
    reviews = [(0, "good bread at Good Bread"), (1, "zing bread"), (2, "good bread")]
    # bread occurs in the only review of item 2, whose name lacks it; good in those of 1 and 2
    assert mask(names, reviews) == ["good bread at [MASK]", "[MASK]", "good bread"]
    assert mask(names, reviews, common=1.0) == ["[MASK] at [MASK]", "[MASK]", "[MASK]"]


def test_whose_own_masks_only_the_name_of_the_reviewed_item() -> None:
    reviews = [(0, "owm or zara"), (1, "owm or zara")]
    names = ["Owm", "Zara"]
    assert mask(names, reviews, whose="own", common=1.0) == ["[MASK] or zara", "owm or [MASK]"]
    assert mask(names, reviews, common=1.0) == ["[MASK] or [MASK]"] * 2
    # each word occurs in the review of the other item: common unless the share is allowed
    assert mask(names, reviews, common=0.5) == ["owm or zara"] * 2


def test_masked_words_and_reviews_are_counted() -> None:
    reviews = [(0, "Owm owm is good"), (1, "good"), (1, "")]
    dataset = make_dataset(["Owm", None], reviews)
    with collect_facts() as facts:
        masked = MaskNames().apply(dataset, RNG)
    # five words: Owm, owm, is, good, good
    assert masked.counts == {
        "items_without_name": 1,
        "review_words": 5,
        "review_words_masked": 2,
        "reviews_masked": 1,
    }
    assert facts == {"masked_share": 0.4}
    assert masked.interactions is dataset.interactions
    assert dataset.reviews is not None
    assert dataset.reviews.texts[0] == "Owm owm is good"


def test_first_names_of_persons_are_masked() -> None:
    reviews = [(0, "Emily at Owm will serve"), (1, "I told Emily")]
    assert mask(["Owm", "Zara"], reviews, persons="names") == [
        "[MASK] at [MASK] will serve",
        "I told [MASK]",
    ]
    assert mask([None], [(0, "I told Emily")], persons="names") == ["I told [MASK]"]


def test_the_error_of_a_missing_model_names_the_setting(tmp_path: Path) -> None:
    with pytest.raises(MissingFile) as caught:
        mask(["Owm"], [(0, "owm")], persons=str(tmp_path / "none"))
    assert caught.value.where == "persons"


def test_missing_reviews_and_names_are_errors() -> None:
    with pytest.raises(MissingEvidence, match="no reviews"):
        MaskNames().apply(make_dataset(["Owm"], None), RNG)
    with pytest.raises(MissingEvidence, match="no items table"):
        MaskNames().apply(make_dataset(None, [(0, "a")]), RNG)
    with pytest.raises(UnknownColumn, match="no column 'title'") as caught:
        MaskNames(column="title").apply(make_dataset(["Owm"], [(0, "a")]), RNG)
    assert caught.value.where == "column"
    with pytest.raises(UnknownColumn, match="contains numbers"):
        MaskNames().apply(make_dataset([1.0], [(0, "a")]), RNG)
    with pytest.raises(NothingLeft, match="no item has a name"):
        MaskNames().apply(make_dataset([None, "Q"], [(0, "a")]), RNG)


def test_names_of_real_venues_are_masked(real_data: Path) -> None:
    dataset = Yelp(folder="yelp-layout").load(real_data, RNG)
    masked = MaskNames().apply(dataset, RNG)
    assert masked.reviews is not None
    assert dataset.reviews is not None
    assert len(masked.reviews) == len(dataset.reviews)
    for name in ("Flechazo", "Behrouz", "Kritunga", "Sheraton"):
        assert any(name.casefold() in text.casefold() for text in dataset.reviews.texts)
        assert not any(f" {name.casefold()} " in text.casefold() for text in masked.reviews.texts)
    assert 0.005 < masked.counts["review_words_masked"] / masked.counts["review_words"] < 0.02


def test_model_files_are_the_dictionary_or_the_files_of_the_model(tmp_path: Path) -> None:
    assert MaskNames().model_files() == ()
    (dictionary,) = MaskNames(persons="names").model_files()
    assert "emily" in dictionary.read_text(encoding="iso-8859-1").lower()
    folder = write_small_encoder(tmp_path / "persons")
    assert folder / "model.safetensors" in MaskNames(persons=str(folder)).model_files()
