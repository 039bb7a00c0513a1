"""The metrics of lists of other tools equal the metrics that these tools compute."""

from __future__ import annotations

import gzip
import json
import math
import warnings
from pathlib import Path
from typing import Any

import ir_measures
import numpy as np
import pandas as pd
import pytest
from ir_measures import AP, RR, P, R, Success, nDCG

from recbias import api

CONFIG = Path(__file__).parents[2] / "configs" / "other-tools" / "quickstart.yaml"
METRICS = ["nDCG", "HR", "MRR", "MAP", "mean_precision", "Precision", "Recall"]


def measure_lists(
    folder: Path, path: Path, *, k: int, metrics: list[str] = METRICS, **model: Any
) -> pd.DataFrame:
    """Measure lists on the train and test files beside them; return a column for each metric."""
    train = next(folder.glob("train.*"))
    test = next(folder.glob("test.*"))
    spec = {
        "name": "others",
        "dataset": {"name": "tables"},
        "split": {"name": "given", "train": str(train), "test": str(test)},
        "k": k,
        "models": [{"name": "lists", "label": "theirs", "path": str(path), **model}],
        "metrics": metrics,
    }
    run = api.run(spec, out=folder / "results", data=folder)
    assert run.failures.empty
    table = run.per_unit.pivot_table(
        index="unit_id", columns="metric", values="value", dropna=False, observed=True
    )
    means = run.metrics.set_index("metric")["value"]
    np.testing.assert_allclose(table[list(means.index)].mean(), means, rtol=1e-12)
    return table


