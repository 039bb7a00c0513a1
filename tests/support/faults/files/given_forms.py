"""Forms of the files that specs name: tables, splits, queries, lists, vectors, scores, sheets."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from recbias.core.dataset import Dataset, TrainingData, Vocabulary
from recbias.core.evidence import Evidence
from recbias.core.queries import Queries
from recbias.data.filters_queries import QueryTable, Users
from recbias.data.sentences import SentenceQueries, SentenceTables
from recbias.data.splits import GivenSplit
from recbias.data.tables import Tables
from recbias.detectors.groups import Sentences
from recbias.metrics.embeddings.directions import read_direction
from recbias.metrics.embeddings.sets import find_pairs
from recbias.metrics.human import HumanAgreement, HumanRate, HumanScore
from recbias.models.given import GivenLists, GivenResponses, GivenSentences, GivenVectors
from support.faults.files.contents import Table, pack, to_array, to_file, to_lines, to_plain_lines
from support.faults.files.forms import (
    TABLE_SUFFIXES,
    TEXT_SUFFIXES,
    Form,
    make_form,
    make_table_forms,
)

INTERACTIONS: Table = {
    "user_id": ("1", "1", "2", "2", "3", "4"),
    "item_id": ("10", "20", "10", "30", "40", "20"),
    "rating": ("5", "4", "3.5", "1", "2", "5"),
    "timestamp": ("1600000000", "1600000001", "1600000002", "1", "2", "3"),
}
ITEMS: Table = {
    "item_id": ("10", "20", "30", "40"),
    "title": ("A", "B", "C, D", "Ü"),
    "price": ("1.5", "", "3", "4"),
    "genre": ("x|y", "x", "", "y"),
}
USERS: Table = {"user_id": ("1", "2", "3"), "age": ("20", "30", "40"), "gender": ("F", "M", "")}
REVIEWS: Table = {"user_id": ("1", "2"), "item_id": ("10", "30"), "text": ("good", "bad, very")}
SCORES: Table = {
    "sentence_id": ("a", "b", "c", "d"),
    "pair_id": ("p", "p", "q", "q"),
    "group": ("F", "M", "F", "M"),
    "perplexity": ("10.5", "12", "1", "7"),
}
RESPONSES: Table = {
    "query_id": ("1", "2"),
    "response": ("yes", "no, never"),
    "reference": ("yes", ""),
    "gender": ("F", "M"),
}
LISTS: Table = {
    "query_id": ("1", "1", "2", "2"),
    "item_id": ("30", "40", "20", "40"),
    "rank": ("1", "2", "1", "2"),
    "score": ("0.9", "0.8", "0.7", "0.6"),
}
SENTENCES: Table = {
    "id": ("a", "b", "c", "d"),
    "text": ("she runs", "he runs", "she reads", "he reads"),
    "pair_id": ("p", "p", "q", "q"),
    "group": ("F", "M", "F", "M"),
}
RATINGS: Table = {
    "query_id": ("1", "1", "2"),
    "response_sha256": ("aa", "aa", "bb"),
    "models": ("m", "m", "m"),
    "rater": ("x", "y", "x"),
    "question": ("good", "good", "good"),
    "rating": ("1", "0", "1"),
}
RNG = np.random.default_rng(0)
DATASET = {"interactions.csv": to_lines(INTERACTIONS)}
QRELS = to_plain_lines([("1", 0, "40", 1), ("2", 0, "20", 2), ("3", 0, "10", 1)], "\t")
JUDGED = json.dumps({"1": {"40": 1}, "2": {"20": 2}}).encode()
SPLIT_ROWS: Table = {"user_id": ("1", "2", "3"), "item_id": ("40", "20", "10")}
VECTORS = {
    "users.npy": to_array(np.arange(8.0).reshape(4, 2) + 1),
    "items.npy": to_array(np.arange(8.0).reshape(4, 2) + 1),
    "users.txt": b"1\n2\n3\n4\n",
    "items.txt": b"10\n20\n30\n40\n",
}


def load(folder: Path, **settings: Any) -> Dataset:
    return Tables(**{"interactions": folder / "interactions.csv", **settings}).load(folder, RNG)


def make_data(folder: Path) -> tuple[TrainingData, Queries]:
    dataset = load(folder)
    data = TrainingData(dataset.interactions, items=dataset.items, users=dataset.users)
    return data, Users().ask(dataset, RNG)


def read_split(folder: Path, **settings: Path) -> object:
    paths: dict[str, Any] = {
        "train": folder / "interactions.csv",
        "test": folder / "t.csv",
        **settings,
    }
    return GivenSplit(**paths).split(Dataset(load(folder).interactions), 0, RNG)


def read_lists(path: Path, folder: Path, layout: Any = "auto") -> object:
    data, queries = make_data(folder)
    model = GivenLists(path=path, layout=layout)
    model.check_files([""])
    return model.fit(data, RNG).recommend(queries, 2, data)


def read_vector_files(folder: Path) -> object:
    names = {"users": "users.npy", "items": "items.npy"}
    names |= {"user_ids": "users.txt", "item_ids": "items.txt"}
    paths: dict[str, Any] = {key: folder / name for key, name in names.items()}
    model = GivenVectors(**paths)
    model.check_files([""])
    data, queries = make_data(folder)
    return model.fit(data, RNG).recommend(queries, 2, data)


def read_given(kind: Any, path: Path) -> object:
    model = kind(path=path)
    model.check_files([""])
    return model.list_labels(make_prompts())


def read_detector(path: Path, folder: Path) -> object:
    items = load(folder, items=folder / "items.csv").items
    assert items is not None
    return Sentences(path=path).label(items, RNG)


def read_pairs(path: Path) -> object:
    return find_pairs(path, np.array(["1", "3"], object), np.array(["2", "4"], object))


def check_ratings(kind: Any, path: Path) -> None:
    empty = Vocabulary(np.empty(0, dtype=object))
    kind(ratings=path).check(Evidence(make_prompts(), empty))


def make_prompts() -> Queries:
    return Queries.of_prompts(pd.DataFrame({"id": ["1"], "text": ["a"]}, dtype=object))


def make_text_forms(name: str, table: Table, read: Any) -> list[Form]:
    return make_table_forms(name, table, read, TEXT_SUFFIXES)


def swap(files: Mapping[str, bytes], first: str) -> dict[str, bytes]:
    """Return files with one of them first."""
    return {first: files[first], **files}


def list_given_forms() -> list[Form]:
    """Return the forms of the files that specs name."""
    return [
        *_list_table_forms(),
        *_list_split_forms(),
        *_list_query_forms(),
        *_list_model_forms(),
        *_list_metric_forms(),
    ]


def _list_table_forms() -> list[Form]:
    prefix = "datasets/tables"
    forms = [
        *make_table_forms(
            f"{prefix}.interactions",
            INTERACTIONS,
            lambda path, folder: load(folder, interactions=path),
        ),
        make_form(
            f"{prefix}.interactions of Elliot",
            {"e.tsv": to_plain_lines([*zip(*INTERACTIONS.values(), strict=True)], "\t")},
            lambda folder: load(folder, interactions=folder / "e.tsv"),
        ),
        make_form(
            f"{prefix}.interactions of RecBole",
            {"r.inter": to_lines({f"{k}:token": v for k, v in INTERACTIONS.items()}, "\t")},
            lambda folder: load(folder, interactions=folder / "r.inter"),
        ),
        make_form(
            f"{prefix}.interactions skipping lines",
            {"s.csv": to_lines(INTERACTIONS)},
            lambda folder: load(folder, interactions=folder / "s.csv", bad_lines="skip"),
        ),
    ]
    for setting, table in (("items", ITEMS), ("users", USERS), ("reviews", REVIEWS)):
        forms += make_table_forms(
            f"{prefix}.{setting}",
            table,
            lambda path, folder, setting=setting: load(folder, **{setting: path}),  # type: ignore[misc]
            TABLE_SUFFIXES if setting == "items" else (".csv", ".parquet"),
            DATASET,
        )
    return forms


def _list_split_forms() -> list[Form]:
    trains = {**DATASET, "t.csv": to_lines(SPLIT_ROWS)}
    return [
        make_form("splits/given.train", trains, read_split),
        make_form("splits/given.test", swap(trains, "t.csv"), read_split),
        make_form(
            "splits/given.test",
            {"t.parquet": to_file(SPLIT_ROWS, ".parquet"), **DATASET},
            lambda folder: read_split(folder, test=folder / "t.parquet"),
        ),
        make_form(
            "splits/given.test",
            {"t.qrels": QRELS, **DATASET},
            lambda folder: read_split(folder, test=folder / "t.qrels"),
            " ",
        ),
        make_form(
            "splits/given.test",
            {"t.qrels.gz": pack(QRELS), **DATASET},
            lambda folder: read_split(folder, test=folder / "t.qrels.gz"),
            " ",
        ),
        make_form(
            "splits/given.test",
            {"t.json": JUDGED, **DATASET},
            lambda folder: read_split(folder, test=folder / "t.json"),
        ),
        make_form(
            "splits/given.validation",
            {"v.csv": to_lines({"user_id": ("4",), "item_id": ("10",)}), **trains},
            lambda folder: read_split(folder, validation=folder / "v.csv"),
        ),
    ]


def _list_query_forms() -> list[Form]:
    query_table = {"query_id": USERS["user_id"], "age": USERS["age"]}
    forms = make_table_forms(
        "queries/table.path",
        query_table,
        lambda path, folder: QueryTable(path=path).ask(load(folder), RNG),
        TABLE_SUFFIXES,
        DATASET,
    )
    dialogues = {"id": ("a", "b"), "context": ("hello", "good day"), "reference": ("hi", "")}
    forms += make_text_forms(
        "queries/sentences.dialogues",
        dialogues,
        lambda path, folder: SentenceQueries(dialogues=path).ask(Dataset(_no_rows()), RNG),
    )
    for setting in ("train", "validation", "test"):
        forms += make_table_forms(
            f"datasets/sentence_tables.{setting}",
            SENTENCES,
            lambda path, folder, setting=setting: SentenceTables(**{setting: path}).load(
                folder, RNG
            ),  # type: ignore[misc]
            TEXT_SUFFIXES if setting == "test" else (".csv",),
        )
    return forms


def _list_model_forms() -> list[Form]:
    forms = []
    for layout, content in _list_layouts().items():
        files = {**content, **DATASET}
        name = next(iter(files))
        forms.append(
            make_form(
                f"models/lists.path as {layout}",
                files,
                lambda folder, name=name, layout=layout: read_lists(folder / name, folder, layout),  # type: ignore[misc]
                "\t" if layout in {"elliot", "recbole"} else " " if layout == "trec" else "",
            )
        )
    forms += make_table_forms(
        "models/lists.path", LISTS, read_lists, (".csv", ".tsv.gz", ".parquet"), DATASET
    )
    for setting, name in zip(("users", "items", "user_ids", "item_ids"), VECTORS, strict=True):
        files = swap({**VECTORS, **DATASET}, name)
        forms.append(make_form(f"models/vectors.{setting}", files, read_vector_files))
    for plugin, kind, table in (
        ("sentence_scores", GivenSentences, SCORES),
        ("responses", GivenResponses, RESPONSES),
    ):
        forms += make_text_forms(
            f"models/{plugin}.path", table, lambda path, _, kind=kind: read_given(kind, path)
        )
    tokens = {
        **{k: v for k, v in SCORES.items() if k != "perplexity"},
        "log_probabilities": ("-1 -2", "-1", "", "-3"),
    }
    forms += make_table_forms(
        "models/sentence_scores.path of tokens",
        tokens,
        lambda path, _: read_given(GivenSentences, path),
        (".csv", ".jsonl"),
    )
    items = {"items.csv": to_lines(ITEMS)}
    labels = {"item_id": ("10", "20"), "score": ("0.5", "-1"), "kind": ("age", "race")}
    forms += make_table_forms(
        "detectors/sentences.path", labels, read_detector, TEXT_SUFFIXES, {**DATASET, **items}
    )
    return forms


def _list_metric_forms() -> list[Form]:
    directions = ("direction_checks.directions", "direction_similarity.directions")
    vector = {"d.npy": to_array(np.array([1.0, 2.0]))}
    forms = [
        make_form(f"metrics/{name}", vector, lambda folder: read_direction(folder / "d.npy"))
        for name in (*directions, "R-RIPA.direction_")
    ]
    for metric in ("R-RIPA", "direction_similarity"):
        forms += make_text_forms(
            f"metrics/{metric}.pairs",
            {"a": ("1", "3"), "b": ("2", "4")},
            lambda path, _: read_pairs(path),
        )
    for metric, kind in (
        ("human_rate", HumanRate),
        ("human_score", HumanScore),
        ("human_agreement", HumanAgreement),
    ):
        forms += make_table_forms(
            f"metrics/{metric}.ratings",
            RATINGS,
            lambda path, _, kind=kind: check_ratings(kind, path),  # type: ignore[misc]
            (".jsonl", ".csv") if metric == "human_rate" else (".jsonl",),
        )
    return forms


def _no_rows() -> Any:
    from recbias.core.dataset import Interactions

    empty, none = np.empty(0, np.int32), Vocabulary(np.empty(0, dtype=object))
    return Interactions(empty, empty, np.empty(0, np.float32), None, none, none)


def _list_layouts() -> dict[str, dict[str, bytes]]:
    """Return a file of lists in each layout of other tools."""
    rows = [*zip(*LISTS.values(), strict=True)]
    run = [(query, "Q0", item, rank, score, "tag") for query, item, rank, score in rows]
    ranx: dict[str, dict[str, float]] = {}
    for query, item, _, score in rows:
        ranx.setdefault(query, {})[item] = float(score)
    typed = {"user_id:token": LISTS["query_id"], "item_id:token": LISTS["item_id"]}
    return {
        "trec": {"run.trec": to_plain_lines(run, " ")},
        "elliot": {"e.tsv": to_plain_lines([(q, i, s) for q, i, _, s in rows], "\t")},
        "recbole": {"r.inter": to_lines({**typed, "score:float": LISTS["score"]}, "\t")},
        "ranx": {"ranx.json": json.dumps(ranx).encode()},
        "auto": {"ranked.json": json.dumps({"1": ["30", "40"], "2": [20]}).encode()},
        "lenskit": {"k.parquet": _nest_lists()},
    }


def _nest_lists() -> bytes:
    from support.faults.files.contents import to_parquet

    items = [
        [{"item_id": 30, "rank": 1}, {"item_id": 40, "rank": 2}],
        [{"item_id": 20, "rank": 1}],
    ]
    return to_parquet({"user_id": [1, 2], "items": items})
