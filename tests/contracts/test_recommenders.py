"""Every registered recommender meets the contract of its kind."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest

from recbias.registry import REGISTRIES
from recbias.testing import check_recommender

MODELS = REGISTRIES["models"]

FROM_FILES = {
    *("lists", "lmrec_lists", "vectors", "sentence_scores", "responses"),
    *("LMRec", "TFIDF-LR", "Encoder-LR", "language_model"),
    *("WOK", "ChatRecommender", "LMRerank", "LMLikelihood"),
    *("shown", "policy"),
}
"""Models that need files, reviews, or a language model: see their own tests."""

UNPERSONALISED = {"Random", "MostPop"}
RATING_BASED = {"MF", "FunkSVD", "PMF", "ConvMF"}
"""Models that learn from rating values, not from which items a user has."""
ATTRIBUTE_BASED = {"AttributeItemKNN", "AttributeUserKNN", "VSM"}
"""Models that learn from attributes; the attributes of the checkerboard hide the colours."""

SMALL: dict[str, dict[str, Any]] = {
    "PureSVD": {"factors": 4},
    "BPR-MF": {"embedding_size": 8},
    "MF2020": {"learning_rate": 0.1},
    "ConvMF": {"text": ("genres",)},
    "AMF": {"embedding_size": 8, "batch_size": 32, "learning_rate": 0.02},
    "MultiVAE": {"hidden_size": 20, "embedding_size": 8, "batch_size": 8, "learning_rate": 0.01},
    "SASRec": {"embedding_size": 16, "epochs": 40, "batch_size": 8, "learning_rate": 0.01},
    "GRU4Rec": {"embedding_size": 16, "epochs": 40, "batch_size": 8, "learning_rate": 0.01},
    "BERT4Rec": {"embedding_size": 16, "epochs": 40, "batch_size": 8, "learning_rate": 0.01},
    "LightGCN": {"embedding_size": 8, "batch_size": 64, "learning_rate": 0.02},
    "NeuMF": {"batch_size": 64, "learning_rate": 0.01, "epochs": 30},
    "DeepFM": {"embedding_size": 8, "batch_size": 64, "learning_rate": 0.01},
    "implicit/ALS": {"reg": 1.0},
}
"""Settings that fit 40 users, where the defaults are for thousands."""


@pytest.mark.parametrize("name", [name for name in MODELS.names() if name not in FROM_FILES])
def test_a_model_meets_the_contract(name: str) -> None:
    model = MODELS.load(name)(**SMALL.get(name, {}))
    check_recommender(model, learns=name not in UNPERSONALISED | RATING_BASED | ATTRIBUTE_BASED)


@pytest.mark.parametrize("name", MODELS.names())
def test_every_setting_is_documented(name: str) -> None:
    cls = MODELS.load(name)
    for field in fields(cls):
        assert f"{field.name}:" in (cls.__doc__ or ""), f"{name}: {field.name}"


@pytest.mark.parametrize("name", MODELS.names())
def test_a_model_can_be_built_from_its_defaults(name: str) -> None:
    if name not in FROM_FILES:
        assert MODELS.load(name)() == MODELS.load(name)()


def test_every_model_with_an_embedding_size_provides_embeddings() -> None:
    classes: dict[str, Any] = {name: MODELS.load(name) for name in MODELS.names()}
    latent = {
        name
        for name, cls in classes.items()
        if {"embedding_size", "factors"} & {field.name for field in fields(cls)}
    }
    assert latent > {"PureSVD", "BPR-MF", "MF", "FunkSVD", "PMF", "MF2020", "implicit/ALS"}
    assert all("embeddings" in classes[name].provides for name in latent)
