from __future__ import annotations

from pathlib import Path
from typing import Any

import recbias
from recbias import api
from recbias.runner.execute import Executor, Silent
from recbias.runner.request_totals import RequestTotals, count_requests
from support.chat.chat_server import serve_chat
from support.specs import make_small_spec

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


def count(spec: dict[str, Any], out: Path, **options: Any) -> list[RequestTotals]:
    plan, store = api.plan(spec, out=out, **options)
    return count_requests(plan, Executor(store, Silent()))


def test_counts_are_those_of_the_requests_that_the_run_sends(tmp_path: Path) -> None:
    with serve_chat() as server:
        spec = make_chat_spec(server.base_url)
        plain, minimized = count(spec, tmp_path)
        assert server.payloads == []
        recbias.run(spec, out=tmp_path)
    assert (plain.n_requests, plain.n_stored) == (60, 0)
    assert minimized.n_requests == 60
    assert len(server.payloads) == 120
    n_bytes = sum(len(prompt.encode()) for prompt in server.list_prompts())
    n_in = plain.prompt_tokens + minimized.prompt_tokens
    # A token for 3 bytes, rounded up for each prompt, and 8 for each message.
    assert n_bytes / 3 + 8 * 120 <= n_in < n_bytes / 3 + 9 * 120
    assert plain.completion_tokens == 100 * 60
    assert plain.money is None
    # 3 and 5 for a million tokens, of which 100 in each of 60 replies.
    assert minimized.money is not None
    assert abs(minimized.money - (3 * minimized.prompt_tokens + 5 * 6000) / 1e6) < 1e-12


def test_stored_replies_cost_nothing(tmp_path: Path) -> None:
    with serve_chat() as server:
        recbias.run(make_chat_spec(server.base_url), out=tmp_path, limit=7)
        plain, _ = count(make_chat_spec(server.base_url), tmp_path)
    assert (plain.n_requests, plain.n_stored) == (60, 7)
    assert plain.completion_tokens == 100 * 53


def test_models_with_stored_answers_send_nothing(tmp_path: Path) -> None:
    with serve_chat() as server:
        spec = make_chat_spec(server.base_url)
        recbias.run(spec, out=tmp_path)
        assert count(spec, tmp_path) == []


def test_limit_restricts_the_requests(tmp_path: Path) -> None:
    assert [entry.n_requests for entry in count(make_chat_spec(), tmp_path, limit=3)] == [3, 3]


def test_requests_of_all_folds_are_counted(tmp_path: Path) -> None:
    folds = {"name": "random", "test": 0.2, "folds": 2}
    assert [entry.n_requests for entry in count(make_chat_spec(split=folds), tmp_path)] == [
        120,
        120,
    ]


def test_the_same_request_of_two_models_is_sent_once(tmp_path: Path) -> None:
    llm = {"model": "small", "base_url": ADDRESS}
    models = [{"name": "WOK", "llm": llm}, {"name": "WOK", "label": "again", "llm": llm}]
    first, again = count(make_chat_spec(models=models), tmp_path)
    assert (first.n_requests, first.n_stored) == (60, 0)
    assert (again.n_requests, again.n_stored, again.prompt_tokens) == (60, 60, 0)


def test_a_failure_is_the_reason_why_the_number_is_not_known(tmp_path: Path) -> None:
    model = {"name": "WOK", "llm": {"model": "small"}, "title": "caption"}
    (entry,) = count(make_chat_spec(models=[model]), tmp_path)
    assert entry.n_requests == 0
    assert "caption" in entry.problem


def test_without_language_models_nothing_is_computed(tmp_path: Path) -> None:
    assert count(make_small_spec(), tmp_path) == []
    assert list(tmp_path.iterdir()) == []


def test_a_model_in_the_process_is_not_counted(tmp_path: Path) -> None:
    model = {"name": "LMLikelihood", "model": "./nowhere"}
    assert count(make_chat_spec(models=["MostPop", model]), tmp_path) == []


def test_the_model_whose_candidates_are_shown_is_trained_for_the_count(tmp_path: Path) -> None:
    rerank = {"name": "LMRerank", "candidates": "ItemKNN", "orders": 3, "n_candidates": 2}
    model = {**rerank, "llm": {"model": "small", "base_url": ADDRESS}}
    spec = make_chat_spec(models=["ItemKNN", model])
    plan, store = api.plan(spec, out=tmp_path)
    executor = Executor(store, Silent())
    (totals,) = count_requests(plan, executor)
    assert (totals.model, totals.n_requests <= 180, totals.n_stored) == ("LMRerank", True, 0)
    fits = {stage.digest for stage in plan.stages if stage.kind == "fit"}
    assert len(fits) == 1
    assert all(executor.is_stored(stage) for stage in plan.stages if stage.digest in fits)
