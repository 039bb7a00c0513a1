"""Which built-in plug-ins say how much memory they need."""

from __future__ import annotations

from pathlib import Path

import pytest

from recbias.models.text.model_memory import read_shape
from recbias.registry import REGISTRIES
from support.models.small_encoder import write_small_encoder

ACTIVATIONS = "a batch has scores of the whole vocabulary, and sentences of unknown length"

WITHOUT = {
    "recbole": "its processes are of another Python, whose memory is RecBole's",
    "lmrec_lists": "its lists are those of one dataset, which is small",
    "LMLikelihood": ACTIVATIONS,
    "language_model": ACTIVATIONS,
    "causal_lm": ACTIVATIONS,
    "masked_lm": ACTIVATIONS,
}
"""Those that do not, with the reason."""


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (kind, name)
        for kind in ("models", "rerankers", "detectors")
        for name in REGISTRIES[kind].table
    ],
)
def test_plug_ins_plan_their_memory(kind: str, name: str) -> None:
    has_plan = hasattr(REGISTRIES[kind].load(name), "plan_memory")
    assert has_plan != (name in WITHOUT)


TEXTS = {
    "users": 900,
    "items": 100,
    "interactions": 1_000,
    "training": 800,
    "reviews": 1_000,
    "characters": 30_000,
    "longest": 200,
}


@pytest.mark.parametrize("name", ["LMRec", "Encoder-LR", "TFIDF-LR"])
def test_models_of_texts_need_more_memory_for_more_texts(name: str, tmp_path: Path) -> None:
    cls = REGISTRIES["models"].load(name)
    encoder = {"encoder": str(write_small_encoder(tmp_path / "encoder"))}
    model = cls(**({} if name == "TFIDF-LR" else encoder))
    small = model.plan_memory(TEXTS)
    large = model.plan_memory({size: 10 * n for size, n in TEXTS.items()})
    assert large.fit > small.fit > 0
    assert model.plan_memory(TEXTS | {"reviews": 0}) is None


def test_the_weights_of_an_encoder_are_counted_without_loading_them(tmp_path: Path) -> None:
    from safetensors.numpy import load_file

    folder = write_small_encoder(tmp_path / "encoder")
    weights = load_file(folder / "model.safetensors")
    shape = read_shape(str(folder))
    assert shape is not None
    assert shape.parameters == sum(array.size for array in weights.values())
    assert read_shape(str(tmp_path / "absent")) is None
