from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbias.core.context import collect_warnings
from recbias.core.errors import UserError
from recbias.models.lm_ranking import rank_candidates
from recbias.testing import check_recommender
from support.chat.chat_requests import make_model
from support.chat.chat_server import serve_chat
from support.commands import invoke_recbias
from support.worlds.film_worlds import (
    TITLES,
    FilmWorld,
    pivot,
    show,
    write_list,
    write_random_films,
)
from support.worlds.reranking_worlds import make_rerank, reorder

ORDER_METRICS = ["order_agreement", "first_slot_share"]


@pytest.fixture
def films(tmp_path: Path, rng: np.random.Generator) -> FilmWorld:
    return write_random_films(tmp_path, rng)


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


def test_the_candidate_model_is_trained_once_for_both(films: FilmWorld) -> None:
    with serve_chat(reorder(sorted)) as server:
        models = [make_rerank(server), {"name": "ItemKNN", "neighbors": 30, "label": "K30"}]
        run = films.run([*models, "ItemKNN"], metrics=ORDER_METRICS)
    fits = [stage for stage in run.manifest["stages"] if stage["kind"] == "fit"]
    assert len(fits) == 2  # of 30 neighbours and of the default


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


@collect_warnings()
def test_the_contract_of_recommenders_is_met(rng: np.random.Generator) -> None:
    from recbias.core.dataset import Attributes, TrainingData
    from recbias.core.plugins import SelectedModel
    from recbias.models.baselines import MostPop
    from recbias.models.lm_ranking import LMRerank
    from support.worlds.small_worlds import make_interactions

    pairs = [(user, item) for user in range(8) for item in rng.permutation(30)[:6].tolist()]
    train = make_interactions(pairs, n_items=30)
    titles = pd.DataFrame({"title": [show(film) for film in range(1, 31)]})
    data = TrainingData(train, items=Attributes(train.item_ids, titles, "item"))
    with serve_chat(reorder(sorted)) as server:
        candidates = SelectedModel("MostPop", MostPop())
        model = LMRerank(candidates=candidates, llm=make_model(server), orders=2)
        check_recommender(model, data=data, learns=False)


FILMS = [("Heat", 1995), ("Alien", 1979), ("Jaws", 1975), ("Ran", 1985)]
SHOWN = ["Heat (1995)", "Alien (1979)", "Jaws (1975)", "Ran (1985)"]


def rank(*titles: str) -> list[float]:
    (ranks,) = rank_candidates([write_list(titles)], FILMS, 90.0).ranks.tolist()
    return list(ranks)


def test_candidates_have_the_rank_of_the_reply() -> None:
    assert rank(SHOWN[2], SHOWN[0], SHOWN[3], SHOWN[1]) == [2, 4, 1, 3]


def test_candidates_that_are_left_out_follow_in_their_own_order() -> None:
    assert rank(SHOWN[3]) == [2, 3, 4, 1]


def test_a_title_of_two_candidates_is_the_better_one() -> None:
    films = [("Ran", 1985), ("Hamlet", 1996), ("Hamlet", 1996)]
    ranked = rank_candidates([write_list(["Hamlet (1996)"])], films, None)
    assert ranked.ranks.tolist() == [[2, 1, 3]]


@pytest.mark.parametrize("reply", ["", "I am sorry, I cannot do that.", "1. Casino (1995)"])
def test_a_reply_that_names_no_candidate_is_no_ranking(reply: str) -> None:
    ranked = rank_candidates([reply, write_list(SHOWN[::-1])], FILMS, 90.0)
    assert ranked.is_read.tolist() == [False, True]
    assert np.isnan(ranked.ranks[0]).all()
    order, means = ranked.order_candidates()
    assert order.tolist() == [3, 2, 1, 0]
    assert means.tolist() == [1, 2, 3, 4]


@given(st.lists(st.permutations(range(6)), min_size=1, max_size=4), st.integers(0, 6))
def test_ranks_are_a_permutation_that_begins_with_the_named_candidates(
    orders: list[list[int]], n_named: int
) -> None:
    films = [(title, 1970 + row) for row, title in enumerate(TITLES[:6])]
    replies = [
        write_list(f"{films[row][0]} ({films[row][1]})" for row in order[:n_named])
        for order in orders
    ]
    ranks = rank_candidates(replies, films, None).ranks
    for order, row in zip(orders, ranks, strict=True):
        if n_named == 0:
            assert np.isnan(row).all()
        else:
            rest = sorted(order[n_named:])
            assert np.argsort(row).tolist() == [*order[:n_named], *rest]


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
