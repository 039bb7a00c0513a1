from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbias.core.dataset import FloatArray
from recbias.core.evidence import Embeddings, Evidence
from recbias.core.measures import Measurement
from recbias.metrics.embeddings.association import DEAA, EAA, GEAA
from support.worlds.vector_worlds import (
    GENDER,
    GENRES,
    USERS,
    make_vectors,
    plant_association,
)

# users of length 1: F (1, 0), (0.6, 0.8); M (0, 1), (-1, 0)
# mean of F (0.8, 0.4), of M (-0.5, 0.5): EAA(x, y) = 1.3 x - 0.1 y
# Romance (1, 0): 1.3, (0, 1): -0.1; Action (-1, 0): -1.3, (0.6, -0.8): 0.86, (0, -1): 0.1
EAA_VALUES = [1.3, -0.1, -1.3, 0.86, 0.1]
MEANS = (0.6, -0.34 / 3)
SPREAD = math.sqrt(3.99168 / 4)


def measure(metric: Any, facts: Evidence) -> dict[str, Measurement]:
    measurements = metric(groups=GENDER, targets=GENRES, permutations=500).measure(facts)
    return {measurement.target: measurement for measurement in measurements}


def test_eaa_by_hand() -> None:
    measurements = measure(EAA, make_vectors())
    assert list(measurements) == ["", "genres=Romance", "genres=Action"]
    units = [measurement.units for measurement in measurements.values() if measurement.units]
    values = np.concatenate([unit_scores.values for unit_scores in units])
    assert values.tolist() == pytest.approx(EAA_VALUES)
    assert [unit_scores.unit for unit_scores in units] == ["item", "item"]
    assert np.concatenate([unit_scores.ids for unit_scores in units]).tolist() == [
        "i0",
        "i1",
        "i2",
        "i3",
        "i4",
    ]
    assert [measurement.value for measurement in measurements.values()] == pytest.approx(
        [MEANS[0] - MEANS[1], *MEANS]
    )


def test_geaa_by_hand() -> None:
    measurements = measure(GEAA, make_vectors())
    assert [measurement.value for measurement in measurements.values()] == pytest.approx(
        [1.2, -0.34]
    )
    assert [(measurement.n, measurement.undefined) for measurement in measurements.values()] == [
        (2, 0),
        (3, 0),
    ]
    # seen from Romance, whose sum is (1, 1): F 1, 1.4 and M 1, -1, means 1.2 and 0
    # 6 ways to choose two of them: away from their mean 0.6 the pairs add up to
    # 1.2, 0.8, -1.2, 1.2, -0.8, -1.2, and 4 of them are as far as 1.2
    (test,) = measurements["genres=Romance"].contrasts
    assert (test.between, test.a, test.b) == ("groups", "gender=F", "gender=M")
    assert (test.mean_a, test.mean_b, test.difference) == pytest.approx((1.2, 0.0, 1.2))
    assert test.p == pytest.approx(4 / 6)


def test_deaa_by_hand() -> None:
    measurements = measure(DEAA, make_vectors())
    main = measurements[""]
    assert main.value == pytest.approx(1.2 + 0.34)
    assert (main.n, main.undefined) == (5, 0)
    targets, groups = main.contrasts
    assert (targets.between, targets.a, targets.b) == (
        "targets",
        "genres=Romance",
        "genres=Action",
    )
    assert (targets.mean_a, targets.mean_b) == pytest.approx((1.2, -0.34))
    assert targets.effect_size == pytest.approx((MEANS[0] - MEANS[1]) / SPREAD)
    assert targets.p == 0.5  # see test_set_permutation
    assert (groups.between, groups.a, groups.b) == ("groups", "gender=F", "gender=M")
    assert groups.difference == pytest.approx(1.54)
    assert [
        measurements[f"mean of {target}"].value for target in ("genres=Romance", "genres=Action")
    ] == (pytest.approx(MEANS))


