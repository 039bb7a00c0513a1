from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbias.core.context import collect_warnings
from recbias.core.evidence import Embeddings, Evidence
from recbias.core.measures import Measurement
from recbias.metrics.embeddings.association import RRipa
from recbias.metrics.embeddings.sets import compute_cosine_tail, normalize_rows, normalize_vector
from support.worlds.vector_worlds import GENDER, GENRES, make_vectors, plant_association

# direction (2.5, 1) / sqrt(7.25); its cosines, times sqrt(7.25), with
# Romance (1, 0), (0, 1): 2.5, 1; Action (-1, 0), (0.6, -0.8), (0, -1): -2.5, 0.7, -1
COSINES = np.array([2.5, 1.0, -2.5, 0.7, -1.0]) / math.sqrt(7.25)


def measure(facts: Evidence, direction: Any = "centroid", **settings: Any) -> list[Measurement]:
    metric = RRipa(
        groups=GENDER,
        targets=GENRES,
        direction_=direction,
        **{"permutations": 500, **settings},
    )
    return list(metric.measure(facts))


def test_r_ripa_by_hand() -> None:
    main, romance, action = measure(make_vectors())
    assert (romance.target, action.target) == ("genres=Romance", "genres=Action")
    units = [measurement.units.values for measurement in (romance, action) if measurement.units]
    assert np.concatenate(units).tolist() == pytest.approx(COSINES.tolist())
    expected = (COSINES[:2].mean(), COSINES[2:].mean())
    assert (romance.value, action.value) == pytest.approx(expected)
    assert main.value == pytest.approx(expected[0] - expected[1])
    assert (main.n, main.undefined) == (5, 0)


def test_its_tests_by_hand() -> None:
    targets, groups = measure(make_vectors())[0].contrasts
    gap = COSINES[:2].mean() - COSINES[2:].mean()
    assert (targets.between, targets.a, targets.b) == (
        "targets",
        "genres=Romance",
        "genres=Action",
    )
    assert targets.effect_size == pytest.approx(gap / COSINES.std(ddof=1))
    # by sqrt(7.25) the cosines are 2.5, 1, -2.5, 0.7, -1, their mean 0.14; the first two are
    # 3.22 away together. Pairs: 3.22, -0.28, 2.92, 1.22, -1.78, 1.42, -0.28, -2.08, -3.78, -0.58
    assert targets.p == 2 / 10
    # users less their mean: (0.25, -1.5), (2.25, 2.5) | (-0.75, 0.5), (-1.75, -1.5): the first two
    # add up to (2.5, 1), at that cosine, 0.785; the other pairs to ±(0.5, 1) and ±(1.5, 3): 0.998
    assert (groups.between, groups.a, groups.b) == ("groups", "gender=F", "gender=M")
    assert groups.p == 6 / 6


def test_the_test_of_a_given_direction_by_hand(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.array([2.5, 1.0]))
    directions = measure(make_vectors(), tmp_path / "x.npy")[0].contrasts[1]
    # Romance lies at (0.5, 0.5), Action at (-0.4, -1.8) / 3: (1.9, 3.3) / 3 between them
    cosine = (2.5 * 1.9 + 3.3) / math.sqrt(7.25 * (1.9**2 + 3.3**2))
    assert (directions.between, directions.a, directions.b) == ("directions", "x.npy", "random")
    assert directions.statistic == pytest.approx(cosine)
    assert directions.p == pytest.approx(2 * math.acos(cosine) / math.pi)  # in the plane


def test_the_table_of_the_paper_has_these_differentials() -> None:
    # centroid difference, with gender: 0.138 - (-0.234) = 0.372
    main, first, second = measure(make_vectors())
    assert main.value == pytest.approx(first.value - second.value)


def test_a_planted_direction_is_found() -> None:
    facts = plant_association(np.random.default_rng(1), shift=1.0)
    main = measure(facts)[0]
    targets, groups = main.contrasts
    assert targets.effect_size > 1.0
    assert targets.p == 1 / 501
    assert groups.p < 0.005
    assert main.ci_low > 0


