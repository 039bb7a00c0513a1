from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import recbias
from recbias import api
from recbias.runner.estimate import Preview, count_requests, preview
from recbias.runner.execute import Executor, make_record
from recbias.runner.plan import Keys, Observer, RemainingWork, Stage
from support.chat.chat_server import serve_chat
from support.commands import invoke_recbias
from support.specs import make_small_spec


@dataclass
class Clock:
    seconds: float = 0.0

    def __call__(self) -> float:
        return self.seconds


def make_stage(title: str, kind: str, model: str = "", fold: int = 1) -> Stage:
    keys, subject = Keys("demo", 42, fold, model), "HR" if kind == "measure" else model
    return Stage(kind, title, str, (), keys, f"{title} {fold}", subject=subject)


def make_model(model: str, fold: int = 1) -> list[Stage]:
    return [
        make_stage(f"fit {model}", "fit", model, fold),
        make_stage(f"recommend {model}", "answer", model, fold),
        make_stage(f"measure HR of {model}", "measure", model, fold),
    ]


def finish(work: RemainingWork, stage: Stage, seconds: float) -> None:
    work.start(stage)
    work.finish(make_record(stage, seconds=seconds))


def test_there_is_no_estimate_until_each_stage_has_a_basis() -> None:
    clock = Clock()
    stages = [*make_model("A"), *make_model("A", fold=2)]
    work = RemainingWork(stages, clock=clock)
    assert work.describe() == "0 of 6 stages"
    for stage, seconds in zip(stages[:3], (60.0, 30.0, 5.0), strict=True):
        assert work.estimate() is None
        finish(work, stage, seconds)
    assert work.estimate() == pytest.approx(95)
    assert work.describe() == "3 of 6 stages, about 2 min left"
    for stage in stages[3:]:
        finish(work, stage, 1.0)
    assert work.describe() == "6 of 6 stages"


def test_the_estimate_falls_while_a_stage_runs_and_never_below_zero() -> None:
    clock = Clock()
    stages = [make_stage("fit A", "fit", "A", fold) for fold in (1, 2, 3)]
    work = RemainingWork(stages, clock=clock)
    finish(work, stages[0], 60.0)
    work.start(stages[1])
    assert work.estimate() == pytest.approx(120)
    clock.seconds = 0.5
    assert work.estimate() == pytest.approx(119.5)
    clock.seconds = 20.0
    assert work.estimate() == pytest.approx(100)
    clock.seconds = 1000.0
    assert work.estimate() == pytest.approx(60), "the third has not started"
    work.finish(make_record(stages[1], seconds=60.0))
    work.start(stages[2])
    clock.seconds = 1045.0
    assert work.describe_time() == "about 15 s left"
    clock.seconds = 1055.0
    assert work.describe() == "2 of 3 stages", "5 s may be as long as the reports"
    clock.seconds = 5000.0
    assert work.estimate() == 0


def preview_spec(tmp_path: Path, **changes: object) -> Preview:
    plan, store = api.plan(make_small_spec(**changes), out=tmp_path)
    return preview(plan, store)


def test_a_plan_estimates_what_stages_take_by_what_other_data_have_taken(tmp_path: Path) -> None:
    first = preview_spec(tmp_path)
    assert first.expected_seconds is first.memory_mb is None
    assert first.n_unexpected == len(first.steps)
    recbias.run(make_small_spec(), out=tmp_path)
    stored = preview_spec(tmp_path)
    assert stored.expected_seconds is None
    assert stored.n_unexpected == 0
    spec = make_small_spec(seed=7, models=["MostPop", "Random"])
    plan, store = api.plan(spec, out=tmp_path)
    recbias.run(make_small_spec(seed=7, models=["MostPop"], metrics=["HR"]), out=tmp_path)
    again = preview(plan, store)
    titles = {
        step.stage.title for step in again.steps if not step.stored and not step.expected_seconds
    }
    assert titles == {"fit Random", "recommend Random"}
    assert again.n_unexpected == again.n_without_memory == 2
    assert again.expected_seconds is again.memory_mb is None, "two stages are not known"
    known = preview_spec(tmp_path, seed=7, models=["MostPop"], metrics=["HR"], k=3)
    assert known.expected_seconds is not None
    assert known.memory_mb is not None
    assert known.memory_mb >= max(step.memory_mb or 0.0 for step in known.steps)


