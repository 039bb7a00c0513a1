from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import recbias
from recbias.core import context as context_module
from recbias.core.context import collect_warnings, stage_context
from recbias.core.dataset import AnyArray, Attributes, FloatArray, TrainingData
from recbias.core.errors import Contradiction, WrongType
from recbias.language.backends import LikelihoodBackend
from recbias.language.endpoints import ChatReply, ChatRequest, LanguageModel, Message
from recbias.language.likelihood import TextScorer
from recbias.language.local_models import load_model
from recbias.models import lm_likelihood
from recbias.models.lm_likelihood import LMLikelihood, ServedScorer
from recbias.testing import check_recommender
from support.chat.chat_requests import make_model
from support.chat.chat_server import Answer, make_error, serve_chat
from support.chat.echo_servers import make_echo, make_echo_reply
from support.models.small_causal import score_separately, write_small_causal
from support.worlds.query_sets import make_queries
from support.worlds.small_worlds import make_interactions

TITLES = ["Alien (1979)", "Heat (1995)", "Matrix, The (1999)", "Up", "Jaws (1975)", "Never seen"]
SHOWN = ["Alien (1979)", "Heat (1995)", "The Matrix (1999)", "Up", "Jaws (1975)"]
PAIRS = [(0, 0), (0, 1), (1, 2), (1, 3), (1, 0), (2, 4)]
TIMES = [2, 1, 1, 2, 3, 1]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_small_causal(tmp_path_factory.mktemp("model"))


@pytest.fixture
def data() -> TrainingData:
    """Return three users with histories and one without; the last item has no training row."""
    train = make_interactions(PAIRS, n_users=4, n_items=len(TITLES), times=TIMES)
    titles = pd.DataFrame({"title": TITLES})
    return TrainingData(train, items=Attributes(train.item_ids, titles, "items"))


class ScriptedScorer:
    """Scores each title by the log of its length, or by its place after a neutral prompt."""

    def __init__(self, texts: list[str]) -> None:
        self.texts, self.contexts = texts, list[str]()

    def score(self, context: str) -> FloatArray:
        self.contexts.append(context)
        if context == "neutral":
            return np.array([0.0, -1.0, -2.0, -3.0, -4.0])
        return np.array([-1.0, -2.5, -2.0, -5.0, -3.0])

    def score_after(self, contexts: list[str]) -> Iterator[FloatArray]:
        return map(self.score, contexts)


@pytest.fixture
def scorers(monkeypatch: pytest.MonkeyPatch) -> list[ScriptedScorer]:
    """Replace the model by scripted scorers; return those that are made."""
    made: list[ScriptedScorer] = []

    def make_scorer(_: object, texts: list[str]) -> ScriptedScorer:
        made.append(ScriptedScorer(texts))
        return made[-1]

    monkeypatch.setattr(lm_likelihood, "load_model", lambda *_, **__: None)
    monkeypatch.setattr(TextScorer, "from_texts", make_scorer)
    return made


def recommend(
    model: LMLikelihood, data: TrainingData, users: list[int], k: int = 3
) -> tuple[list[list[int]], AnyArray]:
    fitted = model.fit(data, np.random.default_rng(0))
    with collect_warnings():
        lists = fitted.recommend(make_queries([f"u{user}" for user in users], users), k, data)
    return lists.items.tolist(), lists.scores


def test_debiasing_subtracts_the_score_after_the_neutral_prompt(
    scorers: list[ScriptedScorer], data: TrainingData
) -> None:
    # -1 - 0, -2.5 + 1, -2 + 2, -5 + 3, -3 + 4 = -1, -1.5, 0, -2, 1;
    # user 0 has watched 0 and 1: 4 (1), 2 (0), 3 (-2)
    model = LMLikelihood(model="scripted", debias=True, neutral_prompt="neutral")
    items, scores = recommend(model, data, [0])
    assert items == [[4, 2, 3]]
    assert scores.tolist() == [[1.0, 0.0, -2.0]]
    assert scorers[0].contexts.count("neutral") == 1


@pytest.mark.parametrize("debias", [False, True])
def test_the_lists_are_those_of_one_pass_for_each_title(
    folder: Path, data: TrainingData, debias: bool
) -> None:
    model = LMLikelihood(model=str(folder), debias=debias)
    items, scores = recommend(model, data, [0], k=2)
    causal = load_model(str(folder))
    prompt = model.prompt.replace("{history}", "- Heat (1995)\n- Alien (1979)")
    titles = [f" {title}" for title in SHOWN]
    expected = score_separately(causal, prompt, titles)
    if debias:
        expected -= score_separately(causal, model.neutral_prompt, titles)
    unseen = sorted([2, 3, 4], key=lambda item: -expected[item])
    assert items == [unseen[:2]]
    assert scores[0] == pytest.approx(expected[unseen[:2]], abs=1e-5)


