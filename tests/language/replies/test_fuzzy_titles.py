from __future__ import annotations

import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rapidfuzz import fuzz

from recbias.core.errors import MissingExtra
from recbias.language.titles import find_nearest_items, index_titles

WORDS = st.text("abc ", min_size=1, max_size=12).map(lambda text: " ".join(f"x{text}".split()))


@given(st.lists(WORDS, min_size=1, max_size=8), WORDS, st.sampled_from([60.0, 80.0, 95.0]))
def test_bounds_exclude_no_title_that_is_similar_enough(
    titles: list[str], query: str, threshold: float
) -> None:
    entries = index_titles(titles, threshold=threshold).entries
    nearest = find_nearest_items([query], np.array([0], dtype=np.int32), entries, threshold)
    scores = np.array([fuzz.ratio(query, title) for title in titles])
    if scores.max() < threshold:
        assert nearest.codes.tolist() == [-1]
        assert np.isnan(nearest.scores).all()
    else:
        assert scores[nearest.codes[0]] == scores.max()
        assert nearest.scores[0] == pytest.approx(scores.max(), rel=1e-6)


def test_without_rapidfuzz_a_threshold_is_refused_with_the_extra(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "rapidfuzz", None)
    with pytest.raises(MissingExtra, match="needs the package 'rapidfuzz'") as caught:
        index_titles(["Heat (1995)"])
    assert "recbias[llm]" in caught.value.remedy
    films = index_titles(["Heat (1995)"], threshold=None)
    assert films.match(["heat"], [1995]).codes.tolist() == [0]
