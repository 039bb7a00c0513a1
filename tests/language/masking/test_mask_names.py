from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from recbias.core.dataset.attributes import Attributes
from recbias.core.dataset.dataset import Dataset, Reviews
from recbias.core.errors import MissingEvidence, MissingFile, NothingLeft, UnknownColumn
from recbias.core.stage_context import collect_facts
from recbias.data.datasets.yelp import Yelp
from recbias.language.masking.mask_names import MaskNames
from support.small_encoder import write_small_encoder
from support.worlds import make_interactions

CHANCE = np.random.default_rng(0)


def world(names: list[Any] | None, reviews: list[tuple[int, str]] | None) -> Dataset:
    n = len(names or [None])
    inter = make_interactions([(0, item) for item in range(n)])
    items = None
    if names is not None:
        items = Attributes(inter.item_ids, pd.DataFrame({"name": pd.Series(names)}))
    if reviews is None:
        return Dataset(inter, items=items)
    of = np.array([item for item, _ in reviews], dtype=np.int32)
    texts = np.array([text for _, text in reviews], dtype=object)
    return Dataset(inter, None, items, Reviews(np.zeros_like(of), of, texts))


def masked(names: list[Any], reviews: list[tuple[int, str]], **settings: Any) -> list[str]:
    made = MaskNames(**settings).apply(world(names, reviews), CHANCE).reviews
    assert made is not None
    return [str(each) for each in made.texts]


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
def test_names_go(name: str, text: str, expected: str) -> None:
    others = [(1, "a soup and a tea like this what is the at or here like")] * 9
    assert masked([name, "Other"], [(0, text), *others])[0] == expected


def test_common_words_stay_and_names_of_them_need_capitals() -> None:
    names = ["Good Bread", "Zing Bread", None]
    reviews = [(0, "good bread at Good Bread"), (1, "zing bread"), (2, "good bread")]
    # bread stands in the one review of item 2, which is not named so; good in those of 1 and 2
    assert masked(names, reviews) == ["good bread at [MASK]", "[MASK]", "good bread"]
    assert masked(names, reviews, common=1.0) == ["[MASK] at [MASK]", "[MASK]", "[MASK]"]


def test_own_names_only() -> None:
    reviews = [(0, "owm or zara"), (1, "owm or zara")]
    names = ["Owm", "Zara"]
    assert masked(names, reviews, whose="own", common=1.0) == ["[MASK] or zara", "owm or [MASK]"]
    assert masked(names, reviews, common=1.0) == ["[MASK] or [MASK]"] * 2
    # each stands in the review of the other: common unless the share is allowed
    assert masked(names, reviews, common=0.5) == ["owm or zara"] * 2


def test_what_was_masked_is_counted() -> None:
    reviews = [(0, "Owm owm is good"), (1, "good"), (1, "")]
    given = world(["Owm", None], reviews)
    with collect_facts() as facts:
        made = MaskNames().apply(given, CHANCE)
    # five words: Owm, owm, is, good, good
    assert made.counts == {
        "items_without_name": 1,
        "review_words": 5,
        "review_words_masked": 2,
        "reviews_masked": 1,
    }
    assert facts == {"masked_share": 0.4}
    assert made.interactions is given.interactions
    assert given.reviews is not None
    assert given.reviews.texts[0] == "Owm owm is good"


def test_persons_go_by_first_name() -> None:
    reviews = [(0, "Emily at Owm will serve"), (1, "I told Emily")]
    assert masked(["Owm", "Zara"], reviews, persons="names") == [
        "[MASK] at [MASK] will serve",
        "I told [MASK]",
    ]
    assert masked([None], [(0, "I told Emily")], persons="names") == ["I told [MASK]"]


def test_a_model_that_is_not_there_is_blamed_on_persons(tmp_path: Path) -> None:
    with pytest.raises(MissingFile) as caught:
        masked(["Owm"], [(0, "owm")], persons=str(tmp_path / "none"))
    assert caught.value.where == "persons"


def test_reviews_and_names_must_be_there() -> None:
    with pytest.raises(MissingEvidence, match="no reviews"):
        MaskNames().apply(world(["Owm"], None), CHANCE)
    with pytest.raises(MissingEvidence, match="no items table"):
        MaskNames().apply(world(None, [(0, "a")]), CHANCE)
    with pytest.raises(UnknownColumn, match="no column 'title'") as caught:
        MaskNames(column="title").apply(world(["Owm"], [(0, "a")]), CHANCE)
    assert caught.value.where == "column"
    with pytest.raises(UnknownColumn, match="holds numbers"):
        MaskNames().apply(world([1.0], [(0, "a")]), CHANCE)
    with pytest.raises(NothingLeft, match="no item has a name"):
        MaskNames().apply(world([None, "Q"], [(0, "a")]), CHANCE)


def test_no_review_is_no_share() -> None:
    with collect_facts() as facts:
        made = MaskNames().apply(world(["Owm"], []), CHANCE)
    assert facts == {"masked_share": None}
    assert made.counts["review_words"] == 0


def test_names_of_real_venues_go(real_data: Path) -> None:
    given = Yelp(folder="yelp-layout").load(real_data, CHANCE)
    made = MaskNames().apply(given, CHANCE)
    assert made.reviews is not None
    assert given.reviews is not None
    assert len(made.reviews) == len(given.reviews)
    for name in ("Flechazo", "Behrouz", "Kritunga", "Sheraton"):
        assert any(name.casefold() in text.casefold() for text in given.reviews.texts)
        assert not any(f" {name.casefold()} " in text.casefold() for text in made.reviews.texts)
    assert 0.005 < made.counts["review_words_masked"] / made.counts["review_words"] < 0.02


def test_what_persons_are_found_by_is_part_of_the_address(tmp_path: Path) -> None:
    assert MaskNames().model_files() == ()
    (words,) = MaskNames(persons="names").model_files()
    assert "emily" in words.read_text(encoding="iso-8859-1").lower()
    folder = write_small_encoder(tmp_path / "persons")
    assert folder / "model.safetensors" in MaskNames(persons=str(folder)).model_files()
