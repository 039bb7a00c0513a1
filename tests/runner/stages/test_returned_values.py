from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import recbias
from recbias.core.errors import UserError
from support.specs import make_small_spec

IMPORTS = "from recbias.plugin import *\n\n"

MODEL = """\
class Fitted:
    def recommend(self, queries, k, data): {recommend}
    def embeddings(self): {embeddings}

@dataclass(frozen=True)
class Mine:
    provides, needs, libraries = frozenset({{"lists", "embeddings"}}), frozenset({{"train"}}), ()
    def fit(self, data, rng): return {fitted}
"""

METRIC = """\
@dataclass(frozen=True)
class Mine:
    needs, direction, unit = frozenset({{"lists"}}), "none", "query"
    def measure(self, evidence): {measure}
"""

DETECTOR = """\
@dataclass(frozen=True)
class Mine:
    libraries, kinds = (), ("old",)
    def label(self, items, rng): {label}
"""

DATASET = """\
@dataclass(frozen=True)
class Mine:
    def gives(self): return frozenset({{"train"}})
    def files(self, data): return []
    def load(self, data, rng): {load}
"""

TEST = """\
@dataclass(frozen=True)
class Mine:
    alpha: Alpha = 0.05
    correction: Correction = "holm"
    family: Family = "metric"
    def pairs(self, values, rng): {pairs}
"""

LISTS = (
    "return rank_by_scores(lambda users: np.ones((len(users), data.train.n_items)), "
    "queries, k, data)"
)
SHORT_COLUMNS = (
    "return {**compute_pair_moments(values).columns(0.05), "
    "**dict.fromkeys(('statistic', 'df', 'p', 'effect_size'), np.ones(5))}"
)
EMPTY = "return Embeddings(None, None)"
DATASET_OF = (
    "ids, codes = Vocabulary.encode(np.array(['a', 'b'], dtype=object)); "
    "return Dataset(Interactions({}))"
)
CODES = DATASET_OF.format("codes + 7, codes, np.ones(2), None, ids, ids")


def write_plugin(folder: Path, text: str, **bodies: str) -> str:
    path = folder / "mine.py"
    path.write_text(IMPORTS + text.format(**bodies))
    return f"{path}:Mine"


def run_and_collect(folder: Path, **changes: Any) -> str:
    """Return the failure of a run, whether it stops the run or not."""
    try:
        run = recbias.run(make_small_spec(**changes), out=folder)
    except UserError as error:
        return str(error)
    (failure,) = run.failures
    assert set(run.metrics["model"]) >= {"MostPop"}  # the others are reported
    return str(failure["message"])


@pytest.mark.parametrize(
    ("fitted", "recommend", "embeddings", "message"),
    [
        ("None", LISTS, EMPTY, "mine.py:10: Mine.fit() returns NoneType, which has no embeddings"),
        (
            "Fitted()",
            "return None",
            EMPTY,
            "mine.py:4: Fitted.recommend() returns NoneType, not R",
        ),
        ("Fitted()", LISTS, "return 1", "mine.py:5: Fitted.embeddings() returns int, not Embeddi"),
        (
            "Fitted()",
            LISTS,
            "return Embeddings(np.ones((3, 2)), None)",
            "mine.py:5: Fitted.embeddings() returns users of shape (3, 2) for 60 users",
        ),
    ],
)
def test_outputs_of_another_form_fail_the_model_at_its_method(
    tmp_path: Path, fitted: str, recommend: str, embeddings: str, message: str
) -> None:
    name = write_plugin(tmp_path, MODEL, fitted=fitted, recommend=recommend, embeddings=embeddings)
    assert message in run_and_collect(tmp_path, models=["MostPop", name])