def test_a_random_direction_is_no_better_than_another() -> None:
    # E and P lie apart, so a random direction often tells them apart; but none is special
    contrasts_by_seed = [
        measure(
            plant_association(
                np.random.default_rng(1), shift=1.0, bootstrap_seed=seed, n_bootstrap=2
            ),
            "random",
            permutations=99,
        )[0].contrasts
        for seed in range(100)
    ]
    significant = np.array(
        [[contrast.p <= 0.05 for contrast in tests] for tests in contrasts_by_seed]
    ).sum(axis=0)
    assert significant[0] > 40
    assert significant[1] == 0  # it is the same whoever is in which group
    assert significant[2] <= 12  # 5 of 100 are expected, with a standard deviation of 2.2


def test_with_nothing_planted_5_in_100_are_significant() -> None:
    hits = np.zeros(2)
    for seed in range(200):
        facts = plant_association(
            np.random.default_rng(seed), shift=0.0, n=12, bootstrap_seed=seed, n_bootstrap=2
        )
        hits += [contrast.p <= 0.05 for contrast in measure(facts, permutations=99)[0].contrasts]
    # 10 of 200 are expected, with a standard deviation of 3.1
    assert (hits <= 20).all()
    assert (hits >= 2).all()


def test_the_interval_holds_the_planted_differential(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.eye(8)[0])
    # what it is over all items there could be: from a million of them
    many = np.random.default_rng(0).standard_normal((1_000_000, 8))
    many[:, 0] += 0.5
    planted_value = 2.0 * float((many[:, 0] / np.linalg.norm(many, axis=1)).mean())
    holds = 0
    for seed in range(300):
        facts = plant_association(
            np.random.default_rng(seed), shift=0.5, n=40, bootstrap_seed=seed
        )
        main = measure(facts, tmp_path / "x.npy", permutations=1)[0]
        holds += main.ci_low <= planted_value <= main.ci_high
    # 285 of 300 are expected, with a standard deviation of 3.8
    assert 272 <= holds <= 296


@pytest.mark.parametrize(("direction", "many"), [("centroid", 200), ("csvc", 50)])
@pytest.mark.usefixtures("stage_warnings")
@pytest.mark.slow
def test_random_groups_are_significant_in_5_of_100(direction: str, many: int) -> None:
    # sets apart, in a space that is stretched along where they are: against random directions the
    # centroid direction of random groups is special in far more than 5 of 100, so that it has no
    # such test
    hits = np.zeros(2)
    n_against_random = 0
    for seed in range(many):
        facts = plant_association(
            np.random.default_rng(seed), shift=0.0, n=15, bootstrap_seed=seed
        )
        users, items = (np.array(vectors) for vectors in vars(facts.embeddings).values())
        users[:, 0] *= 3
        items[:15, 0] += 1
        facts = replace(facts, embeddings=Embeddings(users, items), n_bootstrap=2)
        main = measure(facts, direction, permutations=99, refits=19)[0]
        hits += [contrast.p <= 0.05 for contrast in main.contrasts]
        gap = np.subtract(*(rows.mean(axis=0) for rows in np.split(normalize_rows(items), 2)))
        cosine = float(normalize_vector(gap) @ main.axes[direction])
        n_against_random += compute_cosine_tail(cosine, gap.size) <= 0.05
    assert hits[1] <= 0.05 * many + 3.2 * math.sqrt(0.05 * 0.95 * many)
    if direction == "centroid":
        assert n_against_random > hits[1] + 0.05 * many


