from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from recbias.core.context import collect_warnings
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
