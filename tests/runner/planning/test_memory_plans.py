"""Which built-in plug-ins say how much memory they need."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import recbias
from recbias import api
from recbias.core.errors import Faults
from recbias.core.machine.memory import VARIABLE
from recbias.language.chat.settings import LanguageModel
from recbias.language.weights.model_shapes import read_shape
from recbias.models.sentences.debiasing.debias import Debias
from recbias.registry import REGISTRIES
from recbias.runner.execution.model_memory import TOLERANCE, find_memory_fault
from recbias.runner.library_memory import sum_libraries
from recbias.runner.planning.expected_memory import PeakPlanner
from support.models.small_causal import write_small_causal
from support.models.small_encoder import write_small_encoder
from support.specs import make_small_spec

WITHOUT = {
    "recbole": "it trains in a process of RecBole, whose memory a record does not measure",
    "lmrec_lists": "its lists are those of one dataset, which is small",
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


def write_models(folder: Path) -> dict[str, Path]:
    return {
        "masked": write_small_encoder(folder / "masked", head=True),
        "causal": write_small_causal(folder / "causal"),
    }


LANGUAGE_MODELS = [
    ("detectors", "masked_lm", "masked", {"from_": "overview"}, "tokens_per_batch"),
    ("detectors", "causal_lm", "causal", {"from_": "overview"}, "tokens_per_batch"),
    ("models", "language_model", "masked", {}, "batch_tokens"),
    ("models", "language_model", "causal", {}, "batch_tokens"),
]
SENTENCES = {"users": 0, "items": 0, "interactions": 0, "queries": 9_000, "texts": 9_000}
SENTENCES |= {"text_bytes": 900_000, "longest_text": 300, "shared_bytes": 0}


@pytest.mark.parametrize(("kind", "name", "model", "settings", "batch"), LANGUAGE_MODELS)
def test_language_models_need_more_memory_for_larger_batches(
    kind: str, name: str, model: str, settings: dict[str, Any], batch: str, tmp_path: Path
) -> None:
    cls = REGISTRIES[kind].load(name)
    folder = str(write_models(tmp_path)[model])
    small, large = (
        cls(model=folder, **settings, **{batch: size}).plan_memory(SENTENCES) for size in (64, 200)
    )
    assert large.fit + large.lists > small.fit + small.lists > 0
    assert cls(model="absent/model", **settings).plan_memory(SENTENCES) is None


def test_a_model_for_persons_needs_its_weights(tmp_path: Path) -> None:
    cls = REGISTRIES["detectors"].load("names")
    encoder = str(write_small_encoder(tmp_path / "encoder"))
    plain, model = (
        cls(from_="cast", persons=persons).plan_memory(TEXTS) for persons in ("names", encoder)
    )
    shape = read_shape(encoder)
    assert shape is not None
    assert model.fit >= plain.fit + shape.bytes
    assert cls(from_="cast", persons="absent/model").plan_memory(TEXTS) is None


def test_sentences_that_begin_alike_need_a_smaller_batch(tmp_path: Path) -> None:
    cls = REGISTRIES["models"].load("language_model")
    model = cls(model=str(write_small_causal(tmp_path)))
    apart, alike = (model.plan_memory(SENTENCES | {"shared_bytes": n}) for n in (10_000, 600_000))
    assert apart.fit == alike.fit == 0  # nothing is trained
    assert apart.lists > alike.lists
    few = {"queries": 9, "texts": 9, "text_bytes": 900}
    assert model.plan_memory(SENTENCES | few).lists < apart.lists


def test_a_debiased_model_has_gradients_and_moments(tmp_path: Path) -> None:
    cls = REGISTRIES["models"].load("language_model")
    model = str(write_small_causal(tmp_path))
    shape = read_shape(model)
    plain, short, long = (
        cls(model=model, debias=debias).plan_memory(SENTENCES | {"longest_sentence": n})
        for debias, n in ((None, 80), (Debias(method="LMD"), 80), (Debias(method="LMD"), 800))
    )
    assert shape is not None
    assert long.fit > short.fit > 4 * shape.bytes > plain.fit
    assert (plain.state, short.state) == (0, shape.bytes)


def test_likelihoods_of_titles_need_memory_for_more_titles(tmp_path: Path) -> None:
    cls = REGISTRIES["models"].load("LMLikelihood")
    model = {"model": str(write_small_causal(tmp_path))}
    served = {"llm": LanguageModel(model="m", base_url="http://127.0.0.1:1/v1")}
    for settings in (model, served):
        small, large = (
            cls(**settings).plan_memory({name: scale * n for name, n in TEXTS.items()})
            for scale in (1, 100)
        )
        assert large.lists > small.lists > 0
        assert small.fit == 0
    assert cls(model="absent/model").plan_memory(TEXTS) is None
    half = cls(**model, precision="bfloat16").plan_memory(TEXTS)
    assert half.lists < cls(**model).plan_memory(TEXTS).lists


def test_a_language_model_is_refused_with_the_batch_that_would_fit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = str(write_small_encoder(tmp_path / "model", head=True))
    plugin = REGISTRIES["detectors"].load("masked_lm")
    full, half = (
        plugin(model=model, from_="overview", tokens_per_batch=n).plan_memory(TEXTS).fit / 2**20
        for n in (2**13, 2**12)
    )
    assert full > half + 2
    films = pd.DataFrame({"item_id": range(9), "overview": "the soup was good"})
    films.to_csv(tmp_path / "films.csv", index=False)
    clicks = pd.DataFrame({"user_id": np.arange(99) // 9, "item_id": np.arange(99) % 9})
    clicks.to_csv(tmp_path / "clicks.csv", index=False)
    paths = {name: str(tmp_path / f"{name}.csv") for name in ("clicks", "films")}
    labels = {"name": "l", "detector": "masked_lm", "model": model, "from": "overview"}
    spec = make_small_spec(
        dataset={"name": "tables", "interactions": paths["clicks"], "items": paths["films"]},
        labels=[{**labels, "tokens_per_batch": 2**13}],
        metrics=[{"name": "HIT_BAD", "label": "l.gender"}],
    )
    process = sum_libraries({"torch", "transformers"}) / 2**20
    monkeypatch.setenv(VARIABLE, str(math.ceil(process + 0.5 + half)))
    with pytest.raises(Faults) as refused:
        recbias.run(spec, out=tmp_path / "results")
    (fault,) = refused.value.faults
    assert fault.message.startswith("label tables by l needs about ")
    assert "lower tokens_per_batch to 4,096" in fault.remedy


def test_a_stage_that_is_far_too_large_is_refused_where_the_libraries_do_not_fit_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned, _ = api.plan(make_small_spec(models=["MostPop"]), out=tmp_path)
    sizes = {"users": 10**6, "items": 10**5, "interactions": 10**7, "queries": 10**6}
    split = next(stage for stage in planned.stages if stage.kind == "split")
    base = sum_libraries(set())
    assert (PeakPlanner().plan(split, sizes) or 0) > TOLERANCE * base
    for limit in (1.1 * base, 0.8 * base):
        assert find_memory_fault(split, sizes, PeakPlanner(), limit) is not None
    few = {name: n // 10**4 for name, n in sizes.items()}
    assert find_memory_fault(split, few, PeakPlanner(), 0.9 * base) is None


@pytest.mark.parametrize(
    ("n", "n_characters", "measured"),
    [
        (1_000_000, 86_000_000, {"dataset": 772, "split": 403, "queries": 544}),
        (150_000, 111_000_000, {"dataset": 440, "split": 296, "queries": 317}),
    ],
)
def test_the_peaks_of_stages_of_sentences_are_those_that_were_measured(
    tmp_path: Path, n: int, n_characters: int, measured: dict[str, int]
) -> None:
    plan, _ = api.plan(make_small_spec(models=["MostPop"]), out=tmp_path)
    sizes = {"users": 0, "items": 0, "interactions": 0, "training": 0}
    sizes |= {"sentences": n, "sentence_characters": n_characters}
    for kind, peak in measured.items():
        stage = next(stage for stage in plan.stages if stage.kind == kind)
        planned = PeakPlanner().plan(stage, sizes) or 0
        assert planned / 2**20 == pytest.approx(peak, rel=0.25)
