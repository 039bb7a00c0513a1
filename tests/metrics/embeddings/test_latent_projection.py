from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from recbias.core.context import collect_warnings
from recbias.core.errors import NothingLeft
from recbias.core.evidence import Embeddings, Evidence
from recbias.metrics.embeddings.association import LatentProjection
from support.worlds.vector_worlds import GENDER, GENRES, make_vectors, plant_association

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


def test_only_the_most_aligned_are_fitted_and_shown() -> None:
    facts = plant_association(np.random.default_rng(1), shift=1.0)
    measurements = replace(METRIC, top_n=7).measure(facts)
    assert [measurement.n for measurement in measurements] == [*[7, 7, 60, 60] * 2, 120]
    assert [measurement.undefined for measurement in measurements] == [*[53, 53, 0, 0] * 2, 0]
    f, m, romance, action = measurements[:4]
    assert f.value > m.value
    assert romance.value > action.value


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


@pytest.mark.usefixtures("stage_warnings")
def test_the_units_are_named() -> None:
    facts = make_vectors(
        users=CROSS,
        items=[[0.0, 0.0], *[[1.0, 1.0]] * 5],
        genres=["Romance", "Romance", "Romance", "Action", "Action", None],
    )
    f, _, romance, *_ = METRIC.measure(facts)
    assert f.units is not None
    assert romance.units is not None
    assert (f.units.unit, sorted(f.units.ids)) == ("user", ["u0", "u1"])
    assert romance.units.ids.tolist() == ["i0", "i1", "i2"]
    assert (romance.n, romance.undefined) == (2, 1)


def test_vectors_that_do_not_span_a_plane() -> None:
    with collect_warnings() as notes:
        measurements = METRIC.measure(
            make_vectors(users=[[1.0, 1.0], [2.0, 2.0], [3.0, 3.0], [5.0, 5.0]])
        )
    assert notes == ["the metric: the vectors of the groups span only 1 dimension(s)"]
    assert [measurement.n for measurement in measurements] == [2, 2, 2, 3, 0, 0, 0, 0, 4]


def test_bad_input_is_found_early() -> None:
    facts = replace(make_vectors(), embeddings=None)
    METRIC.check(facts)
    with pytest.raises(NothingLeft, match="genres=Western"):
        replace(METRIC, targets=replace(GENRES, e="Western")).check(facts)
    assert METRIC.needs_now() == {"embeddings", "users", "items"}


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


def test_the_sign_of_a_component_does_not_count() -> None:
    # chosen by the other model: u0 and u2, which differ by (-2, 0.5); the centroid is (9, 0.25)
    facts = make_vectors(users=[[-1.0, 0.5], [10.0, 0.0], [1.0, 0.0], [-10.0, 0.0]])
    chooser = make_vectors(users=[[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]]).embeddings
    with collect_warnings():
        *_, cosine = replace(METRIC, top_n=1).measure(replace(facts, choosing_embeddings=chooser))
    lengths = math.hypot(2.0, 0.5) * math.hypot(9.0, 0.25)
    assert cosine.value == pytest.approx((18.0 - 0.125) / lengths, abs=1e-6)


def test_members_are_chosen_in_another_model() -> None:
    # of the women u0 to u2 and the men u3 to u5, the other model has u1 and u4 farthest apart
    users = [[4.0, 1.0], [3.0, 2.0], [2.0, 3.0], [-4.0, 1.0], [-3.0, 2.0], [-2.0, 3.0]]
    others = [[1.0, 1.0], [1.0, 0.0], [0.5, 1.0], [-1.0, 1.0], [-1.0, 0.0], [-0.5, 1.0]]
    facts = make_vectors(users=users, gender=["F"] * 3 + ["M"] * 3)
    chooser = make_vectors(users=others, gender=["F"] * 3 + ["M"] * 3).embeddings

    def list_chosen(facts: Evidence) -> list[str]:
        women, men, *_ = replace(METRIC, top_n=1).measure(facts)
        return [
            group.units.ids[~np.isnan(group.units.values)].item()
            for group in (women, men)
            if group.units
        ]

    with collect_warnings():
        assert list_chosen(facts) == ["u0", "u3"]
        assert list_chosen(replace(facts, choosing_embeddings=chooser)) == ["u1", "u4"]


def test_members_without_a_vector_in_the_other_model_are_excluded() -> None:
    facts = make_vectors(users=[*CROSS, [9.0, 0.0]], gender=["F", "F", "M", "M", "F"])
    chooser = Embeddings(np.array([*CROSS, [0.0, 0.0]], dtype=np.float32), None)
    with collect_warnings() as notes:
        women, *_ = METRIC.measure(replace(facts, choosing_embeddings=chooser))
    assert (women.n, women.undefined) == (2, 1)
    message = "1 of the 3 users of gender=F have no vector, or a vector of 0: excluded"
    assert notes == [f"the metric: {message}"]
