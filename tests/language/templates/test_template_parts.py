from __future__ import annotations

import pytest

from recbias.core.errors import MalformedLine
from recbias.core.stage_context import collect_warnings
from recbias.formats.yaml.marked_text import MarkedValue
from recbias.language.templates.template_parts import Group, kinds_of, word_list
from recbias.language.templates.template_sets import WordList

HERE = MarkedValue((), "f:9")
LISTS = {"name": WordList(("Ann",), {}), "place": WordList(("bank",), {})}


def group(*words: str, **labels: str) -> Group:
    marked = tuple(MarkedValue(word, f"f:{at}") for at, word in enumerate(words, 1))
    return Group(marked, labels)


def sentences(*texts: str) -> MarkedValue:
    listed = tuple(MarkedValue(text, f"f:{at}") for at, text in enumerate(texts, 1))
    return MarkedValue({"k": MarkedValue(listed, "f:1")}, "f:1")


def test_a_word_has_the_labels_of_all_groups_it_stands_in() -> None:
    found = word_list(
        "name",
        [
            group("Ann", "Eve", gender="female"),
            group("Bob", gender="male"),
            group("Bob", "Ann", race="x"),
        ],
        HERE,
    )
    assert found.words == ("Ann", "Eve", "Bob")
    assert found.labels == {"gender": ("female", "female", "male"), "race": ("x", None, "x")}


def test_a_word_that_stands_twice_counts_once_and_is_said() -> None:
    with collect_warnings() as notes:
        found = word_list("location", [group("office", "bank", "office")], HERE)
    assert found.words == ("office", "bank")
    assert notes == ["words of the slot location that stand twice count once: office"]


def test_a_word_with_two_values_of_a_label_is_refused() -> None:
    groups = [group("Jo", gender="female"), group("Ann", "Jo", gender="male")]
    with pytest.raises(MalformedLine, match="f:2: the word 'Jo' is both female and male"):
        word_list("name", groups, HERE)


@pytest.mark.parametrize(
    ("slot", "groups", "said"),
    [
        ("name", [], "f:9: the slot 'name' has no words"),
        ("name", [group("Ann"), group()], "f:9: a list of words of the slot 'name' is empty"),
        ("name", [group(" ")], "f:1: a word must be text"),
        ("template", [group("Ann")], "f:9: no slot can be called 'template'"),
    ],
)
def test_a_list_without_words_is_refused(slot: str, groups: list[Group], said: str) -> None:
    with pytest.raises(MalformedLine) as caught:
        word_list(slot, groups, HERE)
    assert str(caught.value) == said


def test_slots_may_stand_in_either_bracket_and_be_renamed() -> None:
    (kind,) = kinds_of(sentences("For {name}", "At [PLACE] "), LISTS, {"PLACE": "place"})
    assert kind.sentences == ("For [name]", "At [place]")
    assert list(kind.words) == ["name", "place"]


@pytest.mark.parametrize(
    ("texts", "said", "remedy"),
    [
        (("For [nmae]",), "f:1: there are no words for the slot [nmae]", "did you mean name?"),
        (("[name]!", "For you"), "f:2: this template has no slot", "write a slot as [name]"),
        (("[name]", "a {name}", "[name]"), "f:3: this template stands twice", "leave one"),
        ((), "f:1: the kind 'k' has no templates", "mend"),
    ],
)
def test_a_faulty_sentence_is_refused(texts: tuple[str, ...], said: str, remedy: str) -> None:
    with pytest.raises(MalformedLine) as caught:
        kinds_of(sentences(*texts), LISTS, {})
    assert str(caught.value) == said
    assert remedy in caught.value.remedy


def test_no_kinds_are_refused() -> None:
    with pytest.raises(MalformedLine, match="there are no templates"):
        kinds_of(MarkedValue({}, "f:1"), LISTS, {})
