"""Means of labels that err, corrected by human labels."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.stats import t as student

from recbias.core.dataset import FloatArray
from recbias.core.measures import compute_wilson_interval
from recbias.statistics.prediction_powered import (
    Audit,
    HumanLabels,
    compare_corrected,
    correct_lists,
    estimate_mean,
    resample_corrected,
)

# In an environment of its own: pip install ppi-python==0.2.3, and
#   from ppi_py import ppi_mean_ci, ppi_mean_pointestimate
#   ppi_mean_pointestimate(H, F, G, lam=lam, w=W, w_unlabeled=V)
#   ppi_mean_ci(H, F, G, alpha=0.05, lam=lam, w=W, w_unlabeled=V)
# with the arrays below; without a lam they are tuned as in PPI++.
RNG = np.random.default_rng(0)
H = (RNG.random(40) < 0.3).astype(float)
F = np.abs(H - (RNG.random(40) < 0.1))
G = (RNG.random(200) < 0.35).astype(float)
W, V = 1.0 + np.arange(40) % 3, 1.0 + np.arange(200) % 2
PPI_PYTHON = (
    (1.0, None, None, (0.24, 0.12459489729068939, 0.3554051027093106)),
    (1.0, W, V, (0.2267088607594937, 0.09588493840578732, 0.35753278311319986)),
    (0.5, None, None, (0.245, 0.14685735987585247, 0.3431426401241475)),
    (0.5, W, V, (0.23993670886075952, 0.12981585887308708, 0.3500575588484318)),
    (None, None, None, (0.24397478991596638, 0.14699619277269432, 0.34095338705923844)),
    (None, W, V, (0.23623639517503706, 0.12721893134620704, 0.3452538590038671)),
)


@pytest.mark.parametrize(("lam", "w", "v", "expected"), PPI_PYTHON)
def test_means_are_those_of_ppi_python(lam: Any, w: Any, v: Any, expected: Any) -> None:
    mean = estimate_mean(H, F, G, lam, w, v)
    assert (mean.value, *mean.interval) == pytest.approx(expected, abs=1e-12)


def score(metric: str, labels: FloatArray) -> Any:
    if metric == "HIT_BAD":
        return 1.0 - (1.0 - labels).prod(axis=1)
    return labels @ np.arange(labels.shape[1], 0.0, -1.0) / 15.0


def make_world(metric: str, n_users: int = 40) -> dict[str, Any]:
    rng = np.random.default_rng(3)
    lists = np.array([rng.choice(30, 5, replace=False) for _ in range(n_users)])
    truth = (rng.random(30) < 0.4).astype(float)
    judged = np.abs(truth - (rng.random(30) < 0.15))
    audited = np.where(rng.random(30) < 0.5, truth, np.nan)
    return {
        "score": partial(score, metric),
        "items": lists,
        "defined": np.ones(n_users, dtype=bool),
        "predictions": judged,
        "human": HumanLabels(audited, np.zeros(30)),
    }


def test_a_linear_value_is_prediction_powered_with_the_exposure_as_weights() -> None:
    world = make_world("REC-ST")
    found = correct_lists(**world)
    weights = np.broadcast_to(np.arange(5, 0, -1) / 15.0, (40, 5))
    exposure = np.bincount(world["items"].ravel(), weights.ravel(), 30) / 40
    known = ~np.isnan(world["human"].labels)
    mean = estimate_mean(
        world["human"].labels[known],
        world["predictions"][known],
        world["predictions"],
        found.lam,
        exposure[known],
        exposure,
    )
    assert 0 < found.lam < 1
    assert found.values.mean() == pytest.approx(mean.value * exposure.sum(), abs=1e-12)


@pytest.mark.parametrize("metric", ["REC-ST", "HIT_BAD"])
def test_a_complete_audit_gives_the_true_values_and_the_error_of_users_alone(metric: str) -> None:
    world = make_world(metric)
    truth: Any = np.arange(30) % 2.0
    world["human"] = HumanLabels(truth, np.zeros(30))
    found = correct_lists(**world)
    true = score(metric, truth[world["items"]])
    assert found.values == pytest.approx(true, abs=1e-12)
    means = found.audit.estimate(found.values, np.zeros(40, int), 1)
    assert means.measure_error(0)[0] == pytest.approx(true.std(ddof=1) / np.sqrt(40), abs=1e-9)
    assert (means.n_audited, means.n_items) == (30, 30)


def test_a_linear_value_has_a_symmetric_interval_and_others_wilsons() -> None:
    linear, curved = (correct_lists(**make_world(metric)) for metric in ("REC-ST", "HIT_BAD"))
    row = linear.audit.summarize(linear.values)
    assert row.ci_high - row.value == pytest.approx(row.value - row.ci_low)
    row = curved.audit.summarize(curved.values)
    assert row.value > 0.5
    assert row.ci_high - row.value < row.value - row.ci_low  # drawn to one half
    row = curved.audit.summarize(curved.values + 1.1 - row.value)  # more than the largest share
    assert row.ci_low < 1.0 < row.ci_high == row.value


def test_what_a_draw_of_two_labels_adds_to_a_product_by_hand() -> None:
    """1 - (1 - x)(1 - y) less its linear part at x = y = p is -(x - p)(y - p), x and y 0 or 1."""
    world = make_world("HIT_BAD")
    world["items"] = world["items"][:, :2]
    found = correct_lists(**world)
    labels, known = world["predictions"][world["items"]], ~np.isnan(world["human"].labels)
    alike = (labels[:, 0] == labels[:, 1]) & ~known[world["items"]].any(axis=1)
    assert alike.any()
    for value, rest in zip(found.values[alike], found.audit.rest[alike], strict=True):
        p = 1.0 - np.sqrt(1.0 - value)
        by_hand = np.array([-((1 - p) ** 2), p * (1 - p), -(p**2)])
        assert np.abs(rest[:, None] - by_hand).min(axis=1).max() < 1e-12


def test_variances_by_hand() -> None:
    """Two users, and three audited items, of which each user has one of their own and one shared.

    d = z - R q = (0.1, -0.1, 0.1) - 0.1 (0.2, 0.4, 0.4) with the means z of the errors.
    """
    errors = csr_array([[0.2, -0.1, 0.0], [0.0, -0.1, 0.2]])
    zero = csr_array((np.zeros(4), errors.indices, errors.indptr), errors.shape)
    shares, sampled = np.array([0.2, 0.4, 0.4]), np.full(3, 0.5)
    audit = Audit(errors, zero, shares, sampled, np.zeros((2, 0)))
    means = audit.estimate(np.array([0.6, 0.2]), np.zeros(2, int), 1)
    m = 1 / 0.36
    scale = m / (m - 2) * 0.5
    items = scale * (0.08**2 + 0.14**2 + 0.06**2)
    own = scale * (0.2**2 + 0.1**2 + 0.1**2 + 0.2**2)
    assert means.items[0, 0] == pytest.approx(items)
    assert means.users[0] == pytest.approx(max((0.08 - own) / 2 + items, 0))


def test_shared_errors_cancel_in_a_difference() -> None:
    """Both groups have the same exposure, so the labels add no error to their difference."""
    errors = csr_array(np.tile([[0.3, -0.2, 0.1, 0.4]], (6, 1)))
    zero = csr_array((np.zeros(24), errors.indices, errors.indptr), errors.shape)
    audit = Audit(errors, zero, np.full(4, 0.25), np.full(4, 0.1), np.zeros((6, 0)))
    codes = np.repeat([0, 1], 3)
    means = audit.estimate(np.array([1.0, 2.0, 3.0, 1.5, 2.5, 3.5]), codes, 2)
    difference = means.items[0, 0] + means.items[1, 1] - 2 * means.items[0, 1]
    assert difference == pytest.approx(0.0, abs=1e-12)
    (test,) = compare_corrected(("a", "b"), means, (np.array([0]), np.array([1])))
    assert test.n == 6
    assert test.difference == pytest.approx(-0.5)


def test_samples_have_the_covariance_of_the_means() -> None:
    found = correct_lists(**make_world("REC-ST"))
    codes = np.repeat([0, 1], 20)
    means = found.audit.estimate(found.values, codes, 2)
    samples = resample_corrected(means, codes, 20_000)
    assert np.cov(samples.T) == pytest.approx(means.covariance, rel=0.05, abs=4e-5)


def test_raters_count_where_the_audit_is_complete() -> None:
    world = make_world("REC-ST")
    truth: Any = np.arange(30) % 2.0
    errors = []
    for variance in (0.0, 0.05):
        world["human"] = HumanLabels(truth, np.full(30, variance))
        found = correct_lists(**world)
        errors.append(found.audit.estimate(found.values, np.zeros(40, int), 1).items[0, 0])
    assert errors[0] == pytest.approx(0.0, abs=1e-12)
    assert errors[1] > 1e-4


def make_audit(rest: FloatArray) -> Audit:
    none = csr_array((len(rest), 5))
    return Audit(none, none, np.full(5, 0.2), np.full(5, 0.5), rest)


def test_what_drawn_labels_add_to_single_users_is_not_counted_twice() -> None:
    # draws of +1 and -1: independent users add nothing to the variance of their values, (1/2) / 2,
    # which holds it already; common ones add 1
    signs, zero = np.resize([1.0, -1.0], 32), np.zeros(32)
    values, codes = np.array([0.0, 1.0]), np.zeros(2, dtype=int)
    apart = make_audit(np.stack([signs, zero])).estimate(values, codes, 1)
    assert apart.measure_error(0)[0] ** 2 == pytest.approx(0.25)
    common = make_audit(np.stack([signs, signs])).estimate(values, codes, 1)
    assert common.measure_error(0)[0] ** 2 == pytest.approx(0.25 + 1)


def test_an_interval_near_1_has_at_least_the_variance_of_a_share() -> None:
    values = np.append(np.full(59, 1.0), 0.97)
    row = make_audit(np.zeros((60, 32))).summarize(values)
    expected = compute_wilson_interval(row.value, 60, student.ppf(0.975, 59))
    assert (row.ci_low, row.ci_high) == pytest.approx(expected)
