from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbias.core.dataset import AnyArray, FloatArray
from recbias.statistics.decomposition import (
    CrossedDesign,
    compute_sums_of_squares,
    estimate_components,
)

# two labels, two names each, two templates
#            t0  t1   name mean   label mean
# A  a0       1   3   2           3
#    a1       2   6   4
# B  b0       5   7   6           7
#    b1       8   8   8
# grand mean 5; template means 4 and 6
VALUES = np.array([1.0, 3, 2, 6, 5, 7, 8, 8])
NAMES = np.repeat(np.arange(4), 2)
TEMPLATES = np.tile([0, 1], 4)
LABELS = np.array([0, 0, 1, 1])
# label: 4 ((3-5)² + (7-5)²) = 32; name: 2 (1 + 1 + 1 + 1) = 8; template: 4 (1 + 1) = 8
# total: 16 + 4 + 9 + 1 + 0 + 4 + 9 + 9 = 52; rest 52 - 48 = 4
SQUARES = [32.0, 8.0, 8.0, 4.0]


def fit_least_squares(
    values: FloatArray, names: AnyArray, templates: AnyArray, labels: AnyArray
) -> list[float]:
    """The residual sums of squares of nested models, by dummies."""
    ones = np.ones((values.size, 1))
    factors = [labels[names], names, templates]
    design, left = ones, []
    for factor in [None, *factors]:
        if factor is not None:
            design = np.hstack([design, factor[:, None] == np.unique(factor)])
        fit = np.linalg.lstsq(design, values, rcond=None)[0]
        left.append(float(((values - design @ fit) ** 2).sum()))
    return [*(a - b for a, b in pairwise(left)), left[-1]]


def test_two_by_two_by_two_by_hand() -> None:
    design = CrossedDesign.from_values(VALUES, NAMES, TEMPLATES, LABELS)
    assert compute_sums_of_squares(design)[0].tolist() == pytest.approx(SQUARES)


def test_components_by_hand() -> None:
    # mean squares: label 32/1, name 8/2 = 4, template 8/1, rest 4/3
    # rest 4/3; name (4 - 4/3)/2 = 4/3; template (8 - 4/3)/4 = 5/3
    # n0 = (4 - (4 + 4)/4)/1 = 2; label (32 - 4)/(2 * 2) = 7
    design = CrossedDesign.from_values(VALUES, NAMES, TEMPLATES, LABELS)
    assert estimate_components(design)[0].tolist() == pytest.approx([7, 4 / 3, 5 / 3, 4 / 3])


@given(seed=st.integers(0, 2**32 - 1))
def test_any_design_is_that_of_least_squares(seed: int) -> None:
    rng = np.random.default_rng(seed)
    names = np.sort(rng.integers(0, 6, 30))
    names = np.unique(names, return_inverse=True)[1]
    templates = rng.integers(0, 4, 30)
    labels = rng.integers(0, 2, names.max() + 1)
    values = rng.normal(3, 1, 30)
    squares = compute_sums_of_squares(CrossedDesign.from_values(values, names, templates, labels))[
        0
    ]
    theirs = fit_least_squares(values, names, templates, labels)
    assert squares.tolist() == pytest.approx(theirs, abs=1e-8)
    assert squares.sum() == pytest.approx(((values - values.mean()) ** 2).sum())


def test_values_that_are_not_defined_are_left_out() -> None:
    values = np.array([*VALUES, np.nan])
    design = CrossedDesign.from_values(
        values, np.append(NAMES, 4), np.append(TEMPLATES, 2), np.append(LABELS, 1)
    )
    assert design.n.shape == (4, 2)


def test_planted_components_are_found(rng: np.random.Generator) -> None:
    estimates = []
    for _ in range(60):
        labels = np.repeat([0, 1], 12)
        name, template = rng.normal(0, 2, 24), rng.normal(0, 1.5, 10)
        values = name[:, None] + template + rng.normal(0, 1, (24, 10))
        names = np.repeat(np.arange(24), 10)
        design = CrossedDesign.from_values(
            values.ravel(), names, np.tile(np.arange(10), 24), labels
        )
        estimates.append(estimate_components(design)[0])
    mean = np.mean(estimates, axis=0)
    # name 4 (standard error over 60 worlds about 0.16), template 2.25 (0.14), rest 1 (0.01)
    assert mean[1:].tolist() == pytest.approx([4, 2.25, 1], abs=0.6)
    assert mean[0] < 0.5  # cut at 0, so a little more than nothing


def test_without_a_degree_of_freedom_a_component_is_undefined() -> None:
    single = CrossedDesign.from_values(
        np.array([1.0, 2, 3]), np.arange(3), np.zeros(3, dtype=int), np.array([0, 0, 1])
    )
    assert np.isnan(estimate_components(single)[0, 3])
    # one name a label: the label has what both have together
    nested = CrossedDesign.from_values(VALUES[:4], NAMES[:4], TEMPLATES[:4], np.array([0, 1]))
    components = estimate_components(nested)[0]
    assert components[1] == 0
    assert components[0] > 0
