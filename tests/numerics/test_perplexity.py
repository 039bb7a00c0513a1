from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbias.language.likelihood import compute_perplexities


def test_perplexity_matches_hand_computation() -> None:
    # sentence 0: probabilities 1/2 and 1/8: mean of ln is -2 ln 2, so 4; sentence 1: 1/3, so 3
    logs = np.log([1 / 2, 1 / 3, 1 / 8])
    values = compute_perplexities(logs, np.array([0, 1, 0]), 2)
    assert values.tolist() == pytest.approx([4.0, 3.0])


def test_tokens_without_score_are_excluded() -> None:
    logs = np.array([math.nan, math.log(1 / 4), math.nan])
    assert compute_perplexities(logs, np.array([0, 0, 1]), 3).tolist() == pytest.approx(
        [4.0, math.nan, math.nan], nan_ok=True
    )


def test_overflow_is_infinite() -> None:
    assert np.isinf(compute_perplexities(np.array([-1e6]), np.array([0]), 1)).all()


@given(
    st.lists(st.lists(st.floats(-30, 0), min_size=1, max_size=6), min_size=1, max_size=6),
)
def test_perplexity_is_the_exponential_of_the_mean_loss(sentences: list[list[float]]) -> None:
    owners = np.repeat(np.arange(len(sentences)), [len(sentence) for sentence in sentences])
    values = compute_perplexities(np.concatenate(sentences), owners, len(sentences))
    assert values == pytest.approx(
        [math.exp(-sum(sentence) / len(sentence)) for sentence in sentences]
    )
    assert (values >= 1 - 1e-12).all()
