"""``LMLikelihood`` with a model on a server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbias.core.context import collect_warnings, stage_context
from recbias.core.dataset import AnyArray, Attributes, TrainingData
from recbias.core.errors import Contradiction
from recbias.language.backends import LikelihoodBackend
from recbias.language.endpoints import ChatReply, ChatRequest, LanguageModel, Message
from recbias.language.local_models import load_model
from recbias.models.lm_likelihood import LMLikelihood, ServedScorer
from support.chat.chat_requests import make_model
from support.chat.chat_server import Answer, make_error, serve_chat
from support.chat.echo_servers import make_echo, make_echo_reply
from support.models.small_causal import write_small_causal
from support.worlds.query_sets import make_queries
from support.worlds.small_worlds import make_interactions

TITLES = ["Alien (1979)", "Heat (1995)", "Matrix, The (1999)", "Up", "L'\u00c9t\u00e9 (1994)"]


def read_reply(body: dict[str, Any], request: ChatRequest) -> ChatReply:
    backend = LikelihoodBackend(LanguageModel(model="small", base_url="http://127.0.0.1:1/v1"))
    return backend.read_reply(body, request)


@pytest.fixture
def data() -> TrainingData:
    """Return two users with histories and one without."""
    pairs = [(0, 0), (0, 1), (1, 2), (1, 3), (1, 4)]
    train = make_interactions(pairs, n_users=3, n_items=5, times=[2, 1, 1, 2, 3])
    titles = pd.DataFrame({"title": TITLES})
    return TrainingData(train, items=Attributes(train.item_ids, titles, "items"))


def recommend(model: LMLikelihood, data: TrainingData) -> tuple[AnyArray, AnyArray]:
    fitted = model.fit(data, np.random.default_rng(0))
    with collect_warnings():
        lists = fitted.recommend(make_queries(["u0", "u1", "u2"], [0, 1, 2]), 3, data)
    return lists.items, lists.scores


def make_request(context: str, text: str) -> ChatRequest:
    model = LanguageModel(model="small", base_url="http://127.0.0.1:1/v1")
    return model.build_likelihood_request(Message("user", context), text)


@pytest.mark.parametrize("adds_start", [False, True])
@pytest.mark.parametrize("debias", [False, True])
def test_a_served_model_ranks_as_in_the_process(
    tmp_path: Path, data: TrainingData, *, adds_start: bool, debias: bool
) -> None:
    folder = str(write_small_causal(tmp_path / "model", adds_start=adds_start))
    expected, expected_scores = recommend(LMLikelihood(model=folder, debias=debias), data)
    with serve_chat(make_echo(load_model(folder))) as server:
        model = LMLikelihood(llm=make_model(server, concurrency=1), debias=debias)
        items, scores = recommend(model, data)
    assert items.tolist() == expected.tolist()
    assert scores == pytest.approx(expected_scores, abs=1e-4, nan_ok=True)
    assert {*server.paths} == {"/v1/completions"}
    assert len(server.payloads) == 5 * (2 + debias)  # five candidates; two users have a history
    sent = {name: server.payloads[0][name] for name in ("echo", "logprobs", "max_tokens")}
    assert sent == {"echo": True, "logprobs": 1, "max_tokens": 0}


def test_a_token_that_the_server_generates_is_left_out(tmp_path: Path, data: TrainingData) -> None:
    folder = str(write_small_causal(tmp_path / "model"))
    expected = recommend(LMLikelihood(model=folder), data)[1]
    with serve_chat(make_echo(load_model(folder))) as server:
        llm = make_model(server, concurrency=1, extra_body={"max_tokens": 1})
        scores = recommend(LMLikelihood(llm=llm), data)[1]
    assert server.payloads[0]["max_tokens"] == 1
    assert scores == pytest.approx(expected, abs=1e-4, nan_ok=True)


@given(
    tokens=st.lists(st.text("ab\u00e9 ", min_size=1, max_size=3), min_size=2, max_size=9),
    n_context=st.integers(1, 8),
    start=st.sampled_from(["", "<s>"]),
)
def test_the_tokens_of_the_text_are_found_whatever_stands_before(
    tokens: list[str], n_context: int, start: str
) -> None:
    n_context = min(n_context, len(tokens) - 1)
    scores = [-float(row) for row in range(len(tokens))]
    body = make_echo_reply(
        [start, *tokens] if start else tokens, [None, *scores] if start else [None, *scores[1:]]
    )
    context, text = "".join(tokens[:n_context]), "".join(tokens[n_context:])
    reply = read_reply(body, make_request(context, text))
    assert json.loads(reply.text)["log_probabilities"] == scores[n_context:]


def test_replies_are_stored_and_planned(tmp_path: Path, data: TrainingData) -> None:
    folder = str(write_small_causal(tmp_path / "model"))
    queries = make_queries(["u0", "u1", "u2"], [0, 1, 2])
    with serve_chat(make_echo(load_model(folder))) as server:
        model = LMLikelihood(llm=make_model(server, concurrency=1), debias=True)
        with stage_context(reply_folder=tmp_path / "replies"), collect_warnings():
            before = model.plan_requests(queries, 3, data)
            lists = recommend(model, data)
            after = model.plan_requests(queries, 3, data)
            again = recommend(model, data)
    assert (len(before), len(server.payloads)) == (15, 15)  # five titles: two users, neutral
    assert not any(request.is_stored for request in before)
    assert all(request.is_stored for request in after)
    assert all(request.completion_tokens == 0 for request in before)
    assert [array.tolist() for array in lists[:1]] == [array.tolist() for array in again[:1]]


def test_a_rejected_title_is_not_ranked_and_counted() -> None:
    reply = make_echo_reply(["I like", " Up"], [None, -1.0])
    refused = make_error(400, "bad title")
    with serve_chat(lambda sent: Answer(reply) if "Up" in sent["prompt"] else refused) as server:
        scorer = ServedScorer(make_model(server, concurrency=1, retries=0), [" Up", " Down"])
        with collect_warnings() as warnings:
            (scores,) = scorer.score_after(["I like"])
    assert scores[0] == -1.0
    assert np.isnan(scores[1])
    assert "1 titles without a likelihood are not ranked" in warnings


@pytest.mark.parametrize(
    ("settings", "where"),
    [
        ({}, ""),
        ({"model": "m", "llm": LanguageModel(model="m")}, ""),
        ({"llm": LanguageModel(model="m", provider="anthropic")}, "llm"),
        ({"llm": LanguageModel(model="m"), "revision": "main"}, "revision"),
        ({"llm": LanguageModel(model="m"), "precision": "bfloat16"}, "precision"),
    ],
)
def test_exactly_one_model_with_its_own_settings_is_accepted(
    settings: dict[str, Any], where: str
) -> None:
    with pytest.raises(Contradiction) as caught:
        LMLikelihood(**settings)
    assert caught.value.where == where
    assert caught.value.remedy
