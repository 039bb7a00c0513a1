from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from recbias.config.settings import Builder
from recbias.core.context import collect_warnings
from recbias.core.errors import BrokenContract, MissingEvidence, UnknownColumn, UserError
from recbias.core.evidence import Evidence
from recbias.core.measures import Measurement
from recbias.formats.yaml import Document
from recbias.metrics.embeddings.association import DEAA, EAA, GEAA, RRipa
from recbias.metrics.embeddings.classification import AttributeClassification
from recbias.metrics.embeddings.sets import (
    GroupPair,
    TargetPair,
    select_groups_and_targets,
    select_members,
    select_sets,
)
from support.worlds.small_worlds import make_interactions
from support.worlds.vector_worlds import (
    GENDER,
    GENRES,
    USERS,
    make_vectors,
    plant_association,
    remove_evidence,
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
    assert (test.mean_a, test.mean_b) == pytest.approx((1.2, 0.0))
    assert (test.difference, test.statistic) == pytest.approx((1.2, 1.2))
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
    for seed in range(150):
        facts = plant_association(
            np.random.default_rng(seed), shift=0.5, n=60, bootstrap_seed=seed
        )
        main = EAA(groups=GENDER, targets=GENRES, permutations=1).measure(facts)[0]
        holds += main.ci_low <= 4 * c * c <= main.ci_high
    # 142.5 of 150 are expected, with a standard deviation of 2.7
    assert 133 <= holds <= 149


def test_it_is_the_effect_of_weat(rng: np.random.Generator) -> None:
    from scipy.spatial.distance import cdist

    facts = plant_association(rng, shift=0.3, n=9)
    users, items = facts.embeddings.users, facts.embeddings.items
    cosines = 1.0 - cdist(np.asarray(items, float), np.asarray(users, float), "cosine")
    values = cosines[:, :9].mean(axis=1) - cosines[:, 9:].mean(axis=1)
    measurements = measure(DEAA, facts)
    assert measurements[""].value == pytest.approx(values[:9].sum() - values[9:].sum(), rel=1e-6)
    expected = (values[:9].mean() - values[9:].mean()) / values.std(ddof=1)
    assert measurements[""].contrasts[0].effect_size == pytest.approx(expected, rel=1e-6)


def test_users_as_targets() -> None:
    groups = replace(GENDER, of="items", attribute="genres", a="Romance", b="Action")
    targets = replace(GENRES, of="users", attribute="gender", e="F", p="M")
    metric = EAA(groups=groups, targets=targets)
    assert metric.needs_now() == {"embeddings", "users", "items"}
    # mean of Romance (0.5, 0.5), of Action (-0.4, -1.8) / 3: EAA(x, y) = 1.9/3 x + 1.1 y
    units = metric.measure(make_vectors())[1].units
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


BOTH = ("Romance|Action", "Romance", "Romance", "Action", "Comedy|Action")


def select_codes(pair: Any, **facts: Any) -> list[list[int]]:
    return [members.tolist() for members in select_members(make_vectors(**facts), pair)]


def test_what_is_in_both_sets_is_left_out_or_in_both() -> None:
    assert select_codes(GENRES, genres=BOTH) == [[1, 2], [3, 4]]
    assert select_codes(replace(GENRES, exclusive=False), genres=BOTH) == [[0, 1, 2], [0, 3, 4]]


def test_groups_may_be_of_items_and_targets_of_users() -> None:
    groups = GroupPair(of="items", attribute="genres", a="Romance", b="Action")
    targets = TargetPair(of="users", attribute="gender", e="F", p="M")
    (a, _), (e, _) = select_groups_and_targets(make_vectors(), groups, targets)
    assert (a.name, a.unit, a.ids.tolist()) == ("genres=Romance", "item", ["i0", "i1"])
    assert (e.name, e.unit, e.ids.tolist()) == ("gender=F", "user", ["u0", "u1"])


@pytest.mark.parametrize("lacking", [[0.0, 0.0], [np.nan, np.nan], [np.inf, 1.0]])
def test_who_has_no_vector_is_left_out_and_counted(lacking: list[float]) -> None:
    users = [*USERS, lacking]
    with collect_warnings() as notes:
        first, _ = select_sets(make_vectors(users, gender=["F", "F", "M", "M", "F"]), GENDER)
    assert first.codes.tolist() == [0, 1]
    assert (len(first), first.n_excluded) == (2, 1)
    why = "have no vector, or a vector of 0: excluded"
    assert notes == [f"the metric: 1 of the 3 users of gender=F {why}"]
    figure = first.measure_mean(np.array([1.0, 3.0]), target="x")
    assert (figure.value, figure.n, figure.undefined) == (2.0, 2, 1)
    assert figure.units.ids.tolist() == ["u0", "u1", "u4"]
    np.testing.assert_array_equal(figure.units.values, [1.0, 3.0, np.nan])


def catch_refusal(pair: Any, **facts: Any) -> UserError:
    with pytest.raises(UserError) as caught:
        select_sets(make_vectors(**facts), pair)
    return caught.value


def test_an_unknown_attribute_is_named_with_the_nearest() -> None:
    error = catch_refusal(replace(GENDER, attribute="gendre"))
    assert isinstance(error, UnknownColumn)
    assert (error.where, error.remedy) == ("groups", "did you mean gender?")


@pytest.mark.usefixtures("stage_warnings")
def test_a_group_with_one_vector_is_refused() -> None:
    users = [[1.0, 0.0], [0.0, 0.0], [0.0, 2.0], [-1.0, 0.0]]
    error = catch_refusal(GENDER, users=users)
    assert error.message == "1 of the users has gender=F and a vector that is not 0"


@pytest.mark.parametrize("lacking", ["users", "embeddings"])
def test_missing_evidence_is_said(lacking: str) -> None:
    with pytest.raises(MissingEvidence, match=lacking):
        select_sets(remove_evidence(make_vectors(), lacking), GENDER)


def test_two_spaces_are_refused() -> None:
    facts = make_vectors(items=[[1.0, 2.0, 3.0]] * 5)
    with pytest.raises(BrokenContract, match="users have 2 dimensions, those of items 3"):
        select_groups_and_targets(facts, GENDER, GENRES)


@pytest.mark.parametrize(
    ("changed", "fault"),
    [
        ({"of": "films"}, "groups.of: must be one of users, items, found 'films'"),
        ({"b": "F"}, "groups.b: both sets are 'F'"),
        ({"c": "X"}, "groups.c: not a setting of R-RIPA.groups"),
        ({"a": 1}, "groups.a: must be text, found 1"),
    ],
)
def test_a_wrong_group_has_its_place(changed: dict[str, Any], fault: str) -> None:
    groups = {"of": "users", "attribute": "gender", "a": "F", "b": "M", **changed}
    builder = Builder(Document({}), "R-RIPA")
    targets = {"attribute": "genres", "e": "Romance", "p": "Action"}
    assert builder.build(RRipa, {"groups": groups, "targets": targets}, ()) is None
    assert [str(error) for _, error in builder.document.faults] == [fault]


METRIC = AttributeClassification(groups=GENDER, targets=GENRES)

WOMEN, MEN = [[5.0, 0.0]] * 4, [[-5.0, 0.0]] * 4
FILMS = [[1.0, 0.0], [1.0, 1.0], [-1.0, 0.0], [-1.0, 0.0], [1.0, 0.0], [-1.0, 2.0]]
KINDS = ["Romance", "Romance", "Romance", "Action", "Action", None]


def make_world(**fields: Any) -> Evidence:
    """Four women at (5, 0) and four men at (-5, 0): the plane is x = 0."""
    # item 0: F, F; item 1: F, M; item 2: M, M; item 3: M; item 4: F; item 5: nobody
    pairs = [(0, 0), (1, 0), (2, 1), (4, 1), (5, 2), (6, 2), (7, 3), (3, 4)]
    facts: dict[str, Any] = {
        "gender": ["F"] * 4 + ["M"] * 4,
        "genres": KINDS,
        "train": make_interactions(pairs, n_users=8, n_items=6),
    }
    return make_vectors([*WOMEN, *MEN], FILMS, **(facts | fields))


def measure_of_attribute_classification(
    metric: Any, facts: Evidence
) -> dict[tuple[str, str], Measurement]:
    return {
        (measurement.group, measurement.target): measurement
        for measurement in metric.measure(facts)
    }


def test_precision_recall_and_f1_by_hand() -> None:
    # said F: both Romance at x = 1, one Action; said M: one Romance, one Action
    measurements = measure_of_attribute_classification(METRIC, make_world())
    expected = {
        ("gender=F", "precision of genres=Romance"): 2 / 3,
        ("gender=F", "recall of genres=Romance"): 2 / 3,
        ("gender=F", "F1 of genres=Romance"): 2 / 3,
        ("gender=M", "precision of genres=Action"): 1 / 2,
        ("gender=M", "recall of genres=Action"): 1 / 2,
        ("gender=M", "F1 of genres=Action"): 1 / 2,
    }
    assert {key: measurements[key].value for key in expected} == pytest.approx(expected)
    recall = measurements["gender=F", "recall of genres=Romance"].units
    assert recall.values.tolist() == [1.0, 1.0, 0.0]
    assert measurements["gender=F", "F1 of genres=Romance"].replicates is not None


@pytest.mark.usefixtures("stage_warnings")
def test_they_are_those_of_scikit_learn() -> None:
    from sklearn.metrics import precision_recall_fscore_support

    facts = plant_association(
        np.random.default_rng(1),
        shift=0.7,
        train=make_interactions([(0, 0)], n_users=120, n_items=120),
    )
    measurements = measure_of_attribute_classification(METRIC, facts)
    hits = [
        measurements["gender=F", "recall of genres=Romance"],
        measurements["gender=M", "recall of genres=Action"],
    ]
    right = np.concatenate([measurement.units.values for measurement in hits if measurement.units])
    truth = np.repeat([1, 0], 60)
    predicted = np.where(right == 1, truth, 1 - truth)
    precision, recall, f1, _ = precision_recall_fscore_support(truth, predicted, labels=[1, 0])
    for index, (group, kind) in enumerate((("F", "Romance"), ("M", "Action"))):
        for name, expected in (("precision", precision), ("recall", recall), ("F1", f1)):
            figure = measurements[f"gender={group}", f"{name} of genres={kind}"]
            assert figure.value == pytest.approx(expected[index])
            assert figure.ci_low < figure.value < figure.ci_high


def test_the_deciles_by_hand() -> None:
    # audiences: item 0 and 4 all F, item 1 half, items 2 and 3 none; said F: 0, 1 and 4
    measurements = measure_of_attribute_classification(METRIC, make_world())
    deciles = {
        target: (figure.value, figure.n)
        for (group, target), figure in measurements.items()
        if target.startswith("predicted") and group == "gender=F" and figure.n
    }
    assert deciles == {
        "predicted at 0-10% gender=F": (0.0, 2),
        "predicted at 50-60% gender=F": (1.0, 1),
        "predicted at 90-100% gender=F": (1.0, 2),
    }
    empty = measurements["gender=F", "predicted at 20-30% gender=F"]
    assert math.isnan(empty.value)
    assert (empty.n, empty.undefined) == (0, 0)


def test_the_favourites_tell_users_apart() -> None:
    # women have items 0, 0, 1, 4: all at x = 1; men 1, 2, 2, 3: one of them at x = 1
    figure = measure_of_attribute_classification(METRIC, make_world())[
        "", "accuracy from top 3 items"
    ]
    assert figure.n == 2
    assert figure.value >= 0.5
    assert figure.units.unit == "user"


def test_precision_of_what_is_said_of_none() -> None:
    items = [[1.0, 0.0]] * 6
    with collect_warnings() as notes:
        measurements = measure_of_attribute_classification(
            METRIC,
            replace(
                make_world(),
                embeddings=make_vectors(
                    [*WOMEN, *MEN], items, gender=["F"] * 8, genres=KINDS
                ).embeddings,
            ),
        )
    figure = measurements["gender=M", "precision of genres=Action"]
    assert math.isnan(figure.value)
    assert (figure.n, figure.undefined) == (0, 5)
    assert measurements["gender=M", "F1 of genres=Action"].value == 0.0
    assert "is classified as one group" in notes[0]


@pytest.mark.usefixtures("stage_warnings")
def test_lengths_can_be_taken_away() -> None:
    # an intercept learned on users 100 long hides what items 1 long are
    rng = np.random.default_rng(5)
    users = np.concatenate([[[100.0, 90.0]] * 50, [[100.0, 110.0]] * 50]) + rng.normal(
        0, 5, (100, 2)
    )
    facts = make_vectors(
        users,
        [[0.8, 0.6], [0.9, 0.7], [0.6, 0.8], [0.7, 0.9]],
        gender=["F"] * 50 + ["M"] * 50,
        genres=["Romance", "Romance", "Action", "Action"],
        train=make_interactions([(0, 0)], n_users=100, n_items=4),
    )
    measurements = measure_of_attribute_classification(replace(METRIC, lengths="unit"), facts)
    assert measurements["gender=F", "recall of genres=Romance"].value == 1.0
    assert measurements["gender=M", "recall of genres=Action"].value == 1.0


@pytest.mark.usefixtures("stage_warnings")
def test_a_planted_shift_has_its_accuracy() -> None:
    # Φ(1) = 0.841 is what the best plane reaches
    facts = plant_association(
        np.random.default_rng(1),
        shift=1.0,
        n=2000,
        train=make_interactions([(0, 0)], n_users=4000, n_items=4000),
    )
    measurements = measure_of_attribute_classification(METRIC, facts)
    assert measurements["", "accuracy"].value == pytest.approx(0.841, abs=0.03)
    assert measurements["gender=F", "recall of genres=Romance"].value == pytest.approx(
        0.841, abs=0.03
    )
    few = measure_of_attribute_classification(replace(METRIC, direction_="csvc", top_n=200), facts)
    assert few["", "training accuracy"].n == 400
    assert few["", "accuracy"].value == pytest.approx(0.841, abs=0.03)
    assert few["", "training accuracy"].value > 0.95


@pytest.mark.usefixtures("stage_warnings")
@pytest.mark.real_data
def test_gender_on_movielens_of_attribute_classification(real_data: Path) -> None:
    from support.worlds.real_vectors import load_movielens_vectors

    metric = replace(METRIC, sample=1600, lengths="unit")
    measurements = measure_of_attribute_classification(
        metric, load_movielens_vectors(real_data, "ALS")
    )
    assert measurements["", "accuracy"].value > 0.7
    assert measurements["gender=F", "F1 of genres=Romance"].value > 0.8
    shares = [
        measurements["gender=F", f"predicted at {10 * decile}-{10 * decile + 10}% gender=F"].value
        for decile in range(6)
    ]
    assert shares[0] < 0.2
    assert shares[-1] > 0.9


def test_predictions_of_both_sets_and_their_test_by_hand() -> None:
    # Romance at x = 1, 1, -1: said F, F, M; Action at x = -1, 1: said M, F
    measurements = measure_of_attribute_classification(METRIC, make_world())
    predictions = measurements["gender=F", "predictions for genres=Romance and genres=Action"]
    assert (predictions.value, predictions.n) == (3 / 5, 5)
    units = dict(zip(predictions.units.ids, predictions.units.values, strict=True))
    assert units == {"i0": 1.0, "i1": 1.0, "i2": 0.0, "i3": 0.0, "i4": 1.0}
    accuracy = measurements["", "accuracy of genres=Romance and genres=Action"]
    assert (accuracy.value, accuracy.n) == (3 / 5, 5)
    (test,) = accuracy.contrasts
    assert (test.between, test.a, test.b) == ("targets", "genres=Romance", "genres=Action")
    # correct: 1, 1, 0 against 1, 0: U = 2 x (1/2 + 1) + (0 + 1/2) = 3.5 of 6
    assert (test.test, test.statistic) == ("rank_sum", 3.5)
    assert test.effect_size == pytest.approx(2 * 3.5 / 6 - 1)
