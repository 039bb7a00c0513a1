from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
import transformers
from hypothesis import given
from hypothesis import strategies as st

from recbias.core.context import collect_facts
from recbias.core.dataset import Attributes, Dataset, Ids, Reviews
from recbias.core.errors import MissingEvidence, MissingFile, NothingLeft, UnknownColumn, WrongType
from recbias.language.masking import (
    FirstNames,
    ItemNames,
    MaskNames,
    NameTree,
    PersonModel,
    TextWords,
    find_people,
)
from support.models.small_encoder import WORDS, write_small_encoder
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
    return [str(text) for text in masked.texts]


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("Wendy's Grill", "at Wendy’s GRILL, or wendys: WENDY!", "at [MASK], or [MASK]: [MASK]!"),
        ("Amul", "amulet Amul's Amul-like xAmul", "amulet [MASK]-like xAmul"),
        ("Joe & Ann (Mall)", "joe and ann; Joe Ann", "[MASK] and [MASK]; [MASK]"),
        ("Saba", "שלום saba عليكم 🍜", "שלום [MASK] عليكم 🍜"),
        ("(.*)+", "what (.*)+ is this", "what (.*)+ is this"),
        ("A", "A soup, a tea", "A soup, a tea"),
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


def test_model_files_are_the_dictionary_or_the_files_of_the_model(tmp_path: Path) -> None:
    assert MaskNames().model_files() == ()
    (dictionary,) = MaskNames(persons="names").model_files()
    assert "emily" in dictionary.read_text(encoding="iso-8859-1").lower()
    folder = write_small_encoder(tmp_path / "persons")
    assert folder / "model.safetensors" in MaskNames(persons=str(folder)).model_files()


def divide(*texts: str) -> TextWords:
    return TextWords.from_texts(np.array(texts, dtype=object))


def test_short_words_and_numbers_are_not_distinctive() -> None:
    names = ItemNames.from_names(["Bo 1808 Ono"])
    distinctive = names.find_distinctive(np.zeros(3), np.array([1]), 0.5)
    assert distinctive.tolist() == [False, False, True]


WORD = st.sampled_from(["ab", "cd", "ef"])


PHRASES = st.lists(WORD, min_size=1, max_size=3).map(" ".join)


@given(st.lists(PHRASES, min_size=1, max_size=4), st.lists(WORD, max_size=8))
def test_find_longest_equals_an_exhaustive_search(names: list[str], words: list[str]) -> None:
    item_names = ItemNames.from_names(names)
    distinctive = np.ones(len(item_names.vocabulary), dtype=bool)
    tree = NameTree.build(item_names, distinctive, per_item=False)
    block = divide(" ".join(words))
    phrases = {tuple(name.split()) for name in names}
    phrases |= {(word,) for name in names for word in name.split()}
    expected = [
        max(
            (n for n in (1, 2, 3) if tuple(words[at:][:n]) in phrases and at + n <= len(words)),
            default=0,
        )
        for at in range(len(words))
    ]
    lengths = tree.find_longest(block, item_names.encode(block), np.zeros(1, dtype=int))
    assert lengths.tolist() == expected


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
        ("Tom's Anna came", ["Tom", "Anna"]),  # a possessive has no surname
        ("Anna-Maria came with Tom Berg-Karlson", ["Anna-Maria", "Tom Berg-Karlson"]),
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
        ("Tom walks. Tom Emily Berg.", "Emily Berg", ["Tom"]),
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


@given(st.lists(st.text(max_size=20), max_size=5))
def test_divided_texts_can_be_joined_again(texts: list[str]) -> None:
    block = divide(*texts)
    rows = np.arange(len(texts))
    assert block.replace_pieces(rows, rows[:0], "").tolist() == block.texts
    starts, ends = block.find_spans()
    spelled = [
        block.texts[text][start:end]
        for text, start, end in zip(block.text, starts, ends, strict=True)
    ]
    assert spelled == block.words.tolist()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Our server Emily was kind. Emily's smile!", ["Emily", "Emily's"]),
        ("Emily served us", ["Emily"]),
        ("We met emily and EMILY", []),
        ("Will served us, Will is kind; I will be back, he will too, it will do", []),
        ("Will served us and I told Will so", ["Will", "Will"]),
        ("The soup. The tea. In the end the rice", []),
        ("Bo and Li said", []),
        ("José and Zoë paid", ["José", "Zoë"]),
        ("", []),
    ],
)
def test_first_names_are_recognized_by_their_capital(text: str, expected: list[str]) -> None:
    block, finder = divide(text), FirstNames()
    finder.learn(block)
    assert block.words[finder.find(block)].tolist() == expected


def write_token_classifier(folder: Path, label: str) -> Path:
    """Write a model without effective attention that assigns the label to ``tea``."""
    write_small_encoder(folder)
    config = transformers.BertConfig.from_pretrained(folder)
    config.id2label = {0: "O", 1: label}
    config.label2id = {"O": 0, label: 1}
    model: Any = transformers.BertForTokenClassification(config)
    tea = 5 + WORDS.index("tea")
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
        # no layer adds anything; the last norm passes on the word's own vector, scaled and shifted
        for name, parameter in model.named_parameters():
            if name.endswith("LayerNorm.weight"):
                parameter.fill_(1.0)
        model.bert.embeddings.word_embeddings.weight[:, 0] = 1.0
        model.bert.embeddings.word_embeddings.weight[tea, :2] = torch.tensor([0.0, 1.0])
        model.classifier.weight[1, 1] = 1.0
        model.classifier.weight[0, 0] = 1.0
    model.save_pretrained(folder)
    return folder


def test_tokens_that_a_model_labels_as_persons_are_mapped_to_words(tmp_path: Path) -> None:
    finder = PersonModel(str(write_token_classifier(tmp_path, "B-PER")))
    long = "soup " * 200 + "tea " + "soup " * 200
    block = divide("The tea was good, TEA-bread", "", long, "🍜 שלום", "tea")
    is_person = finder.find(block)
    assert block.words[is_person].tolist() == ["tea", "TEA", "tea", "tea"]
    assert block.text[is_person].tolist() == [0, 0, 2, 4]
    assert finder.find(divide("", "")).tolist() == []


def test_a_model_without_a_label_for_persons_is_an_error(tmp_path: Path) -> None:
    folder = write_token_classifier(tmp_path, "B-LOC")
    with pytest.raises(WrongType, match="has no label PER or PERSON, but O, B-LOC") as caught:
        PersonModel(str(folder))
    assert caught.value.where == "persons"


def test_a_missing_model_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(MissingFile):
        PersonModel(str(tmp_path / "none"))