@pytest.mark.parametrize(
    ("measure", "message"),
    [
        ("return 0.5", "mine.py:6: Mine.measure() returns float, not a list of Measurement"),
        ("return [0.5]", "mine.py:6: Mine.measure() returns float, not a list of Measurement"),
        (
            "return [Measurement.from_units(UnitScores('user', np.array(['a']), np.ones(2)))]",
            "mine.py:6: Mine.measure() returns values of shape (2,) for 1 units",
        ),
        (
            "return [evidence.measure_queries(np.ones(3))]",
            "has values of shape (3,) for 60 queries (mine.py:6: def measure",
        ),
        (
            "return [evidence.measure_queries(np.full(60, 1j))]",
            "has values of type complex128, which are not numbers (mine.py:6: def measure",
        ),
        (
            "return [evidence.measure_queries(np.array([None] * 60))]",
            "has values of type object, which are not numbers (mine.py:6: def measure",
        ),
        (
            "return [Measurement.from_units(UnitScores('user', ['a'], np.ones(1, bool)))]",
            "mine.py:6: Mine.measure() returns values of type bool, not float64",
        ),
        (
            "return [Measurement(value='high', n=1, undefined=0)]",
            "mine.py:6: Mine.measure() returns values of type <U4, not float64",
        ),
        (
            "return [Measurement(value=np.inf, n=1, undefined=0)]",
            "mine.py:6: Mine.measure() returns 1 infinite values",
        ),
        ("return []", "mine.py:6: Mine.measure() returns an empty list, without a measurement"),
        (
            "return [evidence.measure_queries(np.ones(60))] * 2",
            "mine.py:6: Mine.measure() returns 2 measurements of no group or target",
        ),
        (
            "evidence.need('embeddings')",
            "needs embeddings, which this experiment lacks (mine.py:6",
        ),
    ],
)
def test_measurements_of_another_form_fail_the_metric_at_its_method(
    tmp_path: Path, measure: str, message: str
) -> None:
    name = write_plugin(tmp_path, METRIC, measure=measure)
    failure = run_and_collect(tmp_path, models=["MostPop"], metrics=["nDCG", name])
    assert message in failure


@pytest.mark.parametrize(
    ("label", "message"),
    [
        ("return None", "returns NoneType, not Mapping"),
        ("return {'new': np.ones(len(items.ids))}", "returns columns with 'new' of no kind"),
        ("return {}", "returns columns with 'old' missing"),
        ("return {'old': np.ones(3)}", "returns 'old' as float64[3], not a number for each of 50"),
        ("return {'old': ['a'] * len(items.ids)}", "returns 'old' as <U1[50], not a number"),
    ],
)
def test_labels_of_another_form_are_refused_at_the_method(
    tmp_path: Path, label: str, message: str
) -> None:
    labels = [{"name": "age", "detector": write_plugin(tmp_path, DETECTOR, label=label)}]
    failure = run_and_collect(tmp_path, labels=labels)
    assert f"mine.py:6: Mine.label() {message}" in failure


@pytest.mark.parametrize(
    ("load", "message"),
    [
        ("return None", "returns NoneType, not Dataset"),
        (CODES, "returns codes of users outside 0 to 1"),
        (
            DATASET_OF.format("codes + .5, codes, np.ones(2), None, ids, ids"),
            "returns codes of users as float64[2] for 2 interactions",
        ),
        (
            DATASET_OF.format("codes, codes[:1], np.ones(2), None, ids, ids"),
            "returns codes of items as int32[1] for 2 interactions",
        ),
        (
            DATASET_OF.format("codes, codes, np.ones(2), None, ids, ['a', 'b']"),
            "returns identifiers of items as list, not Vocabulary",
        ),
        (
            DATASET_OF.format("codes, codes, np.ones(2), None, ids, ids")[:-1]
            + ", users=pd.DataFrame({'gender': ['F', 'M']}))",
            "returns users as DataFrame, not Attributes",
        ),
        (
            DATASET_OF.format("codes, codes, np.ones(2), None, ids, ids")[:-1]
            + ", items=Attributes(ids, pd.DataFrame({'year': [1990.0]})))",
            "returns a table of 1 rows for 2 items",
        ),
    ],
)
def test_a_dataset_of_another_form_is_refused_at_the_method(
    tmp_path: Path, load: str, message: str
) -> None:
    name = write_plugin(tmp_path, DATASET, load=load)
    assert f"mine.py:7: Mine.load() {message}" in run_and_collect(tmp_path, dataset=name)


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ("return values.nothing", "attribute 'nothing' (mine.py:8: def pairs"),
        ("return None", "mine.py:8: Mine.pairs() returns NoneType, not Mapping"),
        ("return {'p': np.ones(1)}", "mine.py:8: Mine.pairs() returns no column a, b, n, mean_a"),
        (
            SHORT_COLUMNS,
            "mine.py:8: Mine.pairs() returns statistic as float64[5], not a number for each of 1",
        ),
    ],
)
def test_a_test_that_fails_leaves_the_results_of_the_run(
    tmp_path: Path, pairs: str, message: str
) -> None:
    name = write_plugin(tmp_path, TEST, pairs=pairs)
    run = recbias.run(make_small_spec(tests=["paired_t", name]), out=tmp_path)
    (failure,) = run.failures
    assert failure["stage"] == "compare the models by Mine"
    assert message in failure["message"]
    assert set(run.significance["test"]) == {"paired_t"}
