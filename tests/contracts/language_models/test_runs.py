"""Runs against servers whose behaviour is known: the measured values equal the known ones."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import recbias
from recbias.core.errors import UserError
from support.chat.chat_server import Answer, Script, make_error, make_reply, serve_chat
from support.worlds.film_worlds import (
    FilmWorld,
    get_lists,
    get_units,
    make_wok,
    pivot,
    read_history,
    recommend,
    recommend_most_popular,
    write_films,
    write_random_films,
)

INVENTED = ("Quantum Pelican (1999)", "Waltz of Zinc (2001)", "Uphill Both Ways (1987)")


@pytest.fixture
def films(tmp_path: Path, rng: np.random.Generator) -> FilmWorld:
    return write_random_films(tmp_path, rng)


def list_items(run: recbias.Run, model: str) -> list[list[str]]:
    lists = get_lists(run)
    return lists[lists["model"] == model][["query_id", "item_id"]].to_numpy().tolist()


def test_server_that_recommends_the_most_popular_titles_equals_mostpop(films: FilmWorld) -> None:
    metrics = ["HR@1", "HR", "nDCG", "log_popularity_difference", "popularity_lift", "unmatched"]
    split = {"name": "leave_one_out", "which": "last"}
    train = FilmWorld(films.folder, {user: seen[:-1] for user, seen in films.histories.items()})
    with serve_chat(recommend_most_popular(train)) as server:
        run = films.run(["MostPop", make_wok(server)], metrics=metrics, split=split)
    assert list_items(run, "MostPop") == list_items(run, "WOK")
    values = pivot(run)
    assert values["WOK", "HR", ""] > 0
    for model, metric, target in list(values):
        if model == "MostPop":
            assert values["WOK", metric, target] == values["MostPop", metric, target]


RAW = {"name": "log_popularity_difference", "corrected": False, "label": "bias"}


@pytest.mark.parametrize(
    ("chosen", "difference"),
    [
        # the histories hold films 4-6, each of popularity 2: their mean is ln 2
        ([1, 2, 3], math.log(8) - math.log(2)),  # films 1-3 have popularity 8
        ([1, 7], (math.log(8) + math.log(2)) / 2 - math.log(2)),  # film 7 has 2
        ([7, 8, 9], 0.0),
        ([10, 11], -math.log(2)),  # films 10 and 11 have 1
    ],
)
def test_planted_log_popularity_difference_is_measured(
    tmp_path: Path, chosen: Sequence[int], difference: float
) -> None:
    fans = {f"fan{number}": [1, 2, 3] for number in range(8)}
    others = {"a": [7, 8, 9, 10], "b": [7, 8, 9, 11]}
    world = write_films(tmp_path, {"u1": [4, 5, 6], "u2": [4, 5, 6], **fans, **others})
    with serve_chat(recommend(lambda seen: chosen if seen == [4, 5, 6] else [])) as server:
        run = world.run([make_wok(server)], metrics=[RAW])
    values = get_units(run).set_index(["metric", "unit_id"])["value"]
    measured = values["bias"]
    assert measured[["u1", "u2"]].tolist() == pytest.approx([difference] * 2)
    assert measured.drop(["u1", "u2"]).isna().all()  # no list


def refuse(_: Any) -> Answer:
    return Answer(make_reply("I cannot help with that.", "content_filter"))


REASONS: dict[str, tuple[Script, dict[str, int]]] = {
    "invents": (recommend(lambda seen: [*unseen(seen, 3), *INVENTED[:2]]), {"unknown": 2}),
    "repeats": (recommend(lambda seen: unseen(seen, 1) * 5), {"repeated": 4}),
    "repeats what it invents": (
        recommend(lambda _: [INVENTED[0]] * 5),
        {"unknown": 1, "repeated": 4},
    ),
    "recommends the history": (recommend(lambda seen: seen[:5]), {"watched": 5}),
    "recommends new films": (
        recommend(lambda seen: [*unseen(seen, 3), "Quantum Pelican (2024)", "Pax (2020)"]),
        {"newer": 2},
    ),
    "stops early": (recommend(lambda seen: unseen(seen, 2)), {"missing": 3}),
    "refuses": (refuse, {"missing": 5}),
    "writes nothing": (lambda _: Answer(make_reply(" ")), {"missing": 5}),
    "is cut": (lambda _: Answer(make_reply("1. Amber Harbour", "length")), {"missing": 5}),
    "writes prose": (lambda _: "What a fine taste you have. Enjoy your evening!", {"format": 5}),
}
"""Servers, and the number of invalid ranks of each reply by reason."""


def unseen(seen: Iterable[int], n: int) -> list[int | str]:
    films: list[int | str] = [*range(1, 31)]
    return [film for film in films if film not in set(seen)][:n]


@pytest.mark.parametrize("server", REASONS)
def test_invalid_ranks_are_counted_by_reason(films: FilmWorld, server: str) -> None:
    script, expected = REASONS[server]
    with serve_chat(script) as chat:
        values = pivot(films.run(["Random", make_wok(chat, year_limit=2010)]))
    counts = {
        target.removeprefix("reason="): value
        for (model, metric, target), value in values.items()
        if model == "WOK" and metric == "unmatched" and target
    }
    names = ("format", "watched", "repeated", "newer", "unknown", "missing")
    assert counts == {name: expected.get(name, 0) for name in names}
    assert values["WOK", "unmatched", ""] == sum(expected.values())
    assert values["Random", "unmatched", ""] == 0


def test_known_share_of_invented_titles_is_measured(films: FilmWorld) -> None:
    # user u<n> is told n % 4 invented titles: of 20 users (0 + 1 + 2 + 3) / 4 = 1.5 in 5 titles
    users = {tuple(seen): int(user[1:]) for user, seen in films.histories.items()}

    def choose(seen: list[int]) -> list[int | str]:
        n_invented = users[tuple(seen)] % 4
        return [*INVENTED[:n_invented], *unseen(seen, 5 - n_invented)]

    assert len(users) == 20
    with serve_chat(recommend(choose)) as server:
        run = films.run([make_wok(server)])
    assert pivot(run)["WOK", "unmatched", ""] == 1.5
    lists = get_lists(run).set_index(["query_id", "rank"])["item_id"]
    assert lists["u1", 1] == "(unknown, rank 1) Quantum Pelican (1999)"  # it keeps its rank
    assert lists["u1", 2] == str(unseen(films.histories["u1"], 1)[0])


def test_repeated_run_and_offline_run_send_nothing(films: FilmWorld) -> None:
    variants: list[dict[str, Any]] = [
        {},
        {"label": "mitigate", "mitigation": "mitigate"},
        {"label": "own", "mitigation": "Prefer films about ships."},
    ]
    with serve_chat(recommend(lambda seen: unseen(seen, 5))) as server:
        models = [make_wok(server, **variant) for variant in variants]
        first = films.run(models)
        assert len(server.payloads) == 60  # 20 users, 3 prompts
        assert len(set(server.list_prompts())) == 60
        again = films.run(models)
        recomputed = films.run(models, fresh=True)
        assert len(server.payloads) == 60
    offline = films.run(models, offline=True, fresh=True)  # the server is not there any more
    for run in (again, recomputed, offline):
        pd.testing.assert_frame_equal(run.metrics, first.metrics)
        pd.testing.assert_frame_equal(get_lists(run), get_lists(first))


def test_offline_run_without_replies_is_refused(films: FilmWorld) -> None:
    with (
        serve_chat() as server,
        pytest.raises(UserError, match="20 replies of small are not stored"),
    ):
        films.run([make_wok(server)], offline=True)
    assert not server.payloads


@pytest.mark.parametrize("stop", ["budget", "refusal"])
def test_stopped_run_goes_on_with_the_replies_that_arrived(films: FilmWorld, stop: str) -> None:
    script = recommend_most_popular(films)
    answered: list[list[int]] = []
    n_allowed = 7 if stop == "refusal" else 20

    def answer(payload: dict[str, Any]) -> Answer | str:
        if len(answered) == n_allowed:
            return make_error(401, "no such key")
        answered.append(read_history(payload))
        return script(payload)

    limits: dict[str, Any] = {"budget": {"requests": 7}} if stop == "budget" else {}
    with serve_chat(answer) as server:
        stopped = films.run(["MostPop", make_wok(server, llm={"concurrency": 1, **limits})])
        assert set(stopped.metrics["model"]) == {"MostPop"}  # which does not wait for the server
        assert len(answered) == 7
        n_sent, n_allowed = len(server.payloads), 20
        complete = films.run([make_wok(server)])
        assert len(server.payloads) - n_sent == 13
    assert len({tuple(films) for films in answered}) == 20
    assert pivot(complete)["WOK", "unmatched", ""] == 0
