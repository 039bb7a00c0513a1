"""Films with titles and years as tables, and scripted replies that recommend them."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import recbias
from support.chat.chat_server import Answer, ChatServer

PLACES = ("Harbour", "Orchard", "Lantern", "Glacier", "Meadow", "Foundry")
COLOURS = ("Amber", "Crimson", "Silver", "Violet", "Emerald")
TITLES = tuple(f"{colour} {place}" for place in PLACES for colour in COLOURS)
"""Titles of 30 films; film 1 is ``Amber Harbour`` of 1971, film 2 ``Crimson Harbour`` of 1972."""


def show(film: int) -> str:
    """Return a film as in a prompt or reply: ``Amber Harbour (1971)``."""
    return f"{TITLES[film - 1]} ({1970 + film})"


@dataclass(frozen=True)
class FilmWorld:
    """Films and histories in a folder.

    Args:
        folder: The folder.
        histories: The films of each user, from 1.
    """

    folder: Path
    histories: Mapping[str, Sequence[int]]

    def list_most_popular(self) -> list[int]:
        """Return the films by decreasing popularity, then by number."""
        counts = Counter(film for films in self.histories.values() for film in films)
        return sorted(counts, key=lambda film: (-counts[film], film))

    def make_spec(self, **changes: Any) -> dict[str, Any]:
        """Return a spec without models on these films; None removes a key."""
        tables = {"interactions": "interactions.csv", "items": "items.csv"}
        spec = {
            "name": "films",
            "dataset": {
                "name": "tables",
                **{table: str(self.folder / file) for table, file in tables.items()},
            },
            "k": 5,
            "metrics": ["log_popularity_difference", "unmatched"],
            "report": {"formats": ["csv"]},
        }
        spec |= changes
        return {key: value for key, value in spec.items() if value is not None}

    def run(
        self, models: Sequence[Any], *, offline: bool = False, fresh: bool = False, **changes: Any
    ) -> recbias.Run:
        """Run the spec of some models in the folder of the films."""
        spec = self.make_spec(models=models, **changes)
        return recbias.run(spec, out=self.folder / "results", offline=offline, fresh=fresh)


def write_films(
    folder: Path, histories: Mapping[str, Sequence[int]], titles: Sequence[str] = ()
) -> FilmWorld:
    """Write histories, the oldest film first, and items with titles, by default all films."""
    rows = [
        (user, film, time)
        for user, films in histories.items()
        for time, film in enumerate(films, 1)
    ]
    shown = titles or [show(film) for film in range(1, len(TITLES) + 1)]
    _write(folder / "interactions.csv", ("user_id", "item_id", "timestamp"), rows)
    _write(folder / "items.csv", ("item_id", "title"), enumerate(shown, 1))
    return FilmWorld(folder, histories)


def _write(path: Path, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream).writerows([header, *rows])


def write_random_films(folder: Path, rng: np.random.Generator, n_users: int = 20) -> FilmWorld:
    """Write users with 8 of the films each, the first of which are the most popular."""
    chances = 1.0 / np.arange(1, len(TITLES) + 1)
    chances /= chances.sum()
    histories = {
        f"u{user}": (rng.choice(len(TITLES), 8, replace=False, p=chances) + 1).tolist()
        for user in range(n_users)
    }
    return write_films(folder, histories)


def make_wok(server: ChatServer, **settings: Any) -> dict[str, Any]:
    """Return the entry of a model that asks the server, without delays between retries."""
    llm = {"model": "small", "base_url": server.base_url, "retries": 0}
    return {"name": "WOK", **settings, "llm": llm | settings.get("llm", {})}


def read_history(payload: Mapping[str, Any]) -> list[int]:
    """Return the films of the history in a request."""
    lines = payload["messages"][-1]["content"].splitlines()
    films = {f"- {show(film)}": film for film in range(1, len(TITLES) + 1)}
    return [films[line] for line in lines if line in films]


def write_list(titles: Iterable[str]) -> str:
    """Return a numbered list."""
    return "\n".join(f"{rank}. {title}" for rank, title in enumerate(titles, 1))


def recommend(
    choose: Callable[[list[int]], Iterable[int | str]],
) -> Callable[[dict[str, Any]], Answer | str]:
    """Return a script that recommends what ``choose`` returns for the films of a history."""

    def answer(payload: dict[str, Any]) -> str:
        chosen = choose(read_history(payload))
        return write_list(show(film) if isinstance(film, int) else film for film in chosen)

    return answer


def recommend_most_popular(
    world: FilmWorld, k: int = 5
) -> Callable[[dict[str, Any]], Answer | str]:
    """Return a script that recommends the most popular films that are not in the history."""
    films = world.list_most_popular()
    return recommend(lambda seen: [film for film in films if film not in seen][:k])


def get_lists(run: recbias.Run) -> pd.DataFrame:
    """Return the lists of a run."""
    assert run.lists is not None
    return run.lists


def get_units(run: recbias.Run) -> pd.DataFrame:
    """Return the values of a run for each query."""
    assert run.per_unit is not None
    return run.per_unit


def pivot(run: recbias.Run) -> dict[tuple[str, str, str], float]:
    """Return the values of a run by model, metric and target."""
    rows = run.metrics.fillna({"target": ""})
    keys = zip(rows["model"], rows["metric"], rows["target"], strict=True)
    return dict(zip(keys, rows["value"].tolist(), strict=True))
