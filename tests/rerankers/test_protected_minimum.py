from __future__ import annotations

import itertools

import numpy as np
import pytest

from recbias.rerankers.fair import adjust_alpha, compute_minimum, compute_rejection

# table 2 of Zehlike et al. 2017: m(r) for alpha = 0.1 and r = 1 to 12
PUBLISHED = {
    0.1: [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
    0.2: [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1],
    0.3: [0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 2],
    0.4: [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 3],
    0.5: [0, 0, 0, 1, 1, 1, 2, 2, 3, 3, 3, 4],
    0.6: [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5],
    0.7: [0, 1, 1, 2, 2, 3, 3, 4, 5, 5, 6, 6],
}


@pytest.mark.parametrize("share", PUBLISHED)
def test_minimum_is_that_of_the_paper(share: float) -> None:
    assert compute_minimum(12, share, 0.1).tolist() == PUBLISHED[share]


def test_minimum_and_rejection_are_those_of_the_authors_package() -> None:
    # the documentation of fairsearchcore: k = 20, p = 0.25, alpha = 0.1
    unadjusted = [0] * 8 + [1] * 6 + [2] * 5 + [3]
    assert compute_minimum(20, 0.25, 0.1).tolist() == unadjusted
    adjusted = np.array([0] * 8 + [1] * 7 + [2] * 5)
    assert compute_rejection(adjusted, 0.25) == pytest.approx(0.10515247355215251, rel=1e-12)


@pytest.mark.parametrize("share", [0.2, 0.5, 0.7])
def test_rejection_is_that_over_all_lists(share: float) -> None:
    minimum = compute_minimum(10, share, 0.2)
    rejected = 0.0
    for members in itertools.product((0, 1), repeat=10):
        if (np.cumsum(members) < minimum).any():
            rejected += share ** sum(members) * (1 - share) ** (10 - sum(members))
    assert compute_rejection(minimum, share) == pytest.approx(rejected, rel=1e-12)


@pytest.mark.parametrize("k", [1, 5, 12, 40])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.8])
def test_adjusted_level_is_the_largest_that_keeps_the_limit(k: int, share: float) -> None:
    alpha = adjust_alpha(k, share, 0.1)
    assert 0 < alpha <= 0.1
    assert compute_rejection(compute_minimum(k, share, alpha), share) <= 0.1
    if alpha < 0.1:  # the next larger level changes the minimum, and breaks the limit
        larger = compute_minimum(k, share, np.nextafter(alpha, 1.0))
        assert compute_rejection(larger, share) > 0.1


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_a_share_of_0_or_1_needs_none_or_all(share: float) -> None:
    minimum = compute_minimum(4, share, adjust_alpha(4, share, 0.1))
    assert minimum.tolist() == ([0] * 4 if share == 0 else [1, 2, 3, 4])
