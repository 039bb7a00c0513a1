from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from recbias.core.errors import MissingFile, NothingLeft
from recbias.core.evidence import Evidence
from recbias.metrics.embeddings.directions import DirectionSimilarity
from support.worlds.vector_worlds import GENDER, make_vectors, plant_association


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
