from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from recbias.core.context import collect_warnings
from recbias.core.dataset import FloatArray
from recbias.core.errors import BrokenContract, MissingFile, NothingLeft
from recbias.core.evidence import Evidence
from recbias.core.measures import Contrast, Measurement
from recbias.metrics.embeddings.association import LatentProjection, RRipa
from recbias.metrics.embeddings.directions import (
    DirectionChecks,
    DirectionEstimator,
    DirectionSimilarity,
    ResampledDirections,
    estimate_stretch,
    find_direction,
    read_direction,
)
from recbias.metrics.embeddings.sets import select_sets
from support.worlds.vector_worlds import GENDER, GENRES, make_vectors, plant_association

# direction (2.5, 1) / sqrt(7.25); its cosines, times sqrt(7.25), with
# Romance (1, 0), (0, 1): 2.5, 1; Action (-1, 0), (0.6, -0.8), (0, -1): -2.5, 0.7, -1
COSINES = np.array([2.5, 1.0, -2.5, 0.7, -1.0]) / math.sqrt(7.25)


def measure(facts: Evidence, direction: Any = "centroid", **settings: Any) -> list[Measurement]:
    metric = RRipa(
        groups=GENDER, targets=GENRES, direction_=direction, **{"permutations": 500, **settings}
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
    for seed in range(150):
        facts = plant_association(
            np.random.default_rng(seed), shift=0.5, n=40, bootstrap_seed=seed
        )
        main = measure(facts, tmp_path / "x.npy", permutations=1)[0]
        holds += main.ci_low <= planted_value <= main.ci_high
    # 142.5 of 150 are expected, with a standard deviation of 2.7
    assert 133 <= holds <= 149


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


def find_axis(choice: Any, facts: Any = None, **settings: Any) -> FloatArray:
    world = make_vectors() if facts is None else facts
    return find_direction(choice, select_sets(world, GENDER), world, **settings)


def test_the_centroid_direction_by_hand() -> None:
    # (2, 2) - (-0.5, 1) = (2.5, 1)
    np.testing.assert_allclose(find_axis("centroid"), np.array([2.5, 1.0]) / np.sqrt(7.25))


@pytest.mark.parametrize("choice", ["centroid", "svc", "csvc", "pca"])
def test_the_planted_direction_is_found(choice: str) -> None:
    facts = plant_association(np.random.default_rng(4), shift=1.5, n=500)
    assert find_axis(choice, facts)[0] > 0.93


def test_the_mean_of_the_differences_is_the_centroid_difference() -> None:
    # without it, what is left of the differences of pairs is alike in all directions
    facts = plant_association(np.random.default_rng(4), shift=1.5, n=500)
    assert find_axis("pca", facts)[0] > 0.93
    assert abs(find_axis("pca_centred", facts)[0]) < 0.8


def test_a_vector_of_another_space(tmp_path: Path) -> None:
    np.save(tmp_path / "v.npy", np.ones(3, dtype=np.int64))
    assert read_direction(tmp_path / "v.npy").tolist() == [1.0, 1.0, 1.0]
    with pytest.raises(BrokenContract, match="3 dimensions, but those of the model have 2"):
        find_axis(tmp_path / "v.npy")


def measure_of_direction_checks(
    facts: Evidence, *directions: Any, **settings: Any
) -> list[Measurement]:
    chosen = directions or ("centroid",)
    return list(DirectionChecks(groups=GENDER, directions=chosen, **settings).measure(facts))


def name_tests(facts: Evidence, *directions: Any) -> dict[str, Contrast]:
    return {
        f"{contrast.test} {figure.group} {contrast.a} {contrast.b}".replace("  ", " "): contrast
        for figure in measure_of_direction_checks(facts, *directions, repeats=25)
        for contrast in figure.contrasts
    }


def test_the_cosines_by_hand() -> None:
    # whichever one woman and man it is found from, it is (3, 2) / sqrt(13)
    # the others lie at (0.6, 0.8) and (0, 1): cosines 3.4 and 2, by sqrt(13)
    apart, f, m = measure_of_direction_checks(
        make_vectors(users=[[3.0, 4.0], [3.0, 4.0], [0.0, 2.0], [0.0, 2.0]])
    )
    root = math.sqrt(13)
    assert (f.value, m.value) == pytest.approx((3.4 / root, 2 / root))
    assert apart.value == pytest.approx(1.4 / root)
    assert [
        (measurement.group, measurement.target, measurement.n) for measurement in (apart, f, m)
    ] == [("", "centroid", 2), ("gender=F", "centroid", 1), ("gender=M", "centroid", 1)]
    assert apart.contrasts == ()  # one of each is no test
    assert f.units.unit == "user"


def test_its_tests_are_those_of_scipy() -> None:
    from scipy.stats import mannwhitneyu, ttest_ind

    apart, f, m = measure_of_direction_checks(
        plant_association(np.random.default_rng(2), shift=0.3, n=20)
    )
    a, b = f.units.values, m.units.values
    welch, ranks = apart.contrasts
    expected = ttest_ind(a, b, equal_var=False)
    assert (welch.test, ranks.test) == ("welch_t", "rank_sum")
    assert {(test.a, test.b) for test in apart.contrasts} == {("gender=F", "gender=M")}
    assert welch.statistic == pytest.approx(expected.statistic)
    assert welch.p == pytest.approx(expected.pvalue)
    assert ranks.p == pytest.approx(mannwhitneyu(a, b, method="asymptotic").pvalue)
    assert ranks.effect_size == pytest.approx(np.sign(np.subtract.outer(a, b)).mean())


def test_a_planted_direction_passes_all_three() -> None:
    contrasts = name_tests(plant_association(np.random.default_rng(2), shift=1.0, n=200))
    assert len(contrasts) == 10
    assert all(contrast.p < 0.0033 for contrast in contrasts.values())


@pytest.mark.parametrize("direction", ["centroid", "csvc"])
@pytest.mark.slow
def test_groups_dealt_out_at_random_pass_the_first_check_in_5_of_100(direction: str) -> None:
    # found from the members that it is tested on, a direction tells them apart in most draws
    hits, many = 0, 200
    for seed in range(many):
        facts = plant_association(
            np.random.default_rng(seed), shift=0.0, n=40, d=16, bootstrap_seed=seed
        )
        hits += measure_of_direction_checks(facts, direction, repeats=1)[0].contrasts[0].p <= 0.05
    # 10 of 200 are expected, with a standard deviation of 3.1
    assert 2 <= hits <= 20


def test_a_half_without_vectors_has_no_direction() -> None:
    users = np.zeros((40, 2))
    users[[0, 1, 20, 21]] = 1.0
    facts = make_vectors(users, gender=["F"] * 20 + ["M"] * 20)
    seen: set[str] = set()
    for seed in range(20):
        with collect_warnings() as notes:
            measurements = measure_of_direction_checks(
                replace(facts, bootstrap_seed=seed), repeats=1
            )
        assert math.isnan(measurements[0].value)
        seen.update(note.split(": ")[1] for note in notes)
    assert "no direction, because no member in a half of a group has a vector" in seen


def test_the_median_of_the_draws_is_given() -> None:
    facts = plant_association(np.random.default_rng(2), shift=0.3, n=20)
    once = {
        seed: measure_of_direction_checks(replace(facts, bootstrap_seed=seed), repeats=1)[1]
        .contrasts[0]
        .p
        for seed in range(60)
    }
    many = measure_of_direction_checks(facts, repeats=101)[1].contrasts[0].p
    assert np.quantile(list(once.values()), 0.2) <= many <= np.quantile(list(once.values()), 0.8)


@pytest.mark.usefixtures("stage_warnings")
def test_all_members_are_tested_as_in_the_paper() -> None:
    facts = plant_association(np.random.default_rng(5), shift=0.4)
    metric = DirectionChecks(groups=GENDER, directions=("centroid",), members="all", repeats=3)
    difference, of_a, of_b = metric.measure(facts)
    a, b = select_sets(facts, GENDER)
    gap = a.vectors.mean(axis=0) - b.vectors.mean(axis=0)
    axis = gap / np.linalg.norm(gap)
    assert of_a.value == pytest.approx(float((a.directions @ axis).mean()))
    assert difference.value == pytest.approx(of_a.value - of_b.value)
    assert difference.n == len(a) + len(b)
    np.testing.assert_allclose(difference.axes["centroid"], axis)
    halves = replace(metric, members="halves").measure(facts)
    assert sum(row.n for row in halves[1:]) == (len(a) + len(b)) // 2


def make_estimator(
    facts: Evidence, choice: Any = "centroid", refits: int = 12
) -> DirectionEstimator:
    return DirectionEstimator(choice, select_sets(facts, GENDER), facts, 20, None, refits)


@pytest.mark.parametrize("choice", ["centroid", "svc", "csvc", "pca"])
def test_samples_lie_around_the_direction(choice: str, rng: np.random.Generator) -> None:
    estimator = make_estimator(
        plant_association(np.random.default_rng(1), shift=1.0, n=300), choice, refits=30
    )
    axis = estimator.estimate()
    axes = estimator.resample(axis, rng).axes
    assert len(axes) == (200 if choice == "centroid" else 10)
    assert np.linalg.norm(axes, axis=1) == pytest.approx(np.ones(len(axes)))
    assert (axes @ axis > (0.0 if choice == "csvc" else 0.9)).all()  # it learns from 40
    assert (axes @ axis < 1.0 - 1e-9).all()


@pytest.mark.parametrize("choice", ["centroid", "svc", "pca"])
def test_a_planted_direction_is_none_of_random_groups(
    choice: str, rng: np.random.Generator
) -> None:
    estimator = make_estimator(plant_association(np.random.default_rng(1), shift=1.0), choice)
    assert estimator.compute_p_value(np.eye(8)[0], 12, rng) == 1 / 13
    assert estimator.compute_p_value(np.eye(8)[1], 12, rng) > 1 / 13


def test_the_excess_by_hand() -> None:
    # squares 4 and 9; variances of (2, 3) and (0, 0): 0.5; 4 / (4 - 1) and 9 / (9 - 1)
    stretch = estimate_stretch(np.array([[2.0, 0.0], [3.0, 0.0]]))
    assert stretch.tolist() == pytest.approx([math.sqrt(4 / 3), math.sqrt(9 / 8)])
    # chance alone: squares 1, variances of (1, -1): 2
    assert estimate_stretch(np.array([[1.0], [-1.0]])).tolist() == [math.inf, math.inf]
    assert estimate_stretch(np.array([[1.0]])).tolist() == [1.0]


def test_an_unknown_direction_has_the_widest_interval() -> None:
    # the mean vector has length 5: no direction is farther from it
    axes, means = np.array([[1.0, 0.0]] * 4), np.array([[3.0, 4.0]] * 4)
    assert ResampledDirections(axes, np.full(4, np.inf)).compute_interval(3.0, means) == (
        -5.0,
        5.0,
    )
    assert ResampledDirections(axes, np.ones(4)).compute_interval(3.0, means) == (3.0, 3.0)
    assert ResampledDirections(axes, np.full(4, 9.0)).compute_interval(3.0, means) == (5.0, 5.0)
    assert ResampledDirections(axes).compute_interval(3.0, means) is None
    assert ResampledDirections(np.full((4, 2), np.nan), np.ones(4)).compute_interval(
        3.0, means
    ) == (-5.0, 5.0)


def test_an_estimate_has_both_ends_of_the_interval_of_its_direction() -> None:
    # samples 1, 2, 3 and 4: quantiles 0.025 and 0.975 are 1 + 0.075 and 4 - 0.075
    means = np.array([[1.0, 0.0], [2.0, 0.0], [3.0, 0.0], [4.0, 0.0]])
    known = ResampledDirections(np.array([[1.0, 0.0]] * 4), np.ones(4))
    row = known.add_interval(Measurement(2.5, 4, 0), means)
    assert (row.value, row.ci_low, row.ci_high) == pytest.approx((2.5, 1.075, 3.925))


def test_the_interval_is_corrected_by_the_agreement_of_the_directions() -> None:
    # the samples are 1 and 2: se = √½; x / c = 3 / 0.6 = 5; t(0.975; 1) = 12.7062
    axes, means = np.eye(2), np.array([[1.0, 0.0], [0.0, 2.0]])
    low, high = ResampledDirections(axes, agreement=0.6).compute_interval(3.0, means) or (0, 0)
    half_width = 12.7062 * np.sqrt(0.5 / 0.36 + 4.0)
    assert (low, high) == pytest.approx((5.0 - half_width, 5.0 + half_width), abs=1e-3)
    assert ResampledDirections(axes, agreement=0.6).compute_interval(3.0, means[:1]) is None
    chosen = ResampledDirections(axes, agreement=0.6, choice="csvc")
    half_width = 12.7062 * np.sqrt(0.5 / 0.36 + (3 / 0.36 - 3) ** 2)
    ends = chosen.compute_interval(3.0, means)
    assert ends == pytest.approx((5.0 - half_width, 5.0 + half_width), abs=1e-3)
    component = ResampledDirections(axes, agreement=0.6, choice="pca")
    for direction, power in ((component, 3), (replace(component, choice="pca_centred"), 2)):
        half_width = 12.7062 * np.sqrt(0.5 + (3 / 0.6**power - 3) ** 2)
        ends = direction.compute_interval(3.0, means)
        assert ends == pytest.approx((3.0 - half_width, 3.0 + half_width), abs=1e-3)
    uncertain = ResampledDirections(axes, agreement=0.49).compute_interval(3.0, means)
    assert np.isnan(uncertain or 0.0).all()


def test_the_agreement_is_the_cosine_with_the_planted_direction() -> None:
    agreements, cosines = [], []
    for seed in range(6):
        facts = plant_association(np.random.default_rng(seed), shift=0.8, n=60, d=8)
        estimator = make_estimator(facts, choice="svc", refits=6)
        axis = estimator.estimate()
        agreements.append(estimator.resample(axis, np.random.default_rng(1)).agreement or 0.0)
        cosines.append(axis[0])
    assert np.mean(agreements) == pytest.approx(np.mean(cosines), abs=0.08)


def test_a_direction_that_is_chance_has_no_interval_and_a_warning() -> None:
    facts = plant_association(np.random.default_rng(0), shift=0.0, n=20, d=60)
    estimator = make_estimator(facts, choice="svc", refits=30)
    axis = estimator.estimate()
    with collect_warnings() as messages:
        directions = estimator.resample(axis, np.random.default_rng(1))
    assert directions.agreement is not None
    assert directions.agreement < 0.5
    assert any("no interval, because the agreement of svc directions" in m for m in messages)


def test_the_cosine_by_hand(tmp_path: Path) -> None:
    # centroid (2.5, 1) / sqrt(7.25), and x
    path = tmp_path / "x.npy"
    np.save(path, np.array([-7.0, 0.0]))
    (measurement,) = DirectionSimilarity(groups=GENDER, directions=("centroid", path)).measure(
        make_vectors()
    )
    assert measurement.target == "centroid vs x.npy"
    assert measurement.value == pytest.approx(2.5 / 7.25**0.5)
    assert (measurement.n, measurement.undefined) == (4, 0)


def test_every_two_are_compared_and_csvc_for_each_number() -> None:
    metric = DirectionSimilarity(
        groups=GENDER, directions=("centroid", "csvc", "pca"), top_n=(10, 40)
    )
    cosines = {
        measurement.target: measurement.value
        for measurement in metric.measure(plant_association(np.random.default_rng(1), shift=1.5))
    }
    assert list(cosines) == [
        "centroid vs csvc 10",
        "centroid vs csvc 40",
        "centroid vs pca",
        "csvc 10 vs csvc 40",
        "csvc 10 vs pca",
        "csvc 40 vs pca",
    ]
    assert all(-1 <= cosine <= 1 for cosine in cosines.values())
    assert cosines["centroid vs pca"] > 0.9


def test_bad_input_is_found_early(tmp_path: Path) -> None:
    facts = replace(make_vectors(), embeddings=None)
    with pytest.raises(NothingLeft, match="gender=X"):
        DirectionSimilarity(groups=replace(GENDER, b="X")).check(facts)
    with pytest.raises(MissingFile):
        DirectionSimilarity(groups=GENDER, directions=("pca", tmp_path / "no.npy")).check(facts)
    assert DirectionSimilarity(groups=GENDER).needs_now() == {"embeddings", "users"}


def test_csvc_is_trained_on_the_members_chosen_in_another_model() -> None:
    rng = np.random.default_rng(1)
    facts = plant_association(rng, shift=0.5)
    metric = DirectionSimilarity(groups=GENDER, directions=("csvc", "svc", "centroid"), top_n=(8,))

    def measure(facts: Evidence) -> dict[str, float]:
        return {estimate.target: estimate.value for estimate in metric.measure(facts)}

    own, same = measure(facts), measure(replace(facts, choosing_embeddings=facts.embeddings))
    other = measure(
        replace(facts, choosing_embeddings=plant_association(rng, shift=0.5).embeddings)
    )
    assert same == own
    assert other["svc vs centroid"] == own["svc vs centroid"]
    assert other["csvc 8 vs centroid"] < own["csvc 8 vs centroid"]


METRIC = LatentProjection(groups=GENDER, targets=GENRES)

# the users (4, 1), (4, -1), (-4, 1), (-4, -1) vary along x most, then along y; their mean is 0
CROSS = [[4.0, 1.0], [4.0, -1.0], [-4.0, 1.0], [-4.0, -1.0]]


def test_the_plane_by_hand() -> None:
    measurements = METRIC.measure(make_vectors(users=CROSS))
    assert [(measurement.target, measurement.group) for measurement in measurements] == [
        (target, group)
        for target in ("PC1", "PC2")
        for group in ("gender=F", "gender=M", "genres=Romance", "genres=Action")
    ] + [("PC1 vs centroid", "")]
    points = [
        measurement.units.values.tolist() for measurement in measurements if measurement.units
    ]
    assert all(measurement.undefined == 0 for measurement in measurements)
    assert [sorted(coordinates) for coordinates in points[:2]] == [
        pytest.approx([4, 4]),
        pytest.approx([-4] * 2),
    ]
    assert points[2] == pytest.approx([2.0, 0.0], abs=1e-6)
    assert points[3] == pytest.approx([-1.0, 0.6, 0.0], abs=1e-6)
    # which way PC2 points is open where both groups have the same mean along it
    assert np.abs(points[6]).tolist() == pytest.approx([0.0, 5.0], abs=1e-6)
    assert np.abs(points[7]).tolist() == pytest.approx([0.0, 0.8, 1.0], abs=1e-6)


def test_the_points_are_those_of_scikit_learn() -> None:
    from sklearn.decomposition import PCA

    facts = plant_association(np.random.default_rng(1), shift=1.0)
    measurements = replace(METRIC, top_n=60).measure(facts)
    users, items = (np.asarray(vectors, float) for vectors in vars(facts.embeddings).values())
    expected = PCA(2).fit(users).transform(items)
    for component, projections in ((0, measurements[2:4]), (1, measurements[6:8])):
        points = np.concatenate(
            [measurement.units.values for measurement in projections if measurement.units]
        )
        assert np.abs(points) == pytest.approx(np.abs(expected[:, component]), rel=1e-5)


def test_the_first_component_is_compared_with_the_centroid_direction() -> None:
    # F (4, 1), (4, -1) and M (-4, 1), (-4, -1): the first component and the centroid are x
    *_, along = METRIC.measure(make_vectors(users=CROSS))
    assert (along.target, along.n) == ("PC1 vs centroid", 4)
    assert along.value == pytest.approx(1.0)
    # F (4, 1), (-4, 1) and M (4, -1), (-4, -1): the component is x, the centroid difference y
    *_, across = METRIC.measure(make_vectors(users=[CROSS[0], CROSS[2], CROSS[1], CROSS[3]]))
    assert across.value == pytest.approx(0.0, abs=1e-6)
    with collect_warnings():
        *_, equal = METRIC.measure(make_vectors(users=[*CROSS[:2], *CROSS[:2]]))
    assert np.isnan(equal.value)  # no centroid difference
    assert equal.undefined == 4
