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
