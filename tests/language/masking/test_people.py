from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from language.masking.test_person_names import write_token_classifier
from recbias.core.dataset import Ids
from recbias.language.masking import FirstNames, PersonModel, find_people


def to_ids(*texts: str | None) -> Ids:
    return np.array(texts, dtype=object)


def find(text: str, authors: str | None = None) -> list[str]:
    (cell,) = find_people(to_ids(text), FirstNames(), to_ids(authors))
    return cell.split("|") if cell else []


@pytest.mark.parametrize(
    ("text", "people"),
    [
        ("Anna sees Tom. Tom and Anna sing.", ["Anna", "Tom"]),  # each mention once
        ("Anna Karlson and Anna's dog", ["Anna Karlson", "Anna"]),
        ("Anna, Tom Maria Berg", ["Anna", "Tom Maria Berg"]),
        ("Tom's Anna came", ["Tom", "Anna"]),  # a possessive has no surname
        ("Anna-Maria came with Tom Berg-Karlson", ["Anna-Maria", "Tom Berg-Karlson"]),
        ("Anna - Maria", ["Anna", "Maria"]),
        ("nobody came", []),
        ("", []),
    ],
)
def test_mentions_are_runs_of_words(text: str, people: list[str]) -> None:
    assert find(text) == people


@pytest.mark.parametrize(
    ("author", "left"),
    [
        ("Anna M. Karlson", ["Tom Berg", "Anna"]),
        ("Anna Karlson|Tom Berg", ["Anna"]),
        ("Anna", ["Anna Karlson", "Tom Berg"]),  # a name of one word is its last word
        ("A. Berg", ["Anna Karlson", "Tom Berg", "Anna"]),  # Tom is not in the name
        (None, ["Anna Karlson", "Tom Berg", "Anna"]),
    ],
)
def test_names_of_authors_are_left_out(author: str | None, left: list[str]) -> None:
    assert find("Anna Karlson tells how Tom Berg met Anna.", author) == left


@pytest.mark.parametrize(
    ("text", "author", "left"),
    [
        ("Berg, Emily: Tom walks", "Emily Berg", ["Tom"]),
        ("Berg, Emily: Tom walks", "Berg, Emily", ["Tom"]),
        ("Tom walks. Tom Emily Berg.", "Emily Berg", ["Tom"]),
        ("Emily Berg Tom walks", "Emily Berg", ["Tom"]),
        ("By Anna-Maria Berg, with Tom", "Anna Maria Berg", ["Tom"]),
        ("Berg, Emily. There Emily meets Tom", "Emily Berg", ["Emily", "Tom"]),
        ("Karlson, Emily and Tom", "Emily Berg", ["Emily", "Tom"]),  # of another person
        ("Anna Berg and Tom", "Emily Berg", ["Anna Berg", "Tom"]),
    ],
)
def test_names_of_authors_in_other_orders_and_beside_others_are_left_out(
    text: str, author: str, left: list[str]
) -> None:
    assert find(text, author) == left


def test_each_text_has_its_own_authors_and_the_order_is_kept() -> None:
    texts = to_ids("By Anna Karlson", "", "On Anna Karlson and Tom")
    authors = to_ids("Anna Karlson", None, "Maria Berg")
    assert find_people(texts, FirstNames(), authors).tolist() == [None, None, "Anna Karlson|Tom"]


def test_a_model_finds_people_by_its_labels(tmp_path: Path) -> None:
    finder = PersonModel(str(write_token_classifier(tmp_path, "B-PER")))
    texts = to_ids("the tea tea and tea", "soup")
    assert find_people(texts, finder, to_ids(None, None)).tolist() == ["tea tea|tea", None]
