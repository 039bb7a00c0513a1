from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from recbias.core.context import collect_warnings
from recbias.core.errors import Contradiction, MissingFile, WrongType
from recbias.core.evidence import Evidence, Responses
from recbias.core.measures import Measurement
from recbias.metrics.text import EmbeddingAverage, GreedyMatching
from support.worlds.evidence_worlds import make_user_queries, make_vocabulary

METRICS = (EmbeddingAverage, GreedyMatching)
# "a b" against "a": sums (1, 1) and (1, 0); cosines 1 and 0, then 1
BY_HAND = {EmbeddingAverage: math.sqrt(0.5), GreedyMatching: 0.75}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "vectors.txt"
    path.write_text("a 1 0\nb 0 1\nA -1 0\n茶 1 1\n")
    return path


def make_evidence(texts: list[str], references: list[str | None]) -> Evidence:
    ids = np.array([f"q{row}" for row in range(len(texts))], dtype=object)
    responses = Responses(ids, np.array(texts, dtype=object), np.array(references, dtype=object))
    queries, items = make_user_queries(0), make_vocabulary("i", 0)
    return Evidence(queries, items, responses=responses, metric="it")


def measure_one(metric: Any, evidence: Evidence) -> Measurement:
    (measurement,) = metric.measure(evidence)
    assert isinstance(measurement, Measurement)
    return measurement


@pytest.mark.parametrize("kind", METRICS)
def test_values_equal_those_worked_by_hand(kind: Any, path: Path) -> None:
    evidence = make_evidence(["a b", "b a x", "", "x", "b"], ["a", "a", "a", "b", None])
    with collect_warnings() as notes:
        measurement = measure_one(kind(vectors=path), evidence)
    assert measurement.units is not None
    assert measurement.units.values[:2] == pytest.approx([BY_HAND[kind]] * 2)
    assert np.isnan(measurement.units.values[2:]).all()
    assert (measurement.n, measurement.undefined) == (2, 3)
    assert notes == [
        "it: 1 of 5 responses have no reference",
        "it: 2 of 10 tokens have no vector",
        "it: 2 of 4 responses have no token with a vector",
    ]


@pytest.mark.parametrize("kind", METRICS)
def test_input_embeddings_of_an_encoder_are_used(kind: Any, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    from support.models.small_encoder import write_small_encoder

    folder = str(write_small_encoder(tmp_path / "encoder"))
    metric = kind(encoder=folder)
    assert metric.model_files()
    with collect_warnings():
        measurement = measure_one(metric, make_evidence(["the soup xyz"], ["bread"]))
    weights = transformers.BertModel.from_pretrained(folder).embeddings.word_embeddings.weight
    soup, the, bread = weights[[5, 12, 6]].detach()  # after five special tokens
    cosine = torch.nn.functional.cosine_similarity
    if kind is EmbeddingAverage:
        expected = cosine(soup + the, bread, dim=0)
    else:
        near = torch.stack([cosine(word, bread, dim=0) for word in (soup, the)])
        expected = (near.mean() + near.max()) / 2
    assert measurement.value == pytest.approx(float(expected), abs=1e-6)


@pytest.mark.parametrize("kind", METRICS)
def test_settings_that_exclude_each_other_are_refused(kind: Any, path: Path) -> None:
    for settings in ({}, {"vectors": path, "encoder": "bert"}):
        with pytest.raises(Contradiction, match="of a file or of a language model"):
            kind(**settings)
    with pytest.raises(WrongType, match=r"model\.bin") as caught:
        kind(vectors=Path("model.bin"))
    assert caught.value.where == "vectors"
    with pytest.raises(MissingFile):
        kind(encoder="./absent").check(make_evidence([], []))
