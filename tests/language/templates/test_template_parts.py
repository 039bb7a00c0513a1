from __future__ import annotations

import pytest

from recbias.core.errors import MalformedLine
from recbias.formats.yaml import MarkedValue
from recbias.language.templates import Group, WordList, merge_groups, parse_kinds

NODE = MarkedValue((), "f:9")
WORD_LISTS = {"name": WordList(("Ann",), {}), "place": WordList(("bank",), {})}


def make_group(*words: str, **labels: str) -> Group:
    marked = tuple(MarkedValue(word, f"f:{line}") for line, word in enumerate(words, 1))
    return Group(marked, labels)


def make_sentences(*texts: str) -> MarkedValue:
    entries = tuple(MarkedValue(text, f"f:{line}") for line, text in enumerate(texts, 1))
    return MarkedValue({"k": MarkedValue(entries, "f:1")}, "f:1")


def test_a_word_has_the_labels_of_all_its_groups() -> None:
    word_list = merge_groups(
        "name",
        [
            make_group("Ann", "Eve", gender="female"),
            make_group("Bob", gender="male"),
            make_group("Bob", "Ann", race="x"),
        ],
        NODE,
    )
    assert word_list.words == ("Ann", "Eve", "Bob")
    assert word_list.labels == {"gender": ("female", "female", "male"), "race": ("x", None, "x")}


@pytest.mark.parametrize(
    ("slot", "groups", "message"),
    [
        ("name", [], "f:9: the slot 'name' has no words"),
        (
            "name",
            [make_group("Ann"), make_group()],
            "f:9: a list of words of the slot 'name' is empty",
        ),
        ("name", [make_group(" ")], "f:1: a word must be text"),
        ("template", [make_group("Ann")], "f:9: no slot can be named 'template'"),
    ],
)
def test_a_list_without_words_is_an_error(slot: str, groups: list[Group], message: str) -> None:
    with pytest.raises(MalformedLine) as caught:
        merge_groups(slot, groups, NODE)
    assert str(caught.value) == message


def test_slots_in_either_bracket_can_be_renamed() -> None:
    (kind,) = parse_kinds(
        make_sentences("For {name}", "At [PLACE] "), WORD_LISTS, {"PLACE": "place"}
    )
    assert kind.sentences == ("For [name]", "At [place]")
    assert list(kind.words) == ["name", "place"]


@pytest.mark.parametrize(
    ("texts", "message", "remedy"),
    [
        (("For [nmae]",), "f:1: there are no words for the slot [nmae]", "did you mean name?"),
        (("[name]!", "For you"), "f:2: this template has no slot", "write a slot as [name]"),
        (("[name]", "a {name}", "[name]"), "f:3: this template occurs twice", "remove one"),
        ((), "f:1: the kind 'k' has no templates", "correct this line"),
    ],
)
def test_an_invalid_sentence_is_an_error(
    texts: tuple[str, ...], message: str, remedy: str
) -> None:
    with pytest.raises(MalformedLine) as caught:
        parse_kinds(make_sentences(*texts), WORD_LISTS, {})
    assert str(caught.value) == message
    assert remedy in caught.value.remedy


def test_a_file_without_kinds_is_an_error() -> None:
    with pytest.raises(MalformedLine, match="there are no templates"):
        parse_kinds(MarkedValue({}, "f:1"), WORD_LISTS, {})
