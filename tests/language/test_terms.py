from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbias.core.errors import MalformedLine, NothingLeft, UnknownName
from recbias.language.terms import (
    TermPairs,
    compile_terms,
    load_term_lists,
    load_terms,
    select_category,
    swap_terms,
)

OWN = """\
about: Terms of my own.
source: this test
whole_words: true
categories:
  age:
    groups: [old, young]
    targets:
      - [grandmother, granddaughter]
      - [No, Yes]
    attributes:
      - [slow, fast]
      - [tired, null]
"""


@pytest.mark.parametrize(
    ("category", "groups", "keywords", "counterparts"),
    [
        ("gender", ("female", "male"), 261, 17),
        ("orientation", ("lgbt", "straight"), 75, 7),
        ("age", ("old", "young"), 56, 6),
        ("appearance", ("fat", "slim"), 126, 10),
    ],
)
def test_packaged_terms_have_the_published_numbers(
    category: str, groups: tuple[str, str], keywords: int, counterparts: int
) -> None:
    # the numbers of search keywords and of attribute pairs of appendix A of the paper
    pairs = load_terms("CHBias")[category]
    assert (pairs.groups, pairs.whole_words) == (groups, False)
    assert len(pairs.target_terms) * len(pairs.attribute_terms) == keywords
    assert len(pairs.attribute_pairs) == counterparts


@pytest.mark.parametrize("name", load_term_lists())
def test_packaged_terms_of_the_first_group_are_all_replaced(name: str) -> None:
    for pairs in load_terms(name).values():
        for first, second in pairs.targets:
            assert pairs.swap_targets(first) == second
        assert not set(pairs.target_terms) & {second for _, second in pairs.targets}


def test_own_terms_are_read_as_written(tmp_path: Path) -> None:
    path = tmp_path / "own.yaml"
    path.write_text(OWN)
    pairs = select_category(load_terms(path), "AGE")
    assert pairs.targets == (("grandmother", "granddaughter"), ("No", "Yes"))
    assert pairs.attributes == (("slow", "fast"), ("tired", None))
    assert pairs.swap_targets("Grandmother said no.") == "Granddaughter said Yes."


@pytest.mark.parametrize(
    ("text", "replacement", "message", "line"),
    [
        ("categories:", "lists:", "has no key 'lists'", 4),
        ("[No, Yes]", "[No, null]", "each target term needs a counterpart", 7),
        ("[No, Yes]", "[Grandmother, x]", "the target term 'Grandmother' has two pairs", 9),
        ("[No, Yes]", "[no, No]", "the target term 'no' is paired with itself", 9),
        ("[slow, fast]", "[[], fast]", "a attribute term must be text", 11),
        ("    groups: [old, young]\n", "", "the category age has no groups", 5),
    ],
)
def test_faults_name_their_line(
    tmp_path: Path, text: str, replacement: str, message: str, line: int
) -> None:
    path = tmp_path / "own.yaml"
    path.write_text(OWN.replace(text, replacement))
    with pytest.raises(MalformedLine, match=message.replace("[", r"\[")) as caught:
        load_terms(path)
    assert caught.value.where == f"{path}:{line}"


def test_a_file_without_categories_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "own.yaml"
    path.write_text("about: nothing\n")
    with pytest.raises(MalformedLine, match="has no categories"):
        load_terms(path)


def test_unknown_names_have_a_remedy(tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match="neither a packaged list of terms nor a file") as caught:
        load_terms("chbais")
    assert "chbias" in caught.value.remedy
    with pytest.raises(UnknownName, match="no category 'gendre'") as caught:
        select_category(load_terms("chbias"), "gendre")
    assert "gender" in caught.value.remedy


FAMILY = TermPairs(
    "family",
    ("female", "male"),
    (("grandmother", "grandfather"), ("mother", "father"), ("aunt", "uncle"), ("she", "he")),
    (("small", "tall"), ("tall", "small"), ("quiet", None)),
    whole_words=True,
)


def test_the_longest_term_is_replaced_at_each_place() -> None:
    text = "grandmother and mother"
    assert swap_terms(text, FAMILY.targets) == "grandfather and father"
    shorter_first = (("老", "年轻"), ("老人", "年轻人"), ("大妈", "小姑娘"))
    assert swap_terms("老人和大妈", shorter_first) == "年轻人和小姑娘"


def test_replacements_are_not_replaced_again() -> None:
    pairs = (("a", "b"), ("b", "c"), ("c", "a"))
    assert swap_terms("a b c", pairs) == "b c a"
    assert FAMILY.swap_attributes("a small, tall and quiet house") == (
        "a tall, small and quiet house"
    )


def test_a_term_that_is_first_and_second_is_replaced_as_first() -> None:
    pairs = (("thin", "fat"), ("fat", "slim"))
    assert swap_terms("thin fat slim", pairs, both_directions=True) == "fat slim fat"


@pytest.mark.parametrize(
    ("text", "swapped"),
    [
        ("Mother", "Father"),
        ("motherhood and grandmother", "motherhood and grandfather"),
        ("mother's", "father's"),
        ("", ""),
    ],
)
def test_whole_words_keep_their_case(text: str, swapped: str) -> None:
    assert FAMILY.swap_targets(text) == swapped


def test_no_pairs_change_nothing() -> None:
    assert swap_terms("as it is", ()) == "as it is"
    assert compile_terms(()).search("anything") is None
    assert FAMILY.attribute_pairs == (("small", "tall"), ("tall", "small"))
    assert FAMILY.attribute_terms == ("small", "tall", "quiet")
    assert FAMILY.target_terms[0] == "grandmother"


WORDS = [*(word for pair in FAMILY.targets for word in pair), "and", "Mothers", "x"]


@given(st.lists(st.sampled_from(WORDS)).map(" ".join))
def test_one_direction_leaves_no_first_term(text: str) -> None:
    pattern = compile_terms(FAMILY.target_terms, whole_words=True)
    assert not pattern.search(FAMILY.swap_targets(text))


def test_terms_of_another_language_are_refused() -> None:
    FAMILY.require_targets(["no term", "my aunt"])
    with pytest.raises(
        NothingLeft, match="none of the 2 sentences has a target term of family"
    ) as caught:
        FAMILY.require_targets(["妈妈来了", "爸爸"], "sentences.csv")
    assert caught.value.where == "sentences.csv"
    assert "grandmother, mother, aunt" in caught.value.remedy