def test_the_contract_of_recommenders_is_met(folder: Path, data: TrainingData) -> None:
    with collect_warnings():
        check_recommender(LMLikelihood(model=str(folder)), data=data, learns=False)


class MemoryStore:
    """Keeps the last checkpoint."""

    arrays: Mapping[str, AnyArray] | None = None

    def load(self) -> Mapping[str, AnyArray] | None:
        return self.arrays

    def save(self, arrays: Mapping[str, AnyArray]) -> None:
        self.arrays = {name: array.copy() for name, array in arrays.items()}


class Interrupted(Exception):
    """What takes the place of a kill inside a test."""


def test_users_that_a_checkpoint_holds_are_not_scored_again(
    scorers: list[ScriptedScorer], data: TrainingData, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(context_module, "MIN_CHECKPOINT_INTERVAL", 0.0)
    monkeypatch.setattr(context_module, "CHECKPOINT_TIME_SHARE", 1e9)
    model, store = LMLikelihood(model="scripted"), MemoryStore()
    expected, expected_scores = recommend(model, data, [0, 1, 2])

    def interrupt(_: str, completed: int, __: int) -> None:
        if completed == 2:
            raise Interrupted

    with stage_context(checkpoint_store=store, writes_lists=True):
        with pytest.raises(Interrupted), stage_context(on_progress=interrupt):
            recommend(model, data, [0, 1, 2])
        items, scores = recommend(model, data, [0, 1, 2])
    assert items == expected
    assert np.array_equal(scores, expected_scores, equal_nan=True)
    assert [len(scorer.contexts) for scorer in scorers] == [3, 2, 1]


@pytest.mark.parametrize(
    ("settings", "where"),
    [
        ({"prompt": "no place"}, "prompt"),
        ({"prompt": "{history} {history}"}, "prompt"),
        ({"neutral_prompt": "{history}"}, "neutral_prompt"),
        ({"neutral_prompt": " "}, "neutral_prompt"),
    ],
)
def test_prompts_without_their_text_or_place_are_refused(
    settings: dict[str, Any], where: str
) -> None:
    with pytest.raises(WrongType) as caught:
        LMLikelihood(model="scripted", **settings)
    assert caught.value.where == where
    assert caught.value.remedy


@pytest.fixture(scope="module")
def folder_of_likelihood_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_small_causal(tmp_path_factory.mktemp("model"))


def make_spec(folder_of_likelihood_runs: Path, model: object) -> dict[str, Any]:
    """Write ten users who rated four of eight films each; return a spec about them."""
    rng = np.random.default_rng(4)
    rows = [
        {"user_id": f"u{user}", "item_id": f"i{item}", "rating": 5, "timestamp": rank}
        for user in range(10)
        for rank, item in enumerate(rng.permutation(8)[:4])
    ]
    pd.DataFrame(rows).to_csv(folder_of_likelihood_runs / "ratings.csv", index=False)
    films = {
        "item_id": [f"i{n}" for n in range(8)],
        "title": [f"Film {'abcdefgh'[n]}" for n in range(8)],
    }
    pd.DataFrame(films).to_csv(folder_of_likelihood_runs / "films.csv", index=False)
    return {
        "name": "titles",
        "seed": 1,
        "dataset": {
            "name": "tables",
            "interactions": str(folder_of_likelihood_runs / "ratings.csv"),
            "items": str(folder_of_likelihood_runs / "films.csv"),
        },
        "split": {"name": "leave_one_out", "which": "random"},
        "k": 3,
        "models": [
            "MostPop",
            {"name": "LMLikelihood", "model": str(model)},
            {"name": "LMLikelihood", "label": "debiased", "model": str(model), "debias": True},
        ],
        "metrics": ["HR", "log_popularity_difference", "unmatched"],
        "tests": ["paired_t"],
        "report": {"formats": ["csv"]},
    }


def test_a_run_compares_it_with_baselines_and_repeats_nothing(
    folder_of_likelihood_runs: Path, tmp_path: Path
) -> None:
    spec = make_spec(tmp_path, folder_of_likelihood_runs)
    run = recbias.run(spec, out=tmp_path / "results")
    table = run.metrics.pivot_table(index="model", columns="metric", values="value")
    assert set(table.index) == {"MostPop", "LMLikelihood", "debiased"}
    assert (table["unmatched"] == 0).all()
    assert run.metrics["value"].notna().all()
    assert recbias.run(spec, out=tmp_path / "results").folder == run.folder


def test_other_weights_in_the_folder_are_scored_again(tmp_path: Path) -> None:
    folder_of_likelihood_runs = write_small_causal(tmp_path / "model")
    spec = make_spec(tmp_path, folder_of_likelihood_runs)
    first = recbias.run(spec, out=tmp_path / "results")
    write_small_causal(folder_of_likelihood_runs, "gpt2")
    second = recbias.run(spec, out=tmp_path / "results")
    assert first.lists is not None
    assert second.lists is not None
    assert not second.lists["score"].equals(first.lists["score"])


SERVED_LIKELIHOOD_TITLES = [
    "Alien (1979)",
    "Heat (1995)",
    "Matrix, The (1999)",
    "Up",
    "L'\u00c9t\u00e9 (1994)",
]


def read_reply(body: dict[str, Any], request: ChatRequest) -> ChatReply:
    backend = LikelihoodBackend(LanguageModel(model="small", base_url="http://127.0.0.1:1/v1"))
    return backend.read_reply(body, request)


@pytest.fixture
def data_of_served_likelihood() -> TrainingData:
    """Return two users with histories and one without."""
    pairs = [(0, 0), (0, 1), (1, 2), (1, 3), (1, 4)]
    train = make_interactions(pairs, n_users=3, n_items=5, times=[2, 1, 1, 2, 3])
    titles = pd.DataFrame({"title": SERVED_LIKELIHOOD_TITLES})
    return TrainingData(train, items=Attributes(train.item_ids, titles, "items"))


def recommend_of_served_likelihood(
    model: LMLikelihood, data_of_served_likelihood: TrainingData
) -> tuple[AnyArray, AnyArray]:
    fitted = model.fit(data_of_served_likelihood, np.random.default_rng(0))
    with collect_warnings():
        lists = fitted.recommend(
            make_queries(["u0", "u1", "u2"], [0, 1, 2]), 3, data_of_served_likelihood
        )
    return lists.items, lists.scores


def make_request(context: str, text: str) -> ChatRequest:
    model = LanguageModel(model="small", base_url="http://127.0.0.1:1/v1")
    return model.build_likelihood_request(Message("user", context), text)


@pytest.mark.parametrize("adds_start", [False, True])
@pytest.mark.parametrize("debias", [False, True])
def test_a_served_model_ranks_as_in_the_process(
    tmp_path: Path, data_of_served_likelihood: TrainingData, *, adds_start: bool, debias: bool
) -> None:
    folder = str(write_small_causal(tmp_path / "model", adds_start=adds_start))
    expected, expected_scores = recommend_of_served_likelihood(
        LMLikelihood(model=folder, debias=debias), data_of_served_likelihood
    )
    with serve_chat(make_echo(load_model(folder))) as server:
        model = LMLikelihood(llm=make_model(server, concurrency=1), debias=debias)
        items, scores = recommend_of_served_likelihood(model, data_of_served_likelihood)
    assert items.tolist() == expected.tolist()
    assert scores == pytest.approx(expected_scores, abs=1e-4, nan_ok=True)
    assert {*server.paths} == {"/v1/completions"}
    assert len(server.payloads) == 5 * (2 + debias)  # five candidates; two users have a history
    sent = {name: server.payloads[0][name] for name in ("echo", "logprobs", "max_tokens")}
    assert sent == {"echo": True, "logprobs": 1, "max_tokens": 0}


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


def test_replies_are_stored_and_planned(
    tmp_path: Path, data_of_served_likelihood: TrainingData
) -> None:
    folder = str(write_small_causal(tmp_path / "model"))
    queries = make_queries(["u0", "u1", "u2"], [0, 1, 2])
    with serve_chat(make_echo(load_model(folder))) as server:
        model = LMLikelihood(llm=make_model(server, concurrency=1), debias=True)
        with stage_context(reply_folder=tmp_path / "replies"), collect_warnings():
            before = model.plan_requests(queries, 3, data_of_served_likelihood)
            lists = recommend_of_served_likelihood(model, data_of_served_likelihood)
            after = model.plan_requests(queries, 3, data_of_served_likelihood)
            again = recommend_of_served_likelihood(model, data_of_served_likelihood)
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
        ({"llm": LanguageModel(model="m", temperature=0.7)}, "llm"),
    ],
)
def test_exactly_one_model_with_its_own_settings_is_accepted(
    settings: dict[str, Any], where: str
) -> None:
    with pytest.raises(Contradiction) as caught:
        LMLikelihood(**settings)
    assert caught.value.where == where
    assert caught.value.remedy
