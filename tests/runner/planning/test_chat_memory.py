"""The memory of chat models, and of metrics of texts, by the sizes of prompts and answers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import recbias
from recbias import api
from recbias.core.errors import Faults
from recbias.core.machine.memory import VARIABLE
from recbias.core.models.selected_models import SelectedModel
from recbias.language.chat.settings import LanguageModel
from recbias.registry import REGISTRIES
from recbias.runner.answer_sizes import estimate_answers, measure_answers, plan_reading
from recbias.runner.planning.expected_memory import PeakPlanner
from recbias.runner.stages.model_outputs import ModelOutputs
from support.chat.chat_server import serve_chat
from support.models.small_causal import write_small_causal
from support.specs import make_small_spec

SIZES = {"users": 900, "items": 200, "interactions": 9_000, "training": 8_000, "queries": 900}
SERVED = LanguageModel(model="small", base_url="http://127.0.0.1:1/v1")
ML_1M = {"users": 6_040, "items": 3_883, "interactions": 1_000_209, "training": 797_758}


def create(name: str, llm: LanguageModel) -> Any:
    kind = "detectors" if name == "llm_judge" else "models"
    settings: dict[str, Any] = {"from_": "overview"} if name == "llm_judge" else {}
    if name == "LMRerank":
        most_popular = REGISTRIES["models"].load("MostPop")()
        settings = {"candidates": SelectedModel("MostPop", most_popular)}
    return REGISTRIES[kind].load(name)(llm=llm, **settings)


@pytest.mark.parametrize("name", ["WOK", "ChatRecommender", "LMRerank", "llm_judge"])
def test_chat_models_need_more_memory_for_more_requests(name: str, tmp_path: Path) -> None:
    def plan(sizes: Mapping[str, int], model: Any) -> float:
        memory = model.plan_memory(sizes)
        return float(memory.fit + memory.lists)

    model = create(name, SERVED)
    more = {**SIZES, "queries": 9_000, "items": 2_000}
    assert plan(more, model) > 5 * plan(SIZES, model) > 0
    longer = {"training": 80_000, "text_bytes": 900_000, "item_characters": 900_000}
    assert plan({**SIZES, **longer}, model) > plan({**SIZES, "text_bytes": 900}, model)
    assert model.plan_memory(SIZES).lists_with[-1] == "openai"
    folder = str(write_small_causal(tmp_path / "model"))
    local = create(name, LanguageModel(provider="transformers", model=folder))
    assert plan(SIZES, local) > plan(SIZES, model)
    assert "torch" in local.plan_memory(SIZES).lists_with
    absent = create(name, LanguageModel(provider="transformers", model=str(tmp_path / "absent")))
    assert absent.plan_memory(SIZES) is None


@pytest.mark.parametrize(
    ("model", "measured"),
    [
        ({"name": "WOK", "llm": {"model": "small"}}, {100: 242, 2_000: 276, 6_040: 326}),
        (
            {"name": "LMRerank", "candidates": "ItemKNN", "llm": {"model": "small"}},
            {50: 243, 400: 271},
        ),
    ],
)
def test_the_peaks_of_chat_models_are_those_that_were_measured(
    tmp_path: Path, model: dict[str, Any], measured: dict[int, int]
) -> None:
    plan, _ = api.plan(make_small_spec(models=[model]), out=tmp_path)
    (ask,) = (stage for stage in plan.stages if stage.kind == "answer")
    for n_queries, peak in measured.items():
        planned = PeakPlanner().plan(ask, ML_1M | {"queries": n_queries}) or 0
        assert planned / 2**20 == pytest.approx(peak, rel=0.25)


def write_responses(path: Path, n: int) -> Path:
    words = "the quick brown fox jumps over the lazy dog"
    rows = {"query_id": range(n), "response": words, "reference": words}
    pd.DataFrame(rows).to_csv(path, index=False)
    return path


def test_metrics_of_texts_read_the_answers(tmp_path: Path) -> None:
    model = {"name": "responses", "path": str(write_responses(tmp_path / "a.csv", 3_000))}
    metrics = ["distinct", "unigram_F1"]
    spec = {"name": "texts", "dataset": {"name": "tables"}, "models": [model], "metrics": metrics}
    plan, store = api.plan(spec, out=tmp_path)
    before = api.preview_run(plan, store, fresh=False)[0].steps
    recbias.run(spec, out=tmp_path)
    answer = next(stage for stage in plan.stages if stage.kind == "answer")
    sizes = store.record(answer.digest).sizes  # type: ignore[union-attr]
    assert sizes["answers"] == 3_000
    assert sizes["text_characters"] == 3_000 * 43
    for step in before:
        if step.stage.kind == "measure":
            planned = PeakPlanner().plan(step.stage, {**sizes, **SIZES}) or 0
            assert step.memory_mb == pytest.approx(planned / 2**20, rel=0.1)


def test_what_metrics_of_texts_need_grows_with_the_texts() -> None:
    metric = REGISTRIES["metrics"].load("distinct")()
    small = {"answers": 10, "answer_characters": 2_000, "text_characters": 1_000}
    large = {name: 10 * n for name, n in small.items()}
    assert plan_reading(metric, large) == 10 * (plan_reading(metric, small) or 0)
    assert plan_reading(metric, SIZES) is None
    in_characters = REGISTRIES["metrics"].load("distinct")(tokens="characters")
    assert (plan_reading(in_characters, small) or 0) > 2 * (plan_reading(metric, small) or 0)
    ranking = REGISTRIES["metrics"].load("class_accuracy")()
    assert plan_reading(ranking, SIZES) is None
    assert plan_reading(ranking, {"ranked": 100}) == 800


def test_a_chat_model_has_an_answer_for_each_query() -> None:
    assert estimate_answers(create("WOK", SERVED), SIZES)["answers"] == 900
    assert estimate_answers(REGISTRIES["models"].load("MostPop")(), SIZES) == {}
    assert measure_answers(ModelOutputs(None, None)) == {}


def test_a_judge_that_does_not_fit_is_refused_before_it_asks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    films = {"item_id": range(4_000), "overview": [f"Story {n}" for n in range(4_000)]}
    pd.DataFrame(films).to_csv(tmp_path / "films.csv", index=False)
    clicks = {"user_id": [n % 50 for n in range(4_000)], "item_id": range(4_000)}
    pd.DataFrame(clicks).to_csv(tmp_path / "clicks.csv", index=False)
    dataset = {"interactions": str(tmp_path / "clicks.csv"), "items": str(tmp_path / "films.csv")}
    monkeypatch.setenv(VARIABLE, "225")
    with serve_chat() as server:
        llm = {"model": "small", "base_url": server.base_url}
        judge = {"name": "judge", "detector": "llm_judge", "from": "overview", "llm": llm}
        spec = make_small_spec(
            dataset={"name": "tables", **dataset},
            labels=[judge],
            metrics=[{"name": "REC-ST", "label": "judge.gender"}],
        )
        with pytest.raises(Faults) as refused:
            recbias.run(spec, out=tmp_path / "results")
        assert not server.payloads
    (fault,) = refused.value.faults
    assert fault.message.startswith("label tables by judge needs about ")
    assert "there are 225 MB" in fault.message
    assert "items, " in fault.remedy