def test_the_paper_adds_up() -> None:
    # 90.93 - (-521.34) = 612.27: orientation A = F, B = M, E = true crime, P = sports
    measurements = measure(DEAA, make_vectors())
    assert measurements[""].value == pytest.approx(
        measurements["genres=Romance"].value - measurements["genres=Action"].value
    )


def test_sizes_alone_are_no_difference() -> None:
    # every item lies at (1, 0): two of them have GEAA 2.6, three 3.9: DEAA is -1.3 by size alone
    measurement = measure(DEAA, make_vectors(items=[[1.0, 0.0]] * 5))[""]
    assert measurement.value == pytest.approx(-1.3)
    assert measurement.contrasts[0].p == 1.0
    assert math.isnan(measurement.contrasts[0].effect_size)


def test_a_planted_association_is_found() -> None:
    measurements = measure(DEAA, plant_association(np.random.default_rng(1), shift=1.0))
    targets, groups = measurements[""].contrasts
    assert targets.effect_size > 1.0
    assert (targets.p, groups.p) == (1 / 501, 1 / 501)
    assert measurements["genres=Romance"].ci_low > 0 > measurements["genres=Action"].ci_high


def test_with_nothing_planted_5_in_100_are_significant() -> None:
    hits = np.zeros(2)
    for seed in range(200):
        facts = plant_association(
            np.random.default_rng(seed), shift=0.0, n=12, bootstrap_seed=seed
        )
        metric = DEAA(groups=GENDER, targets=GENRES, permutations=99)
        hits += [contrast.p <= 0.05 for contrast in metric.measure(facts)[0].contrasts]
    # 10 of 200 are expected, with a standard deviation of 3.1
    assert (hits <= 20).all()
    assert (hits >= 2).all()


def test_the_interval_holds_the_planted_association() -> None:
    # mean unit vectors lie at ±c on the first axis: EAA is ±2 c · c, the difference twice that
    many = np.random.default_rng(0).standard_normal((1_000_000, 8))
    many[:, 0] += 0.5
    c = float((many[:, 0] / np.linalg.norm(many, axis=1)).mean())
    holds = 0
    for seed in range(300):
        facts = plant_association(
            np.random.default_rng(seed), shift=0.5, n=60, bootstrap_seed=seed
        )
        main = EAA(groups=GENDER, targets=GENRES, permutations=1).measure(facts)[0]
        holds += main.ci_low <= 4 * c * c <= main.ci_high
    # 285 of 300 are expected, with a standard deviation of 3.8
    assert 272 <= holds <= 297


