from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbias.core.errors import MalformedLine, MissingFile, UnknownName
from recbias.language.counterfactual import Swaps, build_swaps, make_counterfactuals
from recbias.language.groups import Mentions, load_group_words, split_sentences
from recbias.language.templates import load_packaged

GENDER, RACE = build_swaps("gender"), build_swaps("race")


def copy_texts(*texts: str, swaps: Swaps = GENDER, seed: int = 0) -> list[str]:
    rng = np.random.default_rng(seed)
    rows, copies = make_counterfactuals(np.array(texts, dtype=object), swaps, rng)
    assert rows.size == copies.size
    return [str(copy) for copy in copies]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("She ate. she ATE, SHE did", "He ate. he ATE, HE did"),
        ("I saw her dog with her, not her.", "I saw his dog with him, not him."),
        ("his tea is his. It's his", "her tea is hers. It's hers"),
        ("with him; hers", "with her; his"),
        ("He'll say he’s here", "She'll say she’s here"),
        ("Ma'am, yes sir", "Sir, yes madam"),
        ("my Fiancée", "my Fiancé"),
        ("the hostess and the host", "the host and the host"),
        ("", None),
    ],
)
def test_words_that_express_a_gender_are_replaced(text: str, expected: str | None) -> None:
    assert copy_texts(text) == ([] if expected is None else [expected])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Her very old dog made her very happy.", "His very old dog made him very happy."),
        ("her warm, kind and diverse staff", "his warm, kind and diverse staff"),
        (
            "Let her order first; I let her order get cold.",
            "Let him order first; I let his order get cold.",
        ),
        (
            "They gave her flowers and told her friends.",
            "They gave him flowers and told his friends.",
        ),
        ("her last week, we saw her last week", "his last week, we saw him last week"),
        ("it cost her one dollar, her dollar", "it cost him one dollar, his dollar"),
        ("He saw her eating her cooking", "She saw him eating his cooking"),
        ("I called her back; it hurt her back", "I called him back; it hurt his back"),
        ("got her another drink, got her drink", "got him another drink, got his drink"),
        ("They refused her service and her card", "They refused him service and his card"),
        ("It took her forever; tell her hello", "It took him forever; tell him hello"),
        (
            "I watched her fold; it cost her ten dollars",
            "I watched him fold; it cost him ten dollars",
        ),
        (
            "I followed her upstairs, heard her complain",
            "I followed him upstairs, heard him complain",
        ),
    ],
)
def test_her_has_the_role_that_its_sentence_gives(text: str, expected: str) -> None:
    assert copy_texts(text) == [expected]


@pytest.mark.parametrize(("part", "n_correct"), [(0, 148), (1, 145)])
def test_pronouns_keep_their_role_in_sentences_labelled_by_hand(part: int, n_correct: int) -> None:
    """Of 300 sentences 97 % are right; of the half on which no rule was written 96 %."""
    pronoun = re.compile(r"\{(\w+)\|(\w+)\}")
    file = Path(__file__).parent / "pronouns.txt"
    lines = [line for line in file.read_text().split("\n\n")[part].splitlines() if line[0] != "#"]
    copies = copy_texts(*[pronoun.sub(r"\1", line) for line in lines])
    pairs = [(pronoun.search(line), copy) for line, copy in zip(lines, copies, strict=True)]
    correct = [
        re.findall(r"[\w']+", copy)[len(re.findall(r"[\w']+", found.string[: found.start()]))]
        == found[2]
        for found, copy in pairs
        if found is not None
    ]
    assert len(correct) == 150
    assert sum(correct) >= n_correct


def test_a_name_is_replaced_by_names_that_differ_in_one_label_only() -> None:
    word_list = load_packaged()["restaurants"].kinds[0].words["name"]
    columns = (word_list.labels["race"], word_list.labels["gender"])
    labels = dict(zip(word_list.words, zip(*columns, strict=True), strict=True))
    opposite = {"white": "black", "black": "white", "female": "male", "male": "female"}
    for side, column in (("race", 0), ("gender", 1)):
        swaps = build_swaps(side)  # type: ignore[arg-type]  # a literal of the loop
        for name, values in labels.items():
            if name in {"Asia", "Kenya"}:
                assert name.casefold() not in swaps.names
                continue
            expected = list(values)
            expected[column] = opposite[values[column] or ""]
            replacements = swaps.names[name.casefold()]
            assert {labels[replacement] for replacement in replacements} == {tuple(expected)}


def test_a_name_has_the_same_replacement_throughout_a_text() -> None:
    for seed in range(5):
        (copy,) = copy_texts("Emily's, Emily & EMILY", seed=seed)
        name = copy.partition("'")[0]
        assert copy == f"{name}'s, {name} & {name.upper()}"
        assert name.casefold() in GENDER.names
    assert len(set(copy_texts(*["Emily"] * 50))) > 5


def test_a_name_in_lower_case_is_not_replaced() -> None:
    assert copy_texts("precious holly", swaps=RACE) == []
    assert copy_texts("he met her", swaps=RACE) == []


WORDS = st.sampled_from(["she", "he", "Mom", "dad", "WIFE", "soup", "herself", "waiter", "."])


@given(st.lists(WORDS, max_size=10))
def test_a_copy_of_a_copy_is_the_text(words: list[str]) -> None:
    text = " ".join(words)
    copies = copy_texts(text)
    assert copies == [] or copy_texts(*copies) == [text]


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
