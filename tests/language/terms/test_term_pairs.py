from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbias.core.errors import NothingLeft
from recbias.language.terms import TermPairs, compile_terms, swap_terms

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


def test_both_directions_exchange_the_terms() -> None:
    text = "Mother saw father and she waved"
    assert FAMILY.swap_targets(text) == "Father saw father and he waved"
    assert FAMILY.swap_targets(text, both_directions=True) == "Father saw mother and he waved"


def test_a_second_term_of_several_pairs_becomes_the_first_of_the_first_pair() -> None:
    pairs = (("old man", "person"), ("old woman", "person"))
    assert swap_terms("a person", pairs, both_directions=True) == "a old man"


def test_a_term_that_is_first_and_second_is_replaced_as_first() -> None:
    pairs = (("thin", "fat"), ("fat", "slim"))
    assert swap_terms("thin fat slim", pairs, both_directions=True) == "fat slim fat"


@pytest.mark.parametrize(
    ("text", "swapped"),
    [
        ("Mother", "Father"),
        ("MOTHER", "FATHER"),
        ("motherhood and grandmother", "motherhood and grandfather"),
        ("the other", "the other"),
        ("mother's", "father's"),
        ("", ""),
    ],
)
def test_whole_words_keep_their_case(text: str, swapped: str) -> None:
    assert FAMILY.swap_targets(text) == swapped


def test_without_word_limits_terms_are_found_anywhere() -> None:
    pairs = TermPairs("gender", ("female", "male"), (("女", "男"),))
    assert pairs.swap_targets("女生和美女") == "男生和美男"


def test_special_characters_are_no_patterns() -> None:
    assert swap_terms("a.b axb (c", (("a.b", "X"), ("(c", "Y"))) == "X axb Y"


def test_no_pairs_change_nothing() -> None:
    assert swap_terms("as it is", ()) == "as it is"
    assert compile_terms(()).search("anything") is None
    assert FAMILY.attribute_pairs == (("small", "tall"), ("tall", "small"))
    assert FAMILY.attribute_terms == ("small", "tall", "quiet")
    assert FAMILY.target_terms[0] == "grandmother"


WORDS = [*(word for pair in FAMILY.targets for word in pair), "and", "Mothers", "x"]


@given(st.lists(st.sampled_from(WORDS)).map(" ".join))
def test_exchanging_one_to_one_pairs_twice_gives_the_text(text: str) -> None:
    exchanged = FAMILY.swap_targets(text, both_directions=True)
    assert FAMILY.swap_targets(exchanged, both_directions=True) == text
    assert len(exchanged.split()) == len(text.split())


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