def test_the_manifest_has_the_sizes_of_what_was_computed(tmp_path: Path) -> None:
    first = recbias.run(make_small_spec(), out=tmp_path).manifest["stages"]
    fit = next(stage for stage in first if stage["stage"] == "fit ItemKNN")
    assert fit["sizes"]["users"] == 60
    assert 0 < fit["sizes"]["training"] < fit["sizes"]["interactions"]
    overrides = ["report.formats=[json]"]  # an unchanged run is not written again
    again = recbias.run(make_small_spec(), out=tmp_path, overrides=overrides).manifest["stages"]
    assert all(stage["reused"] for stage in again)
    assert {stage["peak_memory_mb"] for stage in again} == {None}


ADDRESS = "http://127.0.0.1:9/v1"


def make_chat_spec(base_url: str = ADDRESS, **changes: Any) -> dict[str, Any]:
    llm = {"model": "small", "base_url": base_url, "max_tokens": 100}
    priced = {**llm, "prices": {"input": 3, "output": 5}}
    models = [
        "MostPop",
        {"name": "WOK", "llm": llm},
        {"name": "WOK", "label": "minimized", "mitigation": "minimize", "llm": priced},
    ]
    return make_small_spec(**{"models": models, **changes})


def count(spec: dict[str, Any], out: Path, **options: Any) -> list[dict[str, Any]]:
    plan, store = api.plan(spec, out=out, **options)
    return count_requests(plan, Executor(store, Observer()))


def test_counts_are_those_of_the_requests_that_the_run_sends(tmp_path: Path) -> None:
    with serve_chat() as server:
        spec = make_chat_spec(server.base_url)
        plain, minimized = count(spec, tmp_path)
        assert server.payloads == []
        recbias.run(spec, out=tmp_path)
    assert (plain["requests"], plain["stored"]) == (60, 0)
    assert minimized["requests"] == 60
    assert len(server.payloads) == 120
    n_bytes = sum(len(prompt.encode()) for prompt in server.list_prompts())
    n_in = plain["tokens_in"] + minimized["tokens_in"]
    # A token for 3 bytes, rounded up for each prompt, and 8 for each message.
    assert n_bytes / 3 + 8 * 120 <= n_in < n_bytes / 3 + 9 * 120
    assert plain["tokens_out"] == 100 * 60
    assert plain["money"] is None
    # 3 and 5 for a million tokens, of which 100 in each of 60 replies.
    assert minimized["money"] is not None
    assert abs(minimized["money"] - (3 * minimized["tokens_in"] + 5 * 6000) / 1e6) < 1e-12


def test_stored_replies_cost_nothing(tmp_path: Path) -> None:
    with serve_chat() as server:
        recbias.run(make_chat_spec(server.base_url), out=tmp_path, limit=7)
        plain, _ = count(make_chat_spec(server.base_url), tmp_path)
    assert (plain["requests"], plain["stored"]) == (60, 7)
    assert plain["tokens_out"] == 100 * 53


def test_a_failure_is_the_reason_why_the_number_is_not_known(tmp_path: Path) -> None:
    model = {"name": "WOK", "llm": {"model": "small"}, "title": "caption"}
    (entry,) = count(make_chat_spec(models=[model]), tmp_path)
    assert entry["requests"] is None
    assert "caption" in entry["problem"]


@pytest.mark.parametrize(("name", "n_matrices"), [("EASE", 3), ("SLIM", 1)])
def test_matrices_of_the_items_that_cannot_fit_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, n_matrices: int
) -> None:
    dataset = {"name": "demo", "n_users": 2000, "n_items": 2500}
    spec = make_small_spec(models=["MostPop", name], dataset=dataset)
    (tmp_path / "spec.json").write_text(json.dumps(spec))
    for megabytes, code in ((24 * n_matrices, 0), (23 * n_matrices, 2)):  # 4 * 2,500^2 bytes each
        monkeypatch.setenv("RECBIAS_MEMORY_MB", str(megabytes))
        result = invoke_recbias("plan", "spec.json", folder=tmp_path)
        assert result.code == code
    assert f"models[1]: the matrices of {name} for 2,500 items need at least" in result.err
