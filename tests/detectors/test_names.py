from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pytest

from recbias.core.context import collect_warnings, stage_context
from recbias.core.dataset import Attributes, BoolArray, FloatArray
from recbias.core.errors import Contradiction, NothingLeft, UnknownColumn, UserError
from recbias.data.demo import Demo
from recbias.detectors.names import Names, first_name, gender_of
from recbias.language.masking import TextWords
from support.worlds.evidence_worlds import make_vocabulary

NAN = math.nan
# in the lists of gender-guesser: Tom, Tim and Lawrence are male, Annie, Mary and Jodie female,
# Li is of both, Zopon is unknown, Alexis mostly male, Kim mostly female


def build_items(column: list[Any]) -> Attributes:
    return Attributes(make_vocabulary("i", len(column)), pd.DataFrame({"cast": column}))


def label(column: list[Any], **settings: Any) -> Mapping[str, FloatArray]:
    with collect_warnings():
        return Names(from_="cast", **settings).label(build_items(column), np.random.default_rng(0))


def labels(column: list[Any], **settings: Any) -> list[float]:
    return label(column, **settings)["gender"].tolist()  # type: ignore[no-any-return]


def scores(column: list[Any], **settings: Any) -> list[float]:
    return label(column, **settings)["gender_score"].tolist()  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("cast", "label", "score"),
    [
        ("Tom Hanks|Tim Allen|Annie Potts", 1, 2 / 3),
        ("Tom Hanks|Annie Potts|Mary Smith", 0, 1 / 3),
        ("Tom Hanks|Annie Potts", 0, 1 / 2),  # as many: not more men
        ("Tom Hanks", 1, 1),
        ("Tom Hanks|Annie Potts|Zopon|Li Gong|Tim", 1, 2 / 3),  # the unknown are dropped
        ("Alexis Smith|Tom Hanks|Kim Jones", 1, 2 / 3),  # mostly counts
        ("Hanks, Tom|Potts, Annie|Allen, Tim", 1, 2 / 3),
    ],
)
def test_labels_and_scores_by_hand(cast: str, label: float, score: float) -> None:
    assert labels([cast]) == [label]
    assert scores([cast]) == pytest.approx([score])


def test_a_first_name_can_count_once() -> None:
    # Jodie, Lawrence A., Lawrence T.: 2 men against 1 woman, or 1 against 1
    cast = "Jodie Foster|Lawrence A. Bonney|Lawrence T. Wrentz"
    assert labels([cast]) == [1]
    assert labels([cast], unique=True) == [0]
    assert scores([cast], unique=True) == [0.5]
    # only within an item
    assert labels(["Tom Hanks", "Tom Cruise"], unique=True) == [1, 1]


@pytest.mark.parametrize(
    ("missing", "expected", "outcome"),
    [("zero", 0.0, "labelled 0"), ("undefined", NAN, "given no label")],
)
def test_items_in_which_nobody_is_identified_are_counted(
    missing: Any, expected: float, outcome: str
) -> None:
    detector = Names(from_="cast", missing=missing)
    items = build_items(["Tom Hanks", None, "Zopon", "", "Tom|Mary"])
    with collect_warnings() as messages:
        columns = detector.label(items, np.random.default_rng(0))
    counts = "of 5 items, 1 have no 'cast' and 2 name nobody of known gender"
    assert messages == [f"names: {counts}: {outcome}"]
    unidentified = [expected] * 3
    assert columns["gender"] == pytest.approx([1, *unidentified, 0], nan_ok=True)
    assert columns["gender_score"] == pytest.approx([1, NAN, NAN, NAN, 0.5], nan_ok=True)


@pytest.mark.parametrize(
    ("person", "exact", "near"),
    [
        ("Tom Hanks", "Tom", "Tom"),
        ("F. Murray Abraham", "F.", "Murray"),
        ("O.J. Simpson", "O.J.", ""),
        ("Mr. Joseph Young", "Mr.", "Joseph"),
        ("Cher", "Cher", "Cher"),
        ("Abraham, F. Murray", "F.", "Murray"),
        ("Pedro Armendáriz, Jr.", "Pedro", "Pedro"),
        ("Smith,", "Smith", "Smith"),
        ("A", "A", ""),
        ("", "", ""),
    ],
)
def test_first_names_of_people(person: str, exact: str, near: str) -> None:
    assert first_name(person) == exact
    assert first_name(person, near=True) == near


@pytest.mark.parametrize(
    ("name", "exact", "near"),
    [
        ("Tom", 1, 1),
        ("Annie", -1, -1),
        ("TOM", 0, 1),
        ("Jean-Claude", 1, 1),  # is in the lists
        ("Carrie-Anne", 0, -1),
        ("Kôji", 0, 1),
        ("François", 1, 1),
        ("Li", 0, 0),
        ("", 0, 0),
    ],
)
def test_genders_of_first_names(name: str, exact: int, near: int) -> None:
    assert gender_of(name) == exact
    assert gender_of(name, near=True) == near


