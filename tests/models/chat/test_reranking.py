"""Runs of ``LMRerank`` against scripted servers whose behaviour is known."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from recbias.core.context import collect_warnings
from recbias.core.errors import UserError
from recbias.testing import check_recommender
from support.chat.chat_requests import make_model
from support.chat.chat_server import serve_chat
from support.commands import invoke_recbias
from support.worlds.film_worlds import (
    TITLES,
    FilmWorld,
    get_lists,
    get_units,
    pivot,
    show,
    write_films,
    write_list,
    write_random_films,
)
from support.worlds.reranking_worlds import make_rerank, read_candidates, reorder

ORDER_METRICS = ["order_agreement", "first_slot_share"]


@pytest.fixture
def films(tmp_path: Path, rng: np.random.Generator) -> FilmWorld:
    return write_random_films(tmp_path, rng)


def list_items(run: Any, model: str) -> dict[str, list[str]]:
    rows = get_lists(run)
    lists = rows[rows["model"] == model].groupby("query_id", observed=True)["item_id"]
    return {str(query): items.tolist() for query, items in lists}


def read_responses(run: Any) -> list[dict[str, Any]]:
    lines = (run.folder / "responses.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def test_a_server_that_follows_the_presentation_has_a_first_slot_share_of_one(
    films: FilmWorld,
) -> None:
    with serve_chat(reorder(lambda shown: shown)) as server:
        run = films.run([make_rerank(server, orders=40)], metrics=ORDER_METRICS)
    values = pivot(run)
    assert values["LMRerank", "first_slot_share", ""] == 1
    # random orders of 6: the standard deviation of tau is 0.29, of the mean over 20 users 0.002
    assert abs(values["LMRerank", "order_agreement", ""]) < 0.02
    assert len(server.payloads) == len(set(server.list_prompts()))  # an order may occur twice


def test_a_server_with_an_order_of_its_own_has_an_agreement_of_one(films: FilmWorld) -> None:
    with serve_chat(reorder(sorted)) as server:
        run = films.run([make_rerank(server, orders=40)], metrics=ORDER_METRICS, k=6)
    values = pivot(run)
    assert values["LMRerank", "order_agreement", ""] == 1
    # 800 orders of 6 candidates: 1/6 within four standard errors of 0.013
    assert abs(values["LMRerank", "first_slot_share", ""] - 1 / 6) < 0.053
    titles = {str(film): show(film) for film in range(1, len(TITLES) + 1)}
    for items in list_items(run, "LMRerank").values():
        assert [titles[item] for item in items] == sorted(titles[item] for item in items)


def test_the_thought_before_a_reply_has_no_effect(films: FilmWorld) -> None:
    def script(payload: dict[str, Any]) -> str:
        shown = write_list(read_candidates(payload))
        return f"<think>\n{shown}\nBetter by name.\n</think>\n{reorder(sorted)(payload)}"

    with serve_chat(script) as server:
        run = films.run([make_rerank(server)], metrics=ORDER_METRICS)
    assert pivot(run)["LMRerank", "order_agreement", ""] == 1


def test_what_replies_invent_and_leave_out_is_counted(films: FilmWorld) -> None:
    # each reply invents one title and names three of the six candidates
    choose = reorder(lambda shown: ["Nowhere (1990)", *sorted(shown)[::2]])
    with serve_chat(choose) as server:
        run = films.run(["ItemKNN", make_rerank(server)], metrics=[*ORDER_METRICS, "unmatched"])
    facts = next(
        stage["facts"]
        for stage in run.manifest["stages"]
        if stage["kind"] == "answer" and stage["model"] == "LMRerank"
    )
    assert facts["candidates_left_out"] == 80 * 3
    assert facts["titles_rejected.unknown"] == 80
    assert pivot(run)["LMRerank", "unmatched", ""] == 0
    parsed = read_responses(run)[0]["parsed"]
    assert parsed[0] == {"title": "Nowhere (1990)", "outcome": "unknown"}
    assert [rank["outcome"] for rank in parsed[1:]] == ["matched"] * 3 + ["missing"] * 2


def test_replies_without_candidates_leave_the_lists_as_they_were(films: FilmWorld) -> None:
    with serve_chat(lambda _: "I am sorry.") as server:
        models = [{"name": "ItemKNN", "neighbors": 30}, make_rerank(server)]
        run = films.run(models, metrics=[*ORDER_METRICS, "unmatched"])
    assert list_items(run, "LMRerank") == list_items(run, "ItemKNN")
    rows = get_units(run)[get_units(run)["metric"].isin(ORDER_METRICS)]
    assert rows["value"].isna().all()
    message = "80 of 80 replies name no candidate"
    assert [text for text in run.manifest["warnings"] if message in str(text)]


def test_other_models_are_undefined(films: FilmWorld) -> None:
    with serve_chat(reorder(sorted)) as server:
        run = films.run(["MostPop", make_rerank(server)], metrics=ORDER_METRICS)
    assert np.isnan(pivot(run)["MostPop", "order_agreement", ""])


def test_the_items_after_the_candidates_keep_their_order(films: FilmWorld) -> None:
    with serve_chat(reorder(lambda shown: sorted(shown, reverse=True))) as server:
        models = [{"name": "ItemKNN", "neighbors": 30}, make_rerank(server)]
        run = films.run(models, metrics=ORDER_METRICS, k=9)
    plain, reordered = list_items(run, "ItemKNN"), list_items(run, "LMRerank")
    for query, items in plain.items():
        assert sorted(reordered[query][:6]) == sorted(items[:6])
        assert reordered[query][6:] == items[6:]
    scores = (
        get_lists(run).query("model == 'LMRerank'").groupby("query_id", observed=True)["score"]
    )
    assert all(values.is_monotonic_decreasing for _, values in scores)


def test_each_request_is_a_line_of_the_responses(films: FilmWorld) -> None:
    with serve_chat(reorder(sorted)) as server:
        run = films.run([make_rerank(server)], metrics=ORDER_METRICS)
    lines = read_responses(run)
    assert len(lines) == len(server.payloads) == 20 * 4
    assert [line["order"] for line in lines[:5]] == [1, 2, 3, 4, 1]
    assert len({(line["query_id"], line["order"]) for line in lines}) == len(lines)
    assert {line["prompt"] for line in lines} == set(server.list_prompts())


def test_orders_are_those_of_the_seed_and_the_query(films: FilmWorld) -> None:
    def list_orders(**changes: Any) -> set[tuple[str, ...]]:
        with serve_chat(reorder(sorted)) as server:
            films.run([make_rerank(server)], metrics=ORDER_METRICS, fresh=True, **changes)
        return {tuple(read_candidates(payload)) for payload in server.payloads}

    everyone = list_orders()
    assert list_orders() == everyone
    assert list_orders(queries={"name": "users", "where": "history_length > 7"}) == everyone
    assert list_orders(queries={"name": "users", "sample": 5}) < everyone
    assert list_orders(seed=7) != everyone


def test_the_candidate_model_is_trained_once_for_both(films: FilmWorld) -> None:
    with serve_chat(reorder(sorted)) as server:
        models = [make_rerank(server), {"name": "ItemKNN", "neighbors": 30, "label": "K30"}]
        run = films.run([*models, "ItemKNN"], metrics=ORDER_METRICS)
    fits = [stage for stage in run.manifest["stages"] if stage["kind"] == "fit"]
    assert len(fits) == 2  # of 30 neighbours and of the default


def test_a_random_candidate_model_gives_the_same_candidates_as_by_itself(
    films: FilmWorld,
) -> None:
    with serve_chat(lambda _: "nothing") as server:
        models = ["Random", make_rerank(server, candidates="Random")]
        run = films.run(models, metrics=ORDER_METRICS)
    assert list_items(run, "LMRerank") == list_items(run, "Random")


def test_accuracy_is_grouped_by_the_length_of_the_history(tmp_path: Path) -> None:
    histories = {f"u{user}": list(range(1, 5 + user % 2 * 6)) for user in range(8)}
    histories |= {f"v{user}": list(range(11, 20)) for user in range(4)}
    world = write_films(tmp_path, histories)
    metric = {"name": "HR", "by": "history_length < 8", "gap": "groups"}
    with serve_chat(reorder(sorted)) as server:
        run = world.run(
            [make_rerank(server)], metrics=[metric], split={"name": "leave_one_out"}, k=3
        )
    groups = run.metrics.set_index("group")["n"].to_dict()
    assert groups == {"history_length < 8": 4, "not history_length < 8": 8}


def test_a_query_without_history_keeps_the_list_of_the_other_model(tmp_path: Path) -> None:
    world = write_films(tmp_path, {"u1": [1, 2], "u2": [2, 3], "u4": [4, 5]})
    (tmp_path / "users.csv").write_text("user_id\nu1\nu2\nu3\nu4\n", encoding="utf-8")
    dataset = world.make_spec()["dataset"] | {"users": str(tmp_path / "users.csv")}
    with serve_chat(reorder(sorted)) as server, collect_warnings():
        model = make_rerank(server, candidates="MostPop", orders=1)
        run = world.run(["MostPop", model], metrics=["unmatched"], dataset=dataset)
    assert list_items(run, "LMRerank")["u3"] == list_items(run, "MostPop")["u3"]
    assert len(server.payloads) == 3
    message = "1 of 4 queries have no history or one candidate: not reordered"
    assert [text for text in run.manifest["warnings"] if message in str(text)]


def test_requests_are_planned_as_they_are_sent(films: FilmWorld, tmp_path: Path) -> None:
    with serve_chat(reorder(sorted)) as server:
        spec = films.make_spec(models=[make_rerank(server)], metrics=ORDER_METRICS)
        path = tmp_path / "spec.yaml"
        path.write_text(json.dumps(spec), encoding="utf-8")
        before = invoke_recbias("plan", str(path), folder=tmp_path)
        assert not server.payloads
        invoke_recbias("run", str(path), "--limit", "5", folder=tmp_path)
        after = invoke_recbias("plan", str(path), folder=tmp_path)
    assert "80 requests, 0 stored, 80 to send" in before.out
    assert "80 requests, 20 stored, 60 to send" in after.out


def test_a_mitigation_and_a_prompt_of_the_user_are_sent(films: FilmWorld) -> None:
    path = films.folder / "prompt.yaml"
    text = "template: |-\n  Seen: {history}\n  Sort {n_items}:\n  {candidates}\n"
    path.write_text(text, encoding="utf-8")
    with serve_chat(lambda _: "1. Nothing") as server:
        model = make_rerank(server, prompt=str(path), mitigation="minimize", orders=1)
        films.run([model], metrics=ORDER_METRICS)
    assert "Sort 6:\n- " in server.list_prompts()[0]
    assert "Prefer little-known" in server.list_prompts()[0]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"candidates": "ItemKN"}, "no model is called 'ItemKN'"),
        ({"candidates": {"name": "ItemKNN", "neighbours": 3}}, "not a setting of ItemKNN"),
        ({"candidates": {"name": "ItemKNN", "neighbors": 0}}, "neighbors: must be a whole number"),
        ({"candidates": {"name": "ItemKNN", "label": "a"}}, "has no label"),
        ({"candidates": 3}, "must be a name or a mapping"),
        ({"candidates": "nDCG"}, "nDCG is a metric"),
        ({"prompt": "watch_history"}, "watch_history"),
        ({"mitigation": "mitigat"}, "no mitigation is called 'mitigat'"),
        ({"n_candidates": 1}, "n_candidates: must be a whole number from 2"),
        ({"title": "name"}, "no column 'name'"),
        (
            {"candidates": {"name": "AttributeItemKNN", "attributes": ["nowhere"]}},
            "nowhere",
        ),
    ],
)
def test_faults_are_found_before_anything_is_sent(
    films: FilmWorld, settings: dict[str, Any], message: str
) -> None:
    with serve_chat() as server, pytest.raises(UserError) as error:
        films.run([make_rerank(server, **settings)], metrics=ORDER_METRICS)
    assert message in "\n".join(error.value.lines())
    assert not server.payloads


def test_a_prompt_without_candidates_is_refused(films: FilmWorld) -> None:
    path = films.folder / "prompt.yaml"
    path.write_text("template: |-\n  {history}\n  {n_items}\n", encoding="utf-8")
    with serve_chat() as server, pytest.raises(UserError, match=r"no slot \{candidates\}"):
        films.run([make_rerank(server, prompt=str(path))], metrics=ORDER_METRICS)


@collect_warnings()
def test_the_contract_of_recommenders_is_met(rng: np.random.Generator) -> None:
    from recbias.core.dataset import Attributes, TrainingData
    from recbias.core.plugins import SelectedModel
    from recbias.models.baselines import MostPop
    from recbias.models.lm_rerank import LMRerank
    from support.worlds.small_worlds import make_interactions

    pairs = [(user, item) for user in range(8) for item in rng.permutation(30)[:6].tolist()]
    train = make_interactions(pairs, n_items=30)
    titles = pd.DataFrame({"title": [show(film) for film in range(1, 31)]})
    data = TrainingData(train, items=Attributes(train.item_ids, titles, "item"))
    with serve_chat(reorder(sorted)) as server:
        candidates = SelectedModel("MostPop", MostPop())
        model = LMRerank(candidates=candidates, llm=make_model(server), orders=2)
        check_recommender(model, data=data, learns=False)


def test_the_spec_of_a_run_gives_the_same_run(films: FilmWorld, tmp_path: Path) -> None:
    with serve_chat(reorder(sorted)) as server:
        run = films.run([make_rerank(server)], metrics=ORDER_METRICS)
        n_sent = len(server.payloads)
        result = invoke_recbias("run", str(run.folder / "spec.yaml"), folder=tmp_path)
    assert result.code == 0
    assert len(server.payloads) == n_sent
