from __future__ import annotations

from pathlib import Path

import pytest

from recbias.core.errors import MalformedLine, MissingFile, UnknownName
from recbias.language.groups import Mentions, load_group_words, split_sentences

SIZES = {
    "man": 23,
    "woman": 19,
    "white": 24,
    "black": 9,
    "asian": 13,
    "hispanic": 12,
    "arab": 8,
    "muslim": 13,
    "christian": 17,
    "jew": 12,
}


def write(folder: Path, text: str) -> Path:
    path = folder / "words.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def find(text: str, path: Path | None = None) -> list[tuple[str, list[str]]]:
    words = load_group_words(path)
    return [
        (text[start:end], [words.groups[group].name for group in groups])
        for start, end, groups in words.find(text)
    ]


def test_the_packaged_list_has_the_published_number_of_words() -> None:
    words = load_group_words()
    assert words.kinds == ("gender", "race", "religion")
    assert {group.name: len(group.words) for group in words.groups} == SIZES


def test_words_are_found_whole_in_any_case_and_in_the_plural() -> None:
    found = find("HE and the Nephews' friends: the churches. Theme, shepherd, Mary's ladies")
    assert found == [
        ("HE", ["man"]),
        ("Nephews", ["man"]),
        ("churches", ["christian"]),
        ("Mary", ["christian"]),
    ]


def test_letters_whose_lower_case_has_two_letters_are_no_error() -> None:
    assert find("Hİs ſhe") == [("ſhe", ["woman"])]


def test_a_word_list_of_the_user_in_a_script_without_blanks(tmp_path: Path) -> None:
    path = write(tmp_path, "kinds: {age: {老: [老人], 少: [少年, 青年]}}")
    assert find("那位老人和青年。", path) == [("老人", ["老"]), ("青年", ["少"])]


def test_the_longest_words_count_and_a_word_may_be_of_two_kinds(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        "kinds: {land: {north: [new york, york], south: [austin]}, name: {a: [austin], b: [bea]}}",
    )
    assert find("New York, York and Austin", path) == [
        ("New York", ["north"]),
        ("York", ["north"]),
        ("Austin", ["south", "a"]),
    ]


def test_mentions_are_by_sentence_and_without_plurals_by_default(tmp_path: Path) -> None:
    path = write(tmp_path, "kinds: {age: {old: [senior], young: [junior]}}")
    texts = ["None here. A senior met juniors. The young junior!", "", "Old."]
    mentions = Mentions.find(texts, load_group_words(path))
    assert mentions.sentences == ["A senior met juniors.", "The young junior!", "Old."]
    assert mentions.text.tolist() == [0, 0, 2]
    assert mentions.spans.tolist() == [[0, 2, 8], [1, 4, 9], [1, 10, 16], [2, 0, 3]]
    assert mentions.named.tolist() == [[0, 0], [1, 1], [2, 1], [3, 0]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("about: x", "no kinds"),
        ("kinds: {age: {old: [senior]}}", "fewer than two"),
        ("kinds: {age: {old: [senior], young: []}}", "no words"),
        ("kinds: {age: {old: [both], young: [Both]}}", "two groups of age: old and young"),
        ("plurals: french\nkinds: {age: {old: [a], young: [b]}}", "french"),
        ("neutral: [It.]\nkinds: {age: {old: [a], young: [b]}}", "needs \\[MASK\\] once"),
        ("words: {}", "no key 'words'"),
    ],
)
def test_an_invalid_list_is_refused_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(MalformedLine, match=message) as caught:
        load_group_words(write(tmp_path, text))
    assert "words.yaml" in caught.value.where


def test_a_missing_list_and_an_unknown_kind_are_refused(tmp_path: Path) -> None:
    with pytest.raises(MissingFile):
        load_group_words(tmp_path / "none.yaml")
    with pytest.raises(UnknownName, match="no kind 'gendre'"):
        load_group_words().select(("gendre",))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two! Three?", ["One.", "Two!", "Three?"]),
        ("Mr. Fox met Dr. Owl vs. St. John.", ["Mr. Fox met Dr. Owl vs. St. John."]),
        (
            "He paid 3.50 in the U.S. Army, e.g. once.",
            ["He paid 3.50 in the U.S. Army, e.g. once."],
        ),
        ('"Run!" She ran... Then 2 more.', ['"Run!"', "She ran...", "Then 2 more."]),
        ("So did I. Then it ended.", ["So did I.", "Then it ended."]),
        ("A line\nanother\n\n", ["A line", "another"]),
        ("他来了。她走了！再见", ["他来了。", "她走了！", "再见"]),
        ("Он пришёл. Она ушла.", ["Он пришёл.", "Она ушла."]),
        ("", []),
        ("  ", []),
    ],
)
def test_sentences(text: str, expected: list[str]) -> None:
    assert split_sentences(text) == expected