@pytest.mark.parametrize(("shift", "n"), [(0.15, 50), (0.15, 200), (0.5, 50)])
def test_the_interval_holds_what_other_users_would_show(shift: float, n: int) -> None:
    # users lie ``shift``, items 0.3 to either side: along the direction of all users there could
    # be, the sets lie 2 c apart, c the mean cosine of E; with few users the direction is chance
    many = np.random.default_rng(0).standard_normal((1_000_000, 8))
    many[:, 0] += 0.3
    c = float((many[:, 0] / np.linalg.norm(many, axis=1)).mean())
    holds = np.zeros(3)
    for seed in range(60):
        rng = np.random.default_rng(seed)
        users, items = rng.standard_normal((2 * n, 8)), rng.standard_normal((400, 8))
        for vectors, far in ((users, shift), (items, 0.3)):
            vectors[:, 0] += np.repeat([far, -far], len(vectors) // 2)
        facts = make_vectors(
            users,
            items,
            gender=["F"] * n + ["M"] * n,
            genres=["Romance"] * 200 + ["Action"] * 200,
            bootstrap_seed=seed,
        )
        for index, (measurement, value) in enumerate(
            zip(measure(facts, permutations=1), (2 * c, c, -c), strict=True)
        ):
            holds[index] += measurement.ci_low <= value <= measurement.ci_high
    assert (holds >= 52).all()  # 57 of 60 are expected, with a standard deviation of 1.7


def test_groups_of_the_same_vectors_leave_it_undefined() -> None:
    with collect_warnings() as notes:
        measurements = measure(make_vectors(users=[[1.0, 2.0]] * 4))
    assert [math.isnan(measurement.value) for measurement in measurements] == [True] * 3
    assert [(measurement.n, measurement.undefined) for measurement in measurements] == [
        (0, 5),
        (0, 2),
        (0, 3),
    ]
    assert measurements[0].contrasts == ()
    assert "no centroid direction" in notes[0]


@given(st.integers(0, 10**6))
def test_the_sign_follows_the_sides_and_lengths_and_rotations_do_not_matter(seed: int) -> None:
    rng = np.random.default_rng(seed)
    facts = plant_association(rng, shift=0.6, n=4, d=3, n_bootstrap=2)
    users, items = (np.asarray(vectors, float) for vectors in vars(facts.embeddings).values())

    def measure_value(groups: Any = GENDER, targets: Any = GENRES, **fields: Any) -> float:
        world = replace(facts, **fields)
        metric = RRipa(groups=groups, targets=targets, permutations=1)
        return metric.measure(world)[0].value

    def make_embeddings(users: Any, items: Any) -> Embeddings:
        return Embeddings(users.astype("f4"), items.astype("f4"))

    first = measure_value()
    assert measure_value(replace(GENDER, a="M", b="F")) == pytest.approx(-first)
    assert measure_value(targets=replace(GENRES, e="Action", p="Romance")) == pytest.approx(-first)
    longer = items * rng.uniform(0.1, 10, (len(items), 1))
    assert measure_value(embeddings=make_embeddings(3 * users, longer)) == pytest.approx(
        first, abs=1e-4
    )
    turn = np.linalg.qr(rng.standard_normal((3, 3)))[0]
    assert measure_value(embeddings=make_embeddings(users @ turn, items @ turn)) == pytest.approx(
        first, abs=1e-4
    )
    order = np.r_[rng.permutation(4), 4 + rng.permutation(4)]
    assert measure_value(embeddings=make_embeddings(users[order], items[order])) == pytest.approx(
        first, abs=1e-6
    )


@pytest.mark.usefixtures("stage_warnings")
@pytest.mark.real_data
@pytest.mark.parametrize("model", ["PureSVD", "ALS"])
def test_gender_on_movielens(real_data: Path, model: str) -> None:
    from support.worlds.real_vectors import load_movielens_vectors

    facts = load_movielens_vectors(real_data, model)
    for direction in ("centroid", "svc"):
        targets, groups = measure(facts, direction, refits=39)[0].contrasts
        assert targets.effect_size > 1.2
        assert targets.p == 1 / 501
        assert groups.p == (1 / 501 if direction == "centroid" else 1 / 40)
    at_random = measure(facts, "random")[0].contrasts
    assert at_random[0].effect_size < 1.0
    assert at_random[1].p == 1.0
    assert at_random[2].p > 0.05


@pytest.mark.usefixtures("stage_warnings")
def test_given_pairs_have_an_interval_and_one_test(tmp_path: Path) -> None:
    facts = plant_association(np.random.default_rng(3), shift=1.0)
    pairs = tmp_path / "pairs.csv"
    rows = [f"u{number},u{number + 60}" for number in range(60)]
    pairs.write_text("\n".join(["a,b", *rows, ""]), encoding="utf-8")
    metric = RRipa(
        groups=GENDER, targets=GENRES, direction_="pca", pairs=pairs, permutations=99, refits=30
    )
    (main, *_) = metric.measure(facts)
    assert main.ci_low < main.value < main.ci_high
    assert [test.between for test in main.contrasts] == ["targets"]