@pytest.mark.parametrize("n", [10, 40])
def test_the_mean_of_a_set_holds_what_other_users_would_show(n: int) -> None:
    # many items and few users: that the users are a sample is most of the spread
    many = np.random.default_rng(0).standard_normal((1_000_000, 8))
    many[:, 0] += 0.3
    c = float((many[:, 0] / np.linalg.norm(many, axis=1)).mean())
    holds = np.zeros(2)
    for seed in range(100):
        rng = np.random.default_rng(seed)
        users, items = rng.standard_normal((2 * n, 8)), rng.standard_normal((800, 8))
        for vectors in (users, items):
            vectors[:, 0] += np.repeat([0.3, -0.3], len(vectors) // 2)
        facts = make_vectors(
            users,
            items,
            gender=["F"] * n + ["M"] * n,
            genres=["Romance"] * 400 + ["Action"] * 400,
            bootstrap_seed=seed,
        )
        measurements = measure(EAA, facts)
        truth = {"genres=Romance": 2 * c * c, "genres=Action": -2 * c * c}
        holds += [
            measurements[name].ci_low <= value <= measurements[name].ci_high
            for name, value in truth.items()
        ]
    assert (holds >= 88).all()  # 95 of 100 are expected, with a standard deviation of 2.2


def test_it_is_the_effect_of_weat(rng: np.random.Generator) -> None:
    from scipy.spatial.distance import cdist

    facts = plant_association(rng, shift=0.3, n=9)
    users, items = facts.embeddings.users, facts.embeddings.items  # type: ignore[union-attr]
    cosines = 1.0 - cdist(np.asarray(items, float), np.asarray(users, float), "cosine")
    values = cosines[:, :9].mean(axis=1) - cosines[:, 9:].mean(axis=1)
    measurements = measure(DEAA, facts)
    assert measurements[""].value == pytest.approx(values[:9].sum() - values[9:].sum(), rel=1e-6)
    expected = (values[:9].mean() - values[9:].mean()) / values.std(ddof=1)
    assert measurements[""].contrasts[0].effect_size == pytest.approx(expected, rel=1e-6)


def compute_main_value(facts: Evidence, groups: Any = GENDER, targets: Any = GENRES) -> float:
    metric = DEAA(groups=groups, targets=targets, permutations=1)
    return metric.measure(replace(facts, n_bootstrap=2))[0].value


def move_vectors(facts: Evidence, users: FloatArray, items: FloatArray) -> Evidence:
    return replace(facts, embeddings=Embeddings(users.astype("f4"), items.astype("f4")))


@given(st.integers(0, 10**6))
def test_the_sign_follows_the_sides_and_lengths_and_rotations_do_not_matter(seed: int) -> None:
    rng = np.random.default_rng(seed)
    facts = plant_association(rng, shift=0.5, n=4, d=3)
    value = compute_main_value(facts)
    users, items = (np.asarray(vectors, float) for vectors in vars(facts.embeddings).values())
    # the other way round it is the opposite
    assert compute_main_value(facts, groups=replace(GENDER, a="M", b="F")) == pytest.approx(-value)
    assert compute_main_value(facts, targets=replace(GENRES, e="Action", p="Romance")) == (
        pytest.approx(-value)
    )
    # lengths do not matter
    longer = [vectors * rng.uniform(0.1, 10, (len(vectors), 1)) for vectors in (users, items)]
    assert compute_main_value(move_vectors(facts, *longer)) == pytest.approx(value, abs=1e-4)
    # nor does a rotation of the space
    turn = np.linalg.qr(rng.standard_normal((3, 3)))[0]
    assert compute_main_value(move_vectors(facts, users @ turn, items @ turn)) == pytest.approx(
        value, abs=1e-4
    )
    # nor the order of the members
    order = np.r_[rng.permutation(4), 4 + rng.permutation(4)]
    assert compute_main_value(move_vectors(facts, users[order], items[order])) == pytest.approx(
        value
    )


def test_users_as_targets() -> None:
    groups = replace(GENDER, of="items", attribute="genres", a="Romance", b="Action")
    targets = replace(GENRES, of="users", attribute="gender", e="F", p="M")
    metric = EAA(groups=groups, targets=targets)
    assert metric.needs_now() == {"embeddings", "users", "items"}
    # mean of Romance (0.5, 0.5), of Action (-0.4, -1.8) / 3: EAA(x, y) = 1.9/3 x + 1.1 y
    units = metric.measure(make_vectors())[1].units
    assert units is not None
    assert units.unit == "user"
    assert units.values.tolist() == pytest.approx([1.9 / 3, 0.6 * 1.9 / 3 + 0.88])
    assert len(USERS) == 4


@pytest.mark.usefixtures("stage_warnings")
@pytest.mark.real_data
@pytest.mark.parametrize("model", ["PureSVD", "ALS"])
def test_gender_on_movielens(real_data: Path, model: str) -> None:
    from support.worlds.real_vectors import load_movielens_vectors

    facts = load_movielens_vectors(real_data, model)
    main, romance, action, *_ = DEAA(groups=GENDER, targets=GENRES).measure(facts)
    targets, groups = main.contrasts
    assert (romance.n, action.n) == (346, 389)
    assert romance.value > 0 > action.value
    assert targets.effect_size > 1.6
    assert targets.p == groups.p == 1 / 10_001
