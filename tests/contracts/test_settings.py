"""Every setting of every registered plug-in changes a result, is refused, or has a message.

Each setting is varied by itself on a small world. What another setting switches off is declared by
``OnlyWith``: it is refused then, and varied with a value of the other one that switches it on.
What need not change any result is declared by ``EXECUTION``.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from contracts.test_metrics import SETTINGS as METRIC_SETTINGS
from contracts.test_recommenders import FROM_FILES, SMALL
from recbias.config.entries import Resolver
from recbias.config.settings import as_plain, read_settings
from recbias.config.source import read_mapping
from recbias.core.dataset import Attributes, Dataset, Reviews, TrainingData
from recbias.core.evidence import Embeddings, Evidence, RankedLists
from recbias.core.plugins import Candidates
from recbias.formats.ratings import digest_response
from recbias.registry import REGISTRIES
from recbias.runner.stages import SplitDataset
from recbias.statistics.compare import SystemEstimates, compare
from recbias.testing import make_checkerboard, make_random_evidence, query_all_users
from support.models.small_encoder import write_small_encoder
from support.varied_settings import World
from support.worlds.small_worlds import make_interactions

TITLES = ("Jane in the City", "the Blue Jane", "A City of Cats", "Night of the Robot", "Emily")


def make_items(table: Attributes) -> Attributes:
    """Return items some of which have several genres, none, and a graded label."""
    n = len(table.ids)
    columns: dict[str, Any] = {
        "genres": [["a|b", "c", "a", "b|c", None, "b"][item % 6] for item in range(n)],
        "title": [f"{TITLES[item % 5]} {item}" for item in range(n)],
        "studio": [f"studio {item % 4}" for item in range(n)],
        "flag": np.array([(0.0, 0.2, 0.6, 1.0)[item % 4] for item in range(n)]),
        "other": np.arange(n) % 5.0,
        "flag.audited.flag": np.where(np.arange(n) % 3, np.arange(n) % 2.0, np.nan),
        "flag.audited.flag_variance": np.full(n, 0.1),
        "flag.audited.probability": np.full(n, np.nan),
    }
    return replace(table, frame=table.frame.assign(**columns))


def make_training_data() -> Any:
    """Return the checkerboard without one row in five, which is the validation part."""
    data: Any = make_checkerboard()
    is_validation = np.arange(len(data.train)) % 5 == 0
    rows, held_out = data.train.take(~is_validation), data.train.take(is_validation)
    held_out = replace(held_out, items=np.roll(held_out.items, 1))  # no epoch predicts them best
    colours = data.users.frame["colour"].where(
        np.arange(len(data.users.ids)) % 9 > 0, "white|black"
    )
    users = replace(data.users, frame=data.users.frame.assign(colour=colours))
    return replace(
        data, train=rows, validation=held_out, items=make_items(data.items), users=users
    )


def mark_slow(names: Iterable[str], slow: Collection[str]) -> list[Any]:
    return [pytest.param(name, marks=pytest.mark.slow) if name in slow else name for name in names]


DATA = make_training_data()
ITEMS: Any = DATA.items


def make_evidence() -> Any:
    evidence: Any = make_random_evidence()
    rng = np.random.default_rng(5)
    labels = evidence.queries.labels.frame
    pairs = [f"{(row + (row > 5)) % 3}" for row in range(len(labels))]
    table = replace(evidence.queries.labels, frame=labels.assign(pair=pairs))
    shapes = [
        np.shape(vectors) for vectors in (evidence.embeddings.users, evidence.embeddings.items)
    ]
    texts = np.array([text.capitalize() for text in evidence.responses.texts], dtype=object)
    return replace(
        evidence,
        responses=replace(evidence.responses, texts=texts),
        queries=replace(evidence.queries, labels=table),
        items=DATA.items,
        users=DATA.users,
        choosing_embeddings=Embeddings(
            *(rng.normal(size=shape).astype(np.float32) for shape in shapes)
        ),
    )


EVIDENCE: Evidence = make_evidence()


TARGETS = {"of": "items", "attribute": "genres", "e": "a", "p": "b"}


def make_metric(name: str, folder: Path) -> World:
    names = read_settings(REGISTRIES["metrics"].load(name))
    base = {key: as_plain(value) for key, value in METRIC_SETTINGS.get(name, {}).items()}
    base = {key: value for key, value in base.items() if key in names}
    base |= {"ratings": write_ratings(folder)} if "ratings" in names else {}
    base |= {"targets": TARGETS} if "targets" in names else {}
    base |= {"permutations": 150} if "permutations" in names else {}
    base |= {"form": "rbo"} if name == "overlap_spread" else {}
    return World("metrics", name, measure, base, {"chosen_in": ["B"], "embeddings_of": ["B"]})


def measure(metric: Any) -> Any:
    """Measure; the embeddings of another model are those of the model that a metric names."""
    is_named = getattr(metric, "chosen_in", None) or getattr(metric, "embeddings_of", None)
    return metric.measure(EVIDENCE if is_named else replace(EVIDENCE, choosing_embeddings=None))


def write_ratings(folder: Path) -> str:
    """Write the ratings 0, 1 and 2 by three raters of the responses."""
    responses, path = EVIDENCE.responses, folder / "ratings.jsonl"
    rows = [
        {
            "query_id": query,
            "response_sha256": digest_response(text),
            "models": ["A"],
            "rater": f"rater {rater}",
            "question": "biased",
            "rating": (at + rater * (at > 1)) % 3,
        }
        for at, (query, text) in enumerate(zip(responses.ids, responses.texts, strict=True))
        for rater in range(3)
    ]
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return str(path)


ENCODED = ("embedding_average", "greedy_matching")
SLOW_METRICS = (*ENCODED, "R-RIPA", "direction_checks", "attribute_classification")


@pytest.mark.parametrize("name", mark_slow(REGISTRIES["metrics"].table, SLOW_METRICS))
def test_settings_of_metrics(name: str, tmp_path: Path) -> None:
    world = make_metric(name, tmp_path)
    if name in ENCODED:
        encoder = str(write_small_encoder(tmp_path / "encoder"))
        vectors = tmp_path / "vectors.txt"
        vectors.write_text("a 1 0\ncat 0 1\nmat 1 1\nthe 1 2\nsat 2 1\n", encoding="utf-8")
        world.base = {"vectors": str(vectors)}
        world.values, world.company = {"encoder": [encoder]}, {encoder: {"vectors": None}}
    assert world.find_idle() == set()


def make_candidates(n_queries: int = 20, n: int = 10) -> Candidates:
    """Return candidates the more popular of which are mostly first; few users are active."""
    rng = np.random.default_rng(2)
    n_items = len(ITEMS.ids)
    chances = np.outer(np.linspace(1, 0.2, n_queries), np.linspace(1, 0, n_items))
    users, items = np.nonzero(rng.random(chances.shape) < chances)
    train = make_interactions(
        [*zip(users.tolist(), items.tolist(), strict=True)], n_users=n_queries, n_items=n_items
    )
    order = np.argsort(np.arange(n_items) + 6 * rng.normal(size=chances.shape), axis=1)[:, :n]
    scores = -np.sort(-rng.random(order.shape), axis=1)
    lists = RankedLists(order.astype(np.int32), scores.astype(np.float32))
    table = Attributes(train.item_ids, ITEMS.frame, "item")
    return Candidates(lists, train.binary, TrainingData(train, items=table))


CANDIDATES = make_candidates()
RERANKERS: dict[str, Any] = {
    "calibration": {"attribute": "genres"},
    "MMR": {"attribute": "genres"},
    "FA*IR": {"attribute": "studio", "protected": "studio 3", "share": 0.7, "alpha": 0.3},
    "DetGreedy": {"attribute": "studio"},
    "xQuAD": {"strength": 0.8},
}


@pytest.mark.parametrize("name", mark_slow(REGISTRIES["rerankers"].table, {"CPFair"}))
def test_settings_of_rerankers(name: str) -> None:
    def run(reranker: Any) -> Any:
        lists, n = CANDIDATES.lists, reranker.candidates
        part = replace(lists, items=lists.items[:, :n], scores=lists.scores[:, :n])
        return reranker.rerank(replace(CANDIDATES, lists=part), 6)

    values: dict[str, Any] = {"candidates": [6], "target": [{"studio 2": 0.9, "studio 3": 0.1}]}
    assert World("rerankers", name, run, RERANKERS.get(name, {}), values).find_idle() == set()


def make_dataset() -> Dataset:
    """Return the checkerboard with repeated pairs, and reviews of the items by their title."""
    data = DATA
    again = np.arange(0, len(data.train), 7)
    rows = data.train.take(np.concatenate([np.arange(len(data.train)), again]))
    times, values = rows.times.copy(), rows.values.copy()
    times[-again.size :], values[-again.size :] = 5, np.arange(again.size) % 6
    rows = replace(rows, times=times, values=values)
    titles = data.items.frame["title"].to_numpy(dtype=object)[rows.items]
    others = np.roll(titles, 1)
    texts = [f"{a} is a film, {b} too, Emily said" for a, b in zip(titles, others, strict=True)]
    return Dataset(
        rows,
        data.users,
        data.items,
        Reviews(rows.users, rows.items, np.array(texts, dtype=object)),
    )


DATASET = make_dataset()
FILTERS: dict[str, Any] = {
    "threshold": {"at_least": 4},
    "k_core": {"k": 7},
    "sample_users": {"n": 10},
    "min_reviews": {"n": 10},
    "period": {"since": 500_000_000, "before": 1_500_000_000},
    "mask_names": {"column": "title"},
}


@pytest.mark.parametrize("name", REGISTRIES["filters"].table)
def test_settings_of_filters(name: str) -> None:
    def run(each: Any) -> Any:
        if getattr(each, "part", "all") == "train":
            return SplitDataset(None, 0, 1, (each,))(DATASET)
        return each.apply(DATASET, np.random.default_rng(1))

    assert World("filters", name, run, FILTERS.get(name, {})).find_idle() == set()


@pytest.mark.parametrize("name", REGISTRIES["splits"].table)
def test_settings_of_splits(name: str, tmp_path: Path) -> None:
    rows = [f"user {user},item {item},{user % 5 + 1}" for user in range(9) for item in range(6)]
    base: dict[str, Any] = {}
    values: dict[str, Any] = {}
    if name == "given":
        for at, part in enumerate(("train", "test", "validation", "more")):
            text = "\n".join(["user_id,item_id,rating", *rows[at::4]])
            (tmp_path / f"{part}.csv").write_text(text, encoding="utf-8")
        paths = {
            part: f"{tmp_path / part}.csv" for part in ("train", "test", "validation", "more")
        }
        base = {part: paths[part] for part in ("train", "test")}
        values = {part: [paths["more"]] for part in ("train", "test", "validation")}
        values["columns"] = [{"rating": "grade"}]

    def run(splitter: Any) -> Any:
        rng = np.random.default_rng(1)
        dataset = replace(DATASET, interactions=DATA.train)
        return [splitter.split(dataset, fold, rng) for fold in range(min(splitter.folds, 3))]

    if name == "temporal":
        values["at"] = ["2000-01-01", 1_500_000_000]
    if name == "windows":
        base = {"days": 1000.0}
        values = {"at": [["2000-01-01"]], "end": [1_500_000_000], "train_days": [2000.0]}
    assert World("splits", name, run, base, values).find_idle() == set()


@pytest.mark.parametrize("name", REGISTRIES["tests"].table)
def test_settings_of_tests(name: str) -> None:
    rng = np.random.default_rng(3)
    figures = []
    for metric in ("nDCG", "HR"):
        values = (rng.random((3, 30)) < np.array([[0.3], [0.5], [0.7]])).astype(np.float64)
        keys = {
            "dataset": "",
            "seed": 1,
            "fold": 1,
            "metric": metric,
            "k": 3,
            "group": "",
            "target": "",
        }
        figures.append(SystemEstimates(("A", "B", "C"), values, values.mean(axis=1), None, keys))

    def run(test: Any) -> Any:
        return compare(figures, test, name=name, seed=1)

    assert World("tests", name, run).find_idle() == set()


SMALL_MODELS: dict[str, Any] = {
    **SMALL,
    "MultiVAE": SMALL["MultiVAE"] | {"learning_rate": 0.1},
    **{name: {"neighbors": 5} for name in ("ItemKNN", "UserKNN", "AttributeUserKNN")},
}
EPOCHS = {"epochs": 6, "adversarial_epochs": 3, "patience": 0}
CLASSES: dict[str, Any] = {name: REGISTRIES["models"].load(name) for name in REGISTRIES["models"]}
TRAINED_SLOWLY = {name for name, cls in CLASSES.items() if {"torch", "lenskit"} & {*cls.libraries}}


def recommend(model: Any) -> Any:
    """Return the lists of a model for all users, and its embeddings."""
    fitted = model.fit(DATA, np.random.default_rng(1))
    lists = fitted.recommend(query_all_users(DATA), 6, DATA)
    return lists, fitted.embeddings() if hasattr(fitted, "embeddings") else None


@pytest.mark.parametrize(
    "name",
    mark_slow(
        [name for name in REGISTRIES["models"].table if name not in FROM_FILES], TRAINED_SLOWLY
    ),
)
def test_settings_of_models(name: str) -> None:
    names = read_settings(REGISTRIES["models"].load(name))
    base = as_plain(SMALL_MODELS.get(name, {}))
    base |= {key: value for key, value in EPOCHS.items() if key in names}
    assert World("models", name, recommend, base).find_idle() == set()


ALPHA_SEARCH = {"metric": "nDCG", "space": {"alpha": {"float": [0.0, 1.0]}}}
BOTH_SEARCH = {
    "metric": "nDCG",
    "space": {"alpha": {"float": [0.0, 1.0]}, "similarity": {"choice": ["cosine", "asymmetric"]}},
}


@pytest.mark.parametrize(
    ("kind", "entry", "fault"),
    [
        ("models", {"name": "ItemKNN", "alpha": 0.5}, ""),
        ("models", {"name": "ItemKNN", "alpha": 0.3, "similarity": "asymmetric"}, ""),
        (
            "models",
            {"name": "ItemKNN", "alpha": 0.3},
            "models.alpha: has no effect with similarity: cosine",
        ),
        (
            "models",
            {"name": "ItemKNN", "tune": ALPHA_SEARCH},
            "models.tune.space.alpha: has no effect with similarity: cosine",
        ),
        ("models", {"name": "ItemKNN", "tune": BOTH_SEARCH}, ""),
        (
            "metrics",
            {"name": "nDCG", "by": "gender", "gap": "difference", "reference_group": "M"},
            "metrics.reference_group: has no effect with gap: difference",
        ),
        (
            "metrics",
            {"name": "direction_checks", "groups": METRIC_SETTINGS["EAA"]["groups"], "top_n": 9},
            "metrics.top_n: has no effect with directions: [centroid]",
        ),
    ],
)
def test_a_setting_that_another_one_switches_off_is_refused(
    kind: str, entry: dict[str, Any], fault: str
) -> None:
    """It is refused with another value than its default only: a resolved spec has them all."""
    document = read_mapping({"name": "x"})
    Resolver(document, REGISTRIES, 4, None).resolve(kind, entry, (kind,))
    faults = [str(error) for _, error in document.faults]
    assert faults == ([fault] if fault else [])
