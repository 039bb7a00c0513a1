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


def test_a_failure_is_the_reason_why_the_number_is_not_known(tmp_path: Path) -> None:
    model = {"name": "WOK", "llm": {"model": "small"}, "title": "caption"}
    (entry,) = count(make_chat_spec(models=[model]), tmp_path)
    assert entry.n_requests == 0
    assert "caption" in entry.problem
