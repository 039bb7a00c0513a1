"""A chat model may recommend a film of the catalogue that no training interaction has."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

import recbias
from support.chat.chat_server import serve_chat
from support.worlds.film_worlds import make_wok, pivot, recommend, write_films

UNRATED = 30
"""A film of the items table without interactions."""

HISTORIES = {"u1": [1, 2], "u2": [1, 3], "u3": [1, 2]}
"""Films 1, 2 and 3 have popularity 3, 2 and 1."""

RAW = [
    {"name": name, "corrected": False, "label": name}
    for name in ("log_popularity_difference", "popularity_lift")
]
METRICS = [*RAW, "gini_difference", "ARP", "unmatched"]


def choose(seen: list[int]) -> list[int]:
    """Return the films that the server recommends: only the unrated one where 3 was seen."""
    return [UNRATED] if 3 in seen else [3, UNRATED]


def run_films(folder: Path, **changes: Any) -> recbias.Run:
    films = write_films(folder, HISTORIES)
    with serve_chat(recommend(choose)) as server:
        return films.run([make_wok(server)], **{"k": 2, "metrics": METRICS, **changes})


def test_an_unrated_film_is_excluded_from_the_log_popularity_and_counted(tmp_path: Path) -> None:
    run = run_films(tmp_path)
    row = run.metrics[run.metrics["metric"] == "log_popularity_difference"].iloc[0]
    # u1 and u3: ln 1 of film 3 minus (ln 3 + ln 2) / 2; u2 has no film with a logarithm
    assert row["value"] == pytest.approx(-(math.log(3) + math.log(2)) / 2)
    assert (row["n"], row["undefined"]) == (2, 1)
    warnings = json.loads((run.folder / "manifest.json").read_text())["warnings"]
    (warning,) = [text for text in warnings if "popularity 0" in text]
    assert "3 positions of the lists hold an item of popularity 0 and are excluded" in warning


def test_a_film_whose_only_rating_is_held_out_does_not_stop_the_run(tmp_path: Path) -> None:
    films = write_films(tmp_path, {"u1": [1, 2, 9], "u2": [1, 2], "u3": [1, 2]})
    split = {"name": "leave_one_out", "which": "last"}
    with serve_chat(recommend(lambda seen: [9] if 2 in seen else [2])) as server:
        run = films.run([make_wok(server)], k=1, split=split, metrics=["HR", *METRICS])
    values, undefined = pivot(run), run.metrics.set_index("metric")["undefined"]
    assert values["WOK", "HR", ""] == 1.0  # the film is a hit for u1, and so is 2 for the others
    assert undefined["log_popularity_difference"] == 1
    # in training 1 has popularity 3 and 2 has 1: ln 1 - ln 3 for u2 and u3
    assert values["WOK", "log_popularity_difference", ""] == pytest.approx(-math.log(3))
