"""Every setting of the datasets, queries and detectors has an effect; see ``test_settings``."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from contracts.test_recommenders import FROM_FILES, SMALL, UNPERSONALISED
from contracts.test_settings import DATASET, ITEMS
from data.test_movielens import write_1m, write_csv
from data.test_sentences import write_pair
from data.test_sentences import write_release as write_chbias
from recbias.config.settings import read_settings
from recbias.core.context import collect_warnings
from recbias.core.dataset import Attributes, Interactions, TrainingData
from recbias.core.errors import UserError
from recbias.core.evidence import check_lists
from recbias.data.declared import list_declared
from recbias.data.demo import Demo
from recbias.data.filters_queries import Threshold
from recbias.data.sentences import SentenceTables
from recbias.data.splits import RandomHoldout
from recbias.models.baselines import MostPop
from recbias.models.training import validation_ndcg
from recbias.registry import REGISTRIES
from recbias.testing import make_checkerboard, query_all_users
from support.files.review_files import make_review, make_venue, write_reviews
from support.varied_settings import World
from support.worlds.small_worlds import make_interactions

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


MODELS = REGISTRIES["models"]


OWN_MODELS = [name for name in MODELS.names() if name not in FROM_FILES and "/" not in name]


SETTINGS = {name: {field.name for field in fields(MODELS.load(name))} for name in OWN_MODELS}


LATENT = [name for name in OWN_MODELS if {"embedding_size", "factors"} & SETTINGS[name]]


GRADIENT = [name for name in OWN_MODELS if "learning_rate" in SETTINGS[name]]


def add_attributes(train: Interactions) -> TrainingData:
    genres = [["a|b", "c"][item % 2] for item in range(train.n_items)]
    titles = [f"film {item}" for item in range(train.n_items)]
    items = pd.DataFrame({"genres": genres, "title": titles})
    return TrainingData(train, items=Attributes(train.item_ids, items, "item"))


DATASETS_THIN_DATA = {
    "one item each": add_attributes(make_interactions([(user, user % 7) for user in range(20)])),
    "one item": add_attributes(make_interactions([(user, 0) for user in range(5)], n_items=2)),
    "one user": add_attributes(make_interactions([(0, item) for item in range(6)], n_items=9)),
    "one pair": add_attributes(make_interactions([(0, 0)], n_items=3)),
    "everything": add_attributes(
        make_interactions([(user, item) for user in range(4) for item in range(3)])
    ),
}


def make_model(name: str, **settings: Any) -> Any:
    epochs = {"epochs": 2, "adversarial_epochs": 1}
    defaults = {key: value for key, value in epochs.items() if key in SETTINGS[name]}
    return MODELS.load(name)(**SMALL.get(name, {}) | defaults | settings)


@pytest.mark.parametrize("dataset", DATASETS_THIN_DATA)
@pytest.mark.parametrize("name", OWN_MODELS)
@collect_warnings()
def test_every_model_returns_valid_lists_or_a_remedy(name: str, dataset: str) -> None:
    data = DATASETS_THIN_DATA[dataset]
    queries = query_all_users(data)
    try:
        fitted = make_model(name).fit(data, np.random.default_rng(1))
        lists = fitted.recommend(queries, data.train.n_items + 5, data)
    except UserError as error:
        assert error.remedy, name  # noqa: PT017  lists or an error with a remedy are valid
        return
    history = data.train.binary[np.append(queries.users[:-1], 0)]
    check_lists(lists, n_queries=len(queries), seen=None, n_items=data.train.n_items, model=name)
    items = np.where(lists.filled, lists.items, 0)
    seen = history.toarray()[np.arange(len(queries))[:, None], items] > 0
    assert not (seen & lists.filled)[:-1].any()
    assert (data.candidates[items] | ~lists.filled).all()


@pytest.mark.parametrize("name", LATENT)
@collect_warnings()
def test_a_model_may_have_more_factors_than_items(name: str) -> None:
    data = add_attributes(make_checkerboard().train)
    size = "embedding_size" if name != "PureSVD" else "factors"
    n_factors = 48 if name == "ConvMF" else 37  # more than the 25 items
    try:
        fitted = make_model(name, **{size: n_factors}).fit(data, np.random.default_rng(1))
    except UserError as error:
        assert error.remedy  # noqa: PT017
        return
    assert fitted.recommend(query_all_users(data), 3, data).filled.any()


@pytest.mark.parametrize(
    "name", [name for name in GRADIENT if name != "GRU4Rec"]
)  # bounded states
@collect_warnings()
def test_a_diverging_training_reports_the_epoch_and_the_loss(name: str) -> None:
    data = add_attributes(make_checkerboard().train)
    with pytest.raises(UserError, match=r"diverged in epoch \d+ of \d+: the loss is") as caught:
        make_model(name, learning_rate=1e30, epochs=9).fit(data, np.random.default_rng(1))
    assert "learning_rate" in caught.value.remedy


SLOW = {"BERT4Rec"}
"""Models that need more epochs than a quick test has."""


LEARNERS = [
    name
    for name in MODELS.names()
    if name not in FROM_FILES | UNPERSONALISED | SLOW and "/" not in name
]


SMALL_DATA_SETTINGS: dict[str, dict[str, Any]] = {
    "PureSVD": {"factors": 8},
    "MF": {"embedding_size": 8, "learning_rate": 0.01, "reg": 0.01},
    "FunkSVD": {"embedding_size": 8, "learning_rate": 0.01, "reg": 0.01},
    "PMF": {"learning_rate": 0.01},
    "MF2020": {"learning_rate": 0.05},
    "BPR-MF": {"embedding_size": 16},
    "NeuMF": {"embedding_size": 8, "learning_rate": 0.003, "epochs": 15},
    "DeepFM": {"learning_rate": 0.01},
    "ConvMF": {"learning_rate": 0.01},
    "SASRec": {"embedding_size": 16, "batch_size": 16, "epochs": 6, "learning_rate": 0.005},
    "GRU4Rec": {"embedding_size": 16, "batch_size": 16, "epochs": 15, "learning_rate": 0.01},
    "LightGCN": {"embedding_size": 16, "learning_rate": 0.02, "epochs": 30},
    "AMF": {"embedding_size": 16, "learning_rate": 0.005, "reg": 0.1},
    "MultiVAE": {"hidden_size": 64, "embedding_size": 16, "learning_rate": 0.005},
}
"""Settings for 400 users, where the defaults are for thousands."""


@pytest.fixture(scope="module")
def data() -> TrainingData:
    rng = np.random.default_rng(7)
    dataset = Demo(n_users=400, n_items=150, per_user=30).load(Path(), rng)
    dataset = Threshold(at_least=1).apply(dataset, rng)  # every interaction counts
    split = RandomHoldout(test=0.2, validation=0.2).split(dataset, 0, rng)
    return split.training_data(users=dataset.users, items=dataset.items)


@pytest.mark.parametrize("name", LEARNERS)
@collect_warnings()
def test_a_model_that_learns_tastes_beats_popularity(name: str, data: TrainingData) -> None:
    popularity_ndcg = validation_ndcg(MostPop().fit(data, np.random.default_rng(1)), data)
    cls = MODELS.load(name)
    names = {field.name for field in fields(cls)}
    batches = {"batch_size": 256} if "batch_size" in names else {}
    train = TrainingData(data.train, None, data.users, data.items)  # no early stopping
    fitted = cls(**batches | SMALL_DATA_SETTINGS.get(name, {})).fit(
        train, np.random.default_rng(1)
    )
    assert validation_ndcg(fitted, data) > 1.2 * popularity_ndcg
