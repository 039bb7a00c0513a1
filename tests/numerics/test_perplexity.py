from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbias.numerics.perplexity import perplexities


def test_worked_example() -> None:
    # sentence 0: probabilities 1/2 and 1/8: mean of ln is -2 ln 2, so 4; sentence 1: 1/3, so 3
    logs = np.log([1 / 2, 1 / 3, 1 / 8])
    found = perplexities(logs, np.array([0, 1, 0]), 2)
    assert found.tolist() == pytest.approx([4.0, 3.0])


def test_a_token_that_was_not_scored_does_not_count() -> None:
    logs = np.array([math.nan, math.log(1 / 4), math.nan])
    assert perplexities(logs, np.array([0, 0, 1]), 3).tolist() == pytest.approx(
        [4.0, math.nan, math.nan], nan_ok=True
    )


def test_a_hopeless_sentence_is_infinite() -> None:
    assert np.isinf(perplexities(np.array([-1e6]), np.array([0]), 1)).all()


@given(
    st.lists(st.lists(st.floats(-30, 0), min_size=1, max_size=6), min_size=1, max_size=6),
)
def test_it_is_the_exponential_of_the_mean_loss(sentences: list[list[float]]) -> None:
    owners = np.repeat(np.arange(len(sentences)), [len(each) for each in sentences])
    found = perplexities(np.concatenate(sentences), owners, len(sentences))
    assert found == pytest.approx([math.exp(-sum(each) / len(each)) for each in sentences])
    assert (found >= 1 - 1e-12).all()
