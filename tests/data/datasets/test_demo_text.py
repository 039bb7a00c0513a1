from __future__ import annotations

import numpy as np

from recbias.data.demo import MEN, NEUTRAL, STEREOTYPED, WOMEN, sample_casts, sample_overviews


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


def test_overviews_contain_a_stereotype_exactly_if_requested(rng: np.random.Generator) -> None:
    stereotyped = np.array([True, False] * 50)
    overviews = sample_overviews(np.full(100, "Drama", dtype=object), stereotyped, rng)
    has_stereotype = [any(story in text for story in STEREOTYPED) for text in overviews]
    is_neutral = [any(story in text for story in NEUTRAL) for text in overviews]
    assert has_stereotype == stereotyped.tolist()
    assert is_neutral == (~stereotyped).tolist()
    assert all(text.startswith("Drama story set in ") for text in overviews)