@pytest.fixture(scope="module")
def lenskit_lists(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any, pd.DataFrame]:
    """Return a folder with lists of LensKit's item k-NN, the lists, and LensKit's metrics."""
    from lenskit.batch import recommend
    from lenskit.data import ItemListCollection, from_interactions_df
    from lenskit.knn import ItemKNNScorer
    from lenskit.metrics import NDCG, Hit, LogRankWeight, Precision, RecipRank, RunAnalysis
    from lenskit.pipeline import topn_pipeline

    folder = tmp_path_factory.mktemp("lenskit")
    rng = np.random.default_rng(3)
    is_liked = rng.random((30, 40)) < rng.beta(1, 3, 40)
    users, items = np.nonzero(is_liked)
    rows = pd.DataFrame({"user_id": users + 100, "item_id": items + 1})
    is_test = rng.random(len(rows)) < 0.3
    train, test = rows[~is_test], rows[is_test]
    train.to_csv(folder / "train.csv", index=False)
    test.to_csv(folder / "test.csv", index=False)
    pipe = topn_pipeline(ItemKNNScorer(max_nbrs=20, feedback="implicit"), n=8)
    pipe.train(from_interactions_df(train))
    test_users = np.intersect1d(train["user_id"], test["user_id"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        lists = recommend(pipe, test_users.tolist(), n=8, n_jobs=1)
        analysis = RunAnalysis()
        for metric in (
            *(NDCG(8, weight=LogRankWeight(offset=1)), Hit(8), RecipRank(8), Precision(8)),
        ):
            analysis.add_metric(metric)
        truth = ItemListCollection.from_df(test, ["user_id"])
        values = analysis.measure(lists, truth).list_metrics()
    lists.save_parquet(folder / "native.parquet")
    lists.save_parquet(folder / "flat.parquet", layout="flat")
    lists.to_df().to_csv(folder / "lists.csv", index=False)
    return folder, lists, values


@pytest.mark.parametrize("name", ["native.parquet", "flat.parquet", "lists.csv"])
@pytest.mark.parametrize("layout", ["auto", "lenskit"])
def test_lists_of_lenskit_have_the_metrics_of_lenskit(
    lenskit_lists: tuple[Path, Any, pd.DataFrame], name: str, layout: str
) -> None:
    folder, lists, expected = lenskit_lists
    scores = measure_lists(folder, folder / name, k=8, layout=layout)
    expected = expected.reset_index().astype({"user_id": str}).set_index("user_id")
    full = [str(key.user_id) for key, items in lists.items() if len(items) == 8]
    users = expected.index.intersection(scores.index)
    assert len(users) > 20
    names = {"nDCG": "NDCG@8", "HR": "Hit@8", "MRR": "RecipRank@8"}
    for name_, label in names.items():
        np.testing.assert_allclose(
            scores.loc[users, name_], expected.loc[users, label], atol=1e-12
        )
    # LensKit divides precision by the length of the list, recbias by k: equal for full lists
    full = [user for user in full if user in users]
    np.testing.assert_allclose(scores.loc[full, "Precision"], expected.loc[full, "Precision@8"])
    assert scores.loc[users, "nDCG"].mean() > 0.1


def write_trec_files(folder: Path, rng: np.random.Generator) -> tuple[list[Any], list[Any]]:
    """Write a run of distinct scores, qrels of grades 0, 1 and 2, and a training file."""
    queries = [f"q{number}" for number in range(25)]
    docs = np.array([f"d{number:02}" for number in range(30)])
    (folder / "train.csv").write_text(
        "user_id,item_id\n" + "".join(f"{query},seen\n" for query in queries), encoding="utf-8"
    )
    qrels, run = [], []
    for query in queries:
        listed = rng.permutation(docs)[:10]
        scores = np.sort(rng.random(10))[::-1]
        run += [ir_measures.ScoredDoc(query, *pair) for pair in zip(listed, scores, strict=True)]
        judged = rng.permutation(docs)[:12]
        grades = rng.integers(0, 3, 12)
        grades[:2] = [1, 0]
        # at most ten relevant: average precision is then the same divided by R or by min(R, 10)
        grades[np.flatnonzero(grades)[10:]] = 0
        qrels += [
            ir_measures.Qrel(query, doc, int(grade))
            for doc, grade in zip(judged, grades, strict=True)
        ]
    (folder / "test.qrels").write_text(
        "".join(f"{qrel.query_id} 0 {qrel.doc_id} {qrel.relevance}\n" for qrel in qrels),
        encoding="utf-8",
    )
    lines = [
        f"{doc.query_id} Q0 {doc.doc_id} {row % 10 + 1} {float(doc.score)!r} tag\n"
        for row, doc in enumerate(run)
    ]
    (folder / "run.trec").write_text("".join(lines), encoding="utf-8")
    return qrels, run


def as_json(rows: list[Any], value: str) -> dict[str, dict[str, float]]:
    values: dict[str, dict[str, float]] = {}
    for row in rows:
        values.setdefault(row.query_id, {})[row.doc_id] = float(getattr(row, value))
    return values


@pytest.mark.parametrize("form", ["trec", "json", "json.gz"])
def test_trec_runs_have_the_metrics_of_ir_measures(
    tmp_path: Path, rng: np.random.Generator, form: str
) -> None:
    qrels, run = write_trec_files(tmp_path, rng)
    path = tmp_path / f"run.{form}"
    if form != "trec":
        (tmp_path / "test.qrels").unlink()
        (tmp_path / "test.json").write_text(json.dumps(as_json(qrels, "relevance")))
        text = json.dumps(as_json(run, "score"), indent=2).encode()
        path.write_bytes(gzip.compress(text) if form.endswith("gz") else text)
    scores = measure_lists(tmp_path, path, k=10)
    # every grade from 1 is relevant with a gain of 1
    binary = nDCG(gains={0: 0, 1: 1, 2: 1}) @ 10
    measures = [binary, P @ 10, RR @ 10, AP @ 10, R @ 10, Success @ 10]
    names = dict(zip(measures, ["nDCG", "Precision", "MRR", "MAP", "Recall", "HR"], strict=True))
    expected = list(ir_measures.iter_calc(list(names), qrels, run))
    for metric in expected:
        value = scores.loc[metric.query_id, names[metric.measure]]
        assert value == pytest.approx(metric.value, abs=1e-12), metric
    assert len(expected) == 6 * 25
    means = ir_measures.calc_aggregate(list(names), qrels, run)
    for measure, name in names.items():
        assert scores[name].mean() == pytest.approx(means[measure], abs=1e-12)


def test_least_grade_equals_rel_of_ir_measures(tmp_path: Path, rng: np.random.Generator) -> None:
    qrels, run = write_trec_files(tmp_path, rng)
    spec = {
        "name": "grades",
        "dataset": {"name": "tables"},
        "split": {
            "name": "given",
            "train": str(tmp_path / "train.csv"),
            "test": str(tmp_path / "test.qrels"),
            "least_grade": 2,
        },
        "k": 10,
        "models": [{"name": "lists", "path": str(tmp_path / "run.trec")}],
        "metrics": ["Precision"],
    }
    per_unit = api.run(spec, out=tmp_path / "results").per_unit
    scores = per_unit.dropna(subset="value").set_index("unit_id")["value"]
    expected = {
        metric.query_id: metric.value
        for metric in ir_measures.iter_calc([P(rel=2) @ 10], qrels, run)
    }
    assert 0 < len(scores) <= 25
    for query, value in scores.items():
        assert value == pytest.approx(expected[str(query)])


def test_lists_of_elliot_have_the_metrics_of_elliot(tmp_path: Path) -> None:
    (tmp_path / "train.tsv").write_text(
        "1\t90\t5.0\t10\n2\t30\t4.0\t10\n3\t90\t5.0\t10\n4\t90\t5.0\t10\n", encoding="utf-8"
    )
    (tmp_path / "test.tsv").write_text(
        "1\t10\t5.0\t20\n1\t30\t5.0\t20\n2\t50\t4.0\t20\n3\t60\t5.0\t20\n", encoding="utf-8"
    )
    # user 2 has only two unseen items, and Elliot fills the list with the seen item 30; user 4 has
    # no test item, and Elliot excludes such users
    lists = (
        "1\t10\t0.9\n1\t20\t0.8\n1\t30\t0.7\n"
        "2\t40\t0.9\n2\t50\t0.8\n2\t30\t-inf\n"
        "3\t10\t0.9\n3\t20\t0.9\n3\t30\t0.9\n"
        "4\t10\t0.9\n4\t20\t0.8\n4\t30\t0.7\n"
    )
    (tmp_path / "ItemKNN_nn=40_sim=cosine.tsv").write_text(lists, encoding="utf-8")
    scores = measure_lists(tmp_path, tmp_path / "ItemKNN_nn=40_sim=cosine.tsv", k=3)
    # user 1 has hits at 1 and 3: DCG 1 + 1/2, ideal 1 + 1/log2(3); Elliot's MAP is the mean of
    # P@1 = 1, P@2 = 1/2 and P@3 = 2/3. User 2 has one at 2 of one: 1/log2(3); (0 + 1/2 + 1/3)/3.
    expected = {
        "nDCG": [1.5 / (1 + 1 / math.log2(3)), 1 / math.log2(3), 0, math.nan],
        "HR": [1, 1, 0, math.nan],
        "MRR": [1, 1 / 2, 0, math.nan],
        "mean_precision": [(1 + 1 / 2 + 2 / 3) / 3, (1 / 2 + 1 / 3) / 3, 0, math.nan],
        "Precision": [2 / 3, 1 / 3, 0, math.nan],
        "Recall": [1, 1, 0, math.nan],
    }
    for name, values in expected.items():
        np.testing.assert_allclose(scores[name].loc[list("1234")], values, err_msg=name)
    # Elliot reports the means over users 1 to 3
    assert scores["nDCG"].mean() == pytest.approx((0.919721 + 0.630930) / 3, abs=1e-6)
    assert scores["mean_precision"].mean() == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    ("name", "text", "layout"),
    [
        (
            "recs.inter",
            (
                "user_id:token\titem_id:token\tscore:float\n"
                "a\ti2\t2\na\ti1\t1\na\ti3\t1\nb\ti4\t9\nb\ti9\t-inf\nb\t[PAD]\t-inf\n"
            ),
            "auto",
        ),
        ("recs.csv", "user,item\na,i2\na,i1\na,i3\nb,i4\n", "recbole"),
        ("recs.json", '{"a": ["i2", "i1", "i3"], "b": ["i4"]}', "auto"),
    ],
)
def test_lists_of_recbole_have_the_metrics_of_recbole(
    tmp_path: Path, name: str, text: str, layout: str
) -> None:
    header = "user_id:token\titem_id:token\n"
    (tmp_path / "train.inter").write_text(header + "a\ti9\nb\ti9\n", encoding="utf-8")
    (tmp_path / "test.inter").write_text(header + "a\ti1\na\ti3\nb\ti4\n", encoding="utf-8")
    (tmp_path / name).write_text(text, encoding="utf-8")
    scores = measure_lists(tmp_path, tmp_path / name, k=3, layout=layout)
    # RecBole's definitions at 3: a has hits at 2 and 3 of 2, b at 1 of 1
    ideal = 1 + 1 / math.log2(3)
    expected: dict[str, list[float]] = {
        "nDCG": [(1 / math.log2(3) + 1 / 2) / ideal, 1],
        "MAP": [(1 / 2 + 2 / 3) / 2, 1],
        "MRR": [1 / 2, 1],
        "Recall": [1, 1],
        "Precision": [2 / 3, 1 / 3],
        "HR": [1, 1],
    }
    for metric, values in expected.items():
        np.testing.assert_allclose(scores[metric].loc[["a", "b"]], values, err_msg=metric)


def test_runs_of_ranx_have_the_metrics_of_ranx(tmp_path: Path) -> None:
    (tmp_path / "train.csv").write_text("user_id,item_id\nq1,seen\nq2,seen\n", encoding="utf-8")
    (tmp_path / "test.json").write_text(
        '{"q1": {"d12": 1, "d25": 1}, "q2": {"d11": 1, "d22": 1, "d30": 1}}', encoding="utf-8"
    )
    run = {
        "q1": {"d12": 0.9, "d23": 0.8, "d25": 0.7, "d36": 0.6},
        "q2": {"d12": 0.9, "d11": 0.8, "d25": 0.7, "d22": 0.5},
    }
    (tmp_path / "run.json").write_text(json.dumps(run, indent=2), encoding="utf-8")
    scores = measure_lists(tmp_path, tmp_path / "run.json", k=5)
    # q1: hits at 1 and 3 of 2; q2: hits at 2 and 4 of 3
    expected = {
        "MRR": [1, 1 / 2],
        "MAP": [(1 + 2 / 3) / 2, (1 / 2 + 2 / 4) / 3],
        "Precision": [2 / 5, 2 / 5],
        "Recall": [1, 2 / 3],
        "nDCG": [
            (1 + 1 / 2) / (1 + 1 / math.log2(3)),
            (1 / math.log2(3) + 1 / math.log2(5)) / (1 + 1 / math.log2(3) + 1 / 2),
        ],
    }
    for metric, values in expected.items():
        np.testing.assert_allclose(scores[metric].loc[["q1", "q2"]], values, err_msg=metric)


def test_equal_lists_of_all_tools_have_equal_metrics(tmp_path: Path) -> None:
    run = api.run(CONFIG, out=tmp_path)
    table = run.metrics.pivot_table(index="model", columns="metric", values="value")
    # ana has hits at 1 and 3 of 2, ben at 2 of 1, cleo at 3 of 2, dan none of 1
    ideal = 1 + 1 / math.log2(3)
    expected = {
        "nDCG": (1.5 / ideal + 1 / math.log2(3) + 0.5 / ideal) / 4,
        "HR": 3 / 4,
        "MRR": (1 + 1 / 2 + 1 / 3) / 4,
        "MAP": ((1 + 2 / 3) / 2 + 1 / 2 + (1 / 3) / 2) / 4,
        "Precision": (2 / 3 + 1 / 3 + 1 / 3) / 4,
    }
    assert sorted(table.index) == ["Elliot", "LensKit", "RecBole", "TREC", "ranx"]
    for metric, value in expected.items():
        np.testing.assert_allclose(table[metric], value, rtol=1e-12, err_msg=metric)
