from __future__ import annotations

import numpy as np
import pytest

from recbias.data.demo import (
    FIRST_WORDS,
    MEN,
    NEUTRAL,
    SECOND_WORDS,
    STEREOTYPED,
    WOMEN,
    join_names,
    render_reviews,
    sample_casts,
    sample_overviews,
    sample_titles,
)


@pytest.mark.parametrize("n", [1, 100, 3 * len(FIRST_WORDS) * len(SECOND_WORDS)])
def test_titles_are_distinct(n: int, rng: np.random.Generator) -> None:
    assert len(set(sample_titles(n, rng).tolist())) == n


def test_titles_are_numbered_after_all_pairs_of_words_are_used(rng: np.random.Generator) -> None:
    titles = sample_titles(626, rng)
    assert titles[625] == f"{titles[0]} 2"
    assert len(titles[0].split()) == 2


def test_casts_have_more_men_exactly_if_requested(rng: np.random.Generator) -> None:
    more_men = np.arange(400) < 150
    casts = [cast.split("|") for cast in sample_casts(more_men, rng)]
    first_names = [[person.split()[0] for person in cast] for cast in casts]
    assert all(len(set(names)) == 5 for names in first_names)
    n_men = np.array([sum(name in set(MEN) for name in names) for names in first_names])
    n_women = np.array([sum(name in set(WOMEN) for name in names) for names in first_names])
    assert (n_men + n_women == 5).all()
    np.testing.assert_array_equal(n_men > n_women, more_men)
    assert set(n_men.tolist()) == {0, 1, 2, 3, 4, 5}


def test_first_names_of_women_and_men_are_disjoint() -> None:
    assert not set(MEN) & set(WOMEN)


def test_the_order_of_men_and_women_in_a_cast_is_random(rng: np.random.Generator) -> None:
    first_names = [cast.split()[0] for cast in sample_casts(np.ones(300, dtype=bool), rng)]
    # 3, 4 or 5 of 5 are men, so 0.8 of the first names on average: standard error 0.023
    share = np.mean([name in set(MEN) for name in first_names])
    assert abs(share - 0.8) < 4 * 0.023


def test_overviews_contain_a_stereotype_exactly_if_requested(rng: np.random.Generator) -> None:
    stereotyped = np.array([True, False] * 50)
    overviews = sample_overviews(np.full(100, "Drama", dtype=object), stereotyped, rng)
    has_stereotype = [any(story in text for story in STEREOTYPED) for text in overviews]
    is_neutral = [any(story in text for story in NEUTRAL) for text in overviews]
    assert has_stereotype == stereotyped.tolist()
    assert is_neutral == (~stereotyped).tolist()
    assert all(text.startswith("Drama story set in ") for text in overviews)


def test_the_opinion_of_a_review_matches_the_rating() -> None:
    reviews = render_reviews(
        np.array(["Old Road", "New Sea"], dtype=object),
        np.array(["Drama", "Comedy"], dtype=object),
        np.array([1.0, 4.0]),
        np.array([5.0, 1.0]),
    )
    assert reviews.tolist() == [
        "One of the best I know. Old Road is cheap, and it is all Drama.",
        "I want my evening back. New Sea is expensive, and it is all Comedy.",
    ]


def test_a_cell_has_one_or_two_distinct_names() -> None:
    cells = join_names(("a", "b"), np.array([0, 1, 0]), np.array([1, -1, 0]))
    assert cells.tolist() == ["a|b", "b", "a"]
