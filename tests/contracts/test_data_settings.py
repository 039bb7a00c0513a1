"""Every setting of the datasets, queries and detectors has an effect; see ``test_settings``."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from contracts.test_settings import DATASET, ITEMS
from data.test_movielens import write_1m, write_csv
from data.test_sentences import write_pair
from data.test_sentences import write_release as write_chbias
from recbias.config.settings import read_settings
from recbias.core.context import collect_warnings
from recbias.data.declared import list_declared
from recbias.data.sentences import SentenceTables
from recbias.registry import REGISTRIES
from support.files.review_files import make_review, make_venue, write_reviews
from support.varied_settings import World

SENTENCES = (
    "id,pair_id,group,text,category\n1,p,old,He is 80.,age\n2,p,young,He is 20.,age\n"
    "3,q,old,He naps.,sleep\n4,q,young,She naps.,sleep\n"
)


def write(path: Path, text: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return str(path)


def write_tables(data: Path) -> dict[str, Any]:
    rows = "user_id,item_id,rating\nu,a,4\nv,b,2\nu,b,x\n"
    items = "item_id,price,kind,code\na,$5,New ,1\nb,7,new,2\nc,?,old,3\n"
    return {
        "base": {
            "interactions": write(data / "rows.csv", rows),
            "items": write(data / "items.csv", items),
            "bad_lines": "skip",
            "clean": {"trim": False},
        },
        "values": {
            "columns": [{"price": "cost"}],
            "types": [{"code": "text"}],
            "missing": [["?"], ["old"]],
            "interactions": [write(data / "more.csv", rows.replace("v,b", "u,c"))],
            "items": [write(data / "others.csv", items.replace("old", "older"))],
            "users": [write(data / "users.csv", "user_id,age\nu,3\nv,4\n")],
            "reviews": [write(data / "texts.csv", "user_id,item_id,text\nu,a,Nice\n")],
        },
    }


def write_movielens(name: str) -> Callable[[Path], dict[str, Any]]:
    def write_files(data: Path) -> dict[str, Any]:
        folder = data / name
        if name in {"ml-1m", "ml-10m"}:
            write_1m(folder, ratings="2::5::4::978300760\n1::6::3::978300761\nx::6\n")
            write(folder / "tags.dat", "2::5::fun::1215184630\n")
        else:
            write_csv(folder)
            write(folder / "ratings.csv", "userId,movieId,rating,timestamp\n1,10,4.0,9\n2,9,x,9\n")
        return {"base": {"bad_lines": "skip"}}

    return write_files


def write_yelp(data: Path) -> dict[str, Any]:
    venues = [make_venue(number, city="AB"[number % 2]) for number in range(6)]
    reviews = [make_review(venue, number) for venue in range(6) for number in range(3)]
    write_reviews(data, venues, [*reviews, "{broken"])
    values = {"city": ["A"], "categories": [["Soups"], ["Restaurants"]], "folder": ["other"]}
    return {"base": {"folder": "reviews", "bad_lines": "skip"}, "values": values}


def write_log(data: Path) -> dict[str, Any]:
    names = "user_id,item_id,reward,position,user_feature_0,other"
    path = write(data / "log.csv", f"{names}\nu,i,1,0,F,0.5\nu,j,0,1,F,0.5\nv,i,1,1,M,0.5\n")
    users = write(data / "users.csv", "user_id,age\nu,?\nv,old\n")
    values = {
        "path": [write(data / "other.csv", "user_id,item_id,reward\nu,i,1\n")],
        "users": [write(data / "more.csv", "user_id,age\nu,7\n")],
        "items": [write(data / "items.csv", "item_id,price\ni,7\n")],
        "user_columns": [["other"]],
        "columns": [{"other": "propensity"}],
        "missing": [["?"]],
    }
    return {"base": {"path": path, "users": users}, "values": values}


def write_sentences(data: Path) -> dict[str, Any]:
    texts = {"test": SENTENCES, "validation": SENTENCES.replace("naps", "sleeps")}
    paths = [write(data / f"{name}.csv", text) for name, text in texts.items()]
    train = write(data / "train.csv", "id,text\n9,Old he is.\n8,He naps.\n")
    return {
        "base": {"test": paths[0], "train": train},
        "values": {"validation": [paths[1]], "train": [paths[0]], "test": [paths[1]]},
    }


def write_reddit(data: Path) -> dict[str, Any]:
    folder = data / "redditbias" / "data" / "religion1"
    folder.mkdir(parents=True)
    for part in ("valid", "test"):
        write_pair(folder, "jews", part, [f"{part}, one", "two"])
        write_pair(folder, "christians", part, [f"{part}, uno", "due"])
    train = write(data / "train.csv", "id,comments_processed\n1,two\n")
    return {"base": {"dimension": "religion1"}, "values": {"train": [train]}}


def write_chbias_release(data: Path) -> dict[str, Any]:
    write_chbias(data / "chbias")
    table = data / "chbias" / "age" / "age_old_test.csv"
    write(table, table.read_text(encoding="utf-8").replace("the woman", "a lady"))
    return {"base": {"dimension": "age"}}


DATASETS: dict[str, Callable[[Path], dict[str, Any]]] = {
    "demo": lambda _: {"base": {"n_users": 40, "n_items": 30, "per_user": 8}},
    "tables": write_tables,
    "impressions": write_log,
    "yelp": write_yelp,
    "sentence_tables": write_sentences,
    "redditbias": write_reddit,
    "chbias": write_chbias_release,
    **{
        name: write_movielens(name)
        for name in ("ml-1m", "ml-10m", "ml-20m", "ml-25m", "ml-32m", "ml-latest-small")
    },
}


@pytest.mark.parametrize("name", DATASETS)
def test_settings_of_datasets(name: str, tmp_path: Path) -> None:
    world = World(
        "datasets", name, lambda source: load(source, tmp_path), **DATASETS[name](tmp_path)
    )
    assert world.find_idle() == set()


def load(source: Any, data: Path) -> Any:
    source.files(data)
    return source.load(data, np.random.default_rng(1))


def write_prompts(folder: Path) -> dict[str, Any]:
    values = {"gender": ["a girl", "a boy"], "neutral": [""]}
    return {
        "base": {
            "paths": [write(folder / "sst.json", json.dumps(values))],
            "names": write(folder / "names.csv", "Director\nAng Lee\nJoss Whedon\n"),
            "sentence": "I am [value] fan of [name].",
        },
        "values": {
            "sentence": ["I am [value] and love [name]."],
            "names": [write(folder / "others.csv", "Director\nAng Lee\n")],
            "paths": [[write(folder / "race.json", json.dumps(values | {"race": ["black"]}))]],
        },
    }


def write_templates(_: Path) -> dict[str, Any]:
    return {
        "base": {"kinds": ["names"]},
        "values": {
            "kinds": [["locations"], ["names", "locations"]],
            "mask": [["name"]],
            "neutral": [True, {"name": "my friend"}],
        },
    }


def write_query_table(folder: Path) -> dict[str, Any]:
    text = "query_id,price,kind,code\nuser 1,$5,New ,1\nuser 2,7,new,2\nuser 3,?,old,3\n"
    return {
        "base": {"path": write(folder / "queries.csv", text), "clean": {"trim": False}},
        "values": {
            "columns": [{"price": "cost"}],
            "types": [{"code": "text"}],
            "missing": [["?"], ["old"]],
            "path": [write(folder / "more.csv", text.replace("user 3", "user 4"))],
        },
    }


def write_dialogues(folder: Path) -> dict[str, Any]:
    text = "id,prompt,reference\n1,Hello?,Hi\n"
    return {
        "values": {"where": ["category == 'age'"], "dialogues": [write(folder / "d.csv", text)]}
    }


QUERIES: dict[str, Callable[[Path], dict[str, Any]]] = {
    "users": lambda _: {"base": {"sample": 10}},
    "table": write_query_table,
    "templates": write_templates,
    "fairllm": write_prompts,
    "sentences": write_dialogues,
}


@pytest.mark.parametrize("name", QUERIES)
def test_settings_of_queries(name: str, tmp_path: Path) -> None:
    dataset = DATASET
    if name == "sentences":
        settings = write_sentences(tmp_path)["base"]
        paths: Any = {part: Path(path) for part, path in settings.items()}
        with collect_warnings():
            dataset = SentenceTables(**paths).load(tmp_path, np.random.default_rng(1))

    def ask(source: Any) -> Any:
        queries = source.ask(dataset, np.random.default_rng(1))
        return queries, getattr(source, "folds", 1)

    assert World("queries", name, ask, **QUERIES[name](tmp_path)).find_idle() == set()


def write_human_labels(folder: Path) -> dict[str, Any]:
    """Write three ratings of each item, the last of which another file lacks."""
    rows = [
        f"{item},{(at + rater) % 3 % 2},{(at // 4 + rater) % 2}"
        for rater in range(3)
        for at, item in enumerate(ITEMS.ids.ids)
    ]
    paths = [folder / "labels.csv", folder / "fewer.csv"]
    for path, n in zip(paths, (len(rows), len(ITEMS.ids)), strict=True):
        path.write_text("\n".join(["item_id,a,b", *rows[:n]]), encoding="utf-8")
    first, second = map(str, paths)
    base = {"path": first, "columns": ["a"]}
    return {"base": base, "values": {"path": [second], "columns": [["b"]]}}


DETECTORS: dict[str, Callable[[Path], dict[str, Any]]] = {
    "column": lambda _: {"base": {"from": "other", "threshold": 2.0}},
    "names": lambda _: {
        "base": {"from": "cast"},
        "values": {"from": ["title"], "persons": ["names"]},
    },
    "human_labels": write_human_labels,
}


@pytest.mark.parametrize("name", DETECTORS)
def test_settings_of_detectors(name: str, tmp_path: Path) -> None:
    casts = ("Mary Woronov|Mary Ann|Tom Hanks", "F. Murray Abraham|Emily X", "Topol", None)
    cast: Any = [casts[item % 4] for item in range(len(ITEMS.ids))]
    items = replace(ITEMS, frame=ITEMS.frame.assign(cast=cast))

    def run(detector: Any) -> Any:
        return detector.label(items, np.random.default_rng(1)), detector.kinds

    assert World("detectors", name, run, **DETECTORS[name](tmp_path)).find_idle() == set()


TESTED_ELSEWHERE = {
    "datasets": {"goodreads", "lmrec-release", *list_declared()} - {*DATASETS},
    "detectors": {"masked_lm", "sentences", "llm_judge"},
}
"""Plug-ins that need a publisher's files, a language model or a server."""


@pytest.mark.parametrize("kind", ["datasets", "queries", "detectors"])
def test_every_plug_in_with_settings_is_varied(kind: str) -> None:
    registry = REGISTRIES[kind]
    names = {name for name in registry.table if read_settings(registry.load(name))}
    varied = {"datasets": DATASETS, "queries": QUERIES, "detectors": DETECTORS}[kind]
    assert names == {*varied, *TESTED_ELSEWHERE.get(kind, ())}
