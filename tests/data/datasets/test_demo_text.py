from __future__ import annotations

import numpy as np
import pytest

from recbias.data.datasets.demo_text import (
    FIRST_WORDS,
    MEN,
    NEUTRAL,
    SECOND_WORDS,
    STEREOTYPED,
    WOMEN,
    casts,
    overviews,
    review_texts,
    several,
    titles,
)


@pytest.mark.parametrize("n", [1, 100, 3 * len(FIRST_WORDS) * len(SECOND_WORDS)])
def test_no_two_titles_are_alike(n: int, rng: np.random.Generator) -> None:
    assert len(set(titles(n, rng).tolist())) == n


def test_titles_are_numbered_once_all_words_are_used(rng: np.random.Generator) -> None:
    found = titles(626, rng)
    assert found[625] == f"{found[0]} 2"
    assert len(found[0].split()) == 2


def test_men_are_the_majority_exactly_where_asked_for(rng: np.random.Generator) -> None:
    more_men = np.arange(400) < 150
    people = [cast.split("|") for cast in casts(more_men, rng)]
    first = [[person.split()[0] for person in cast] for cast in people]
    assert all(len(set(names)) == 5 for names in first)
    n_men = np.array([sum(name in set(MEN) for name in names) for names in first])
    n_women = np.array([sum(name in set(WOMEN) for name in names) for names in first])
    assert (n_men + n_women == 5).all()
    np.testing.assert_array_equal(n_men > n_women, more_men)
    assert set(n_men.tolist()) == {0, 1, 2, 3, 4, 5}


def test_no_name_is_of_both_genders() -> None:
    assert not set(MEN) & set(WOMEN)


def test_the_men_are_not_always_named_first(rng: np.random.Generator) -> None:
    first = [cast.split()[0] for cast in casts(np.ones(300, dtype=bool), rng)]
    # 3, 4 or 5 of 5 are men, so 0.8 of the first names on average: standard error 0.023
    share = np.mean([name in set(MEN) for name in first])
    assert abs(share - 0.8) < 4 * 0.023


def test_overviews_hold_a_stereotype_exactly_where_asked_for(rng: np.random.Generator) -> None:
    stereotyped = np.array([True, False] * 50)
    found = overviews(np.full(100, "Drama", dtype=object), stereotyped, rng)
    holds = [any(story in text for story in STEREOTYPED) for text in found]
    assert holds == stereotyped.tolist()
    assert [any(story in text for story in NEUTRAL) for text in found] == (~stereotyped).tolist()
    assert all(text.startswith("Drama story set in ") for text in found)


def test_a_review_says_what_the_rating_says() -> None:
    found = review_texts(
        np.array(["Old Road", "New Sea"], dtype=object),
        np.array(["Drama", "Comedy"], dtype=object),
        np.array([1.0, 4.0]),
        np.array([5.0, 1.0]),
    )
    assert found.tolist() == [
        "One of the best I know. Old Road is cheap, and it is all Drama.",
        "I want my evening back. New Sea is expensive, and it is all Comedy.",
    ]


def test_several_values_of_a_cell() -> None:
    found = several(("a", "b"), np.array([0, 1, 0]), np.array([1, -1, 0]))
    assert found.tolist() == ["a|b", "b", "a"]