def test_near_spellings_identify_more_people() -> None:
    cast = ["F. Murray Abraham|Kôji Yakusho|Mary Smith", "tom hanks"]
    assert labels(cast, missing="undefined") == pytest.approx([0, NAN], nan_ok=True)
    assert labels(cast, spelling="near") == [1, 1]


@pytest.mark.parametrize(
    ("column", "error", "message"),
    [
        ([1990.0, 1991.0], UnknownColumn, "column 'cast' of the items holds numbers"),
        (["Zopon", None], NothingLeft, "in no item is a first name of 'cast' known"),
        ([None, None], NothingLeft, "in no item is a first name of 'cast' known"),
    ],
)
def test_unusable_columns_are_errors(
    column: list[Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message) as caught:
        labels(column)
    assert caught.value.where == "from"  # type: ignore[attr-defined]


@pytest.mark.parametrize("seed", range(3))
def test_the_stereotype_of_the_demo_dataset_is_recovered(seed: int) -> None:
    world = Demo().load(Path(), np.random.default_rng(seed))
    assert world.items is not None
    genders = Names(from_="cast").label(world.items, np.random.default_rng(0))["gender"]
    assert genders.tolist() == world.items.numbers("stereotype").tolist()


def label_texts(texts: list[Any], **settings: Any) -> Mapping[str, FloatArray]:
    authors = ["Mary Smith", "Mary Smith", "Tom Hanks"]
    frame = pd.DataFrame({"description": texts, "authors": authors, "pages": [1.0, 2.0, 3.0]})
    items = Attributes(make_vocabulary("i", 3), frame)
    detector = Names(from_="description", persons="names", **settings)
    with collect_warnings():
        return detector.label(items, np.random.default_rng(0))


def test_people_in_texts_are_counted_without_the_authors() -> None:
    texts = [
        "Mary Smith tells of Tom, Annie and Tim.",
        "Mary Smith writes. Tom Gray, Annie and Tom's mother Annie Gray",
        None,
    ]
    with_authors = label_texts(texts, unique=True)
    assert with_authors["gender"].tolist() == [0, 0, 0]
    without = label_texts(texts, unique=True, exclude="authors")
    assert without["gender"].tolist() == [1, 0, 0]
    assert without["gender_score"].tolist()[:2] == [2 / 3, 1 / 2]
    # Tom Gray and Tom are two mentions, as are Annie and Annie Gray
    assert label_texts(texts, exclude="authors")["gender_score"].tolist()[1] == 1 / 2


def test_settings_of_texts_are_checked() -> None:
    with pytest.raises(Contradiction, match="people in texts"):
        Names(from_="cast", exclude="authors")
    with pytest.raises(UnknownColumn, match="holds numbers") as caught:
        label_texts(["Tom", "Annie", "Tim"], exclude="pages")
    assert caught.value.where == "exclude"
    detector = Names(from_="cast", persons="no/such/model")
    with pytest.raises(UserError) as missing:
        detector.label(build_items(["Tom"]), np.random.default_rng(0))
    assert missing.value.where == "persons"


class CapitalWords:
    """Finds words with a capital, in place of a model; ``asked`` has the texts it received."""

    asked: ClassVar[list[str]] = []

    def __init__(self, name: str, device: str) -> None:
        self.source = (name, device)

    def find(self, block: TextWords) -> BoolArray:
        self.asked.extend(block.texts)
        return block.match_words(lambda word: word[0].isupper())


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setattr("recbias.detectors.names.PersonModel", CapitalWords)
    monkeypatch.setattr(CapitalWords, "asked", [])
    return CapitalWords.asked


def test_the_people_of_a_model_are_counted_in_each_text_by_itself(asked: list[str]) -> None:
    # 1: Tom and Annie, without the author Mary Smith; 2: the same text by another author: 1 of 3;
    # 3: no text; 4: Tom and Tim
    texts = [*["by Mary Smith on Tom or Annie"] * 2, None, "of Tom or Tim"]
    authors = ["Mary Smith", None, "Tom Hanks", None]
    items = Attributes(
        make_vocabulary("i", 4), pd.DataFrame({"description": texts, "authors": authors})
    )
    settings: dict[str, Any] = {"from_": "description", "persons": "m", "exclude": "authors"}
    with stage_context(facts={}) as context, collect_warnings() as warnings:
        columns = Names(**settings).label(items, np.random.default_rng(0))
    assert columns["gender"].tolist() == [0, 0, 0, 1]
    np.testing.assert_allclose(columns["gender_score"], [1 / 2, 1 / 3, NAN, 1])
    assert context.facts == {"people_per_item": (2 + 3 + 2) / 4}
    assert warnings == [
        "names: of 4 items, 1 have no 'description' and 0 name nobody of known gender: labelled 0"
    ]
    assert asked == [texts[0], texts[0], texts[3]]
    with pytest.raises(NothingLeft, match="'cast' of the items is empty"):
        Names(from_="cast", persons="m").label(build_items([None]), np.random.default_rng(0))
