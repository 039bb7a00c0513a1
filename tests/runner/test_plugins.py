from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import recbias
from recbias import api
from recbias.core.errors import UserError
from support.specs import make_small_spec

MODEL = '''
import sys
from dataclasses import dataclass
from typing import ClassVar

from recbias.models.knn import ItemKNN

{top}

@dataclass(frozen=True, kw_only=True)
class Odd:
    """A model that breaks its promises."""

    provides: ClassVar[frozenset] = frozenset({{"lists"}})
    needs: ClassVar[frozenset] = frozenset({{"train"}})
    libraries: ClassVar[tuple] = ()
    size: int = 1

    def fit(self, data, rng):
        return ItemKNN().fit(data, rng)

    {method}

{end}
'''


def make_spec(folder: Path, *, top: str = "", method: str = "", end: str = "") -> dict[str, Any]:
    (folder / "odd.py").write_text(MODEL.format(top=top, method=method, end=end))
    return make_small_spec(models=["MostPop", f"{folder}/odd.py:Odd"])


def plan_and_collect_lines(spec: dict[str, Any], folder: Path) -> str:
    with pytest.raises(UserError) as caught:
        api.plan(spec, out=folder / "out")
    return "\n".join(caught.value.lines())


STORED = """def restore(self, state): return self

    def fit(self, data, rng): return self

    def state(self): return {state}
"""


STATES = {
    "None": "returns NoneType, not a dict of arrays",
    "{{1: [1.0]}}": "has 1, which is no name of an array",
    "{{'a': [None]}}": "has 'a', which is no name of an array",
    "sys.exit(0)": "SystemExit: 0",
}
"""States that cannot be stored, with what is said of each."""


def test_a_state_that_cannot_be_stored_fails_its_model_only(tmp_path: Path) -> None:
    models: list[str | dict[str, str]] = ["MostPop"]
    for number, state in enumerate(STATES):
        method = STORED.replace("{state}", state.format())
        path = tmp_path / f"odd_{number}.py"
        path.write_text(MODEL.format(top="", method=method, end=""))
        models.append({"name": f"{path}:Odd", "label": state})
    run = recbias.run(make_small_spec(models=models), out=tmp_path / "out", workers=2)
    messages = {failure["stage"]: failure["message"] for failure in run.manifest["failures"]}
    assert messages.keys() == {f"fit {state}" for state in STATES}
    for state, message in STATES.items():
        assert message in messages[f"fit {state}"]
    assert set(run.metrics["model"]) == {"MostPop"}


@pytest.mark.parametrize(
    ("method", "message", "remedy"),
    [
        ("fit = None", "has no method fit(data, rng)", "def fit(self, data, rng)"),
        (
            "def fit(self, data): pass",
            "fit of {name} cannot be called as fit(data, rng): too many positional arguments",
            "write it as def fit(self, data, rng)",
        ),
        (
            "def fit(self, data, rng, epochs): pass",
            "cannot be called as fit(data, rng): missing a required argument: 'epochs'",
            "write it as def fit(self, data, rng)",
        ),
    ],
)
def test_a_method_that_cannot_be_called_is_refused_at_its_line(
    tmp_path: Path, method: str, message: str, remedy: str
) -> None:
    spec = make_spec(tmp_path, method=method)
    lines = plan_and_collect_lines(spec, tmp_path)
    assert message.format(name=f"{tmp_path}/odd.py:Odd") in lines
    assert remedy in lines
    assert f"models[1]: odd.py:{22 if 'def' in method else 10}: " in lines


IMPORTS = "from recbias.plugin import *\n\n"

RETURNED_VALUES_MODEL = """\
class Fitted:
    def recommend(self, queries, k, data): {recommend}
    def embeddings(self): {embeddings}

@dataclass(frozen=True)
class Mine:
    provides, needs, libraries = frozenset({{"lists", "embeddings"}}), frozenset({{"train"}}), ()
    def fit(self, data, rng): return {fitted}
"""

RETURNED_VALUES_METRIC = """\
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
    (failure,) = run.failures.to_dict("records")
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
    name = write_plugin(
        tmp_path, RETURNED_VALUES_MODEL, fitted=fitted, recommend=recommend, embeddings=embeddings
    )
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
            "return [Measurement.from_units(UnitScores('user', ['a'], np.ones(1, bool)))]",
            "mine.py:6: Mine.measure() returns values of type bool, not float64",
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
    name = write_plugin(tmp_path, RETURNED_VALUES_METRIC, measure=measure)
    failure = run_and_collect(tmp_path, models=["MostPop"], metrics=["nDCG", name])
    assert message in failure


@pytest.mark.parametrize(
    ("label", "message"),
    [
        ("return None", "returns NoneType, not Mapping"),
        ("return {'new': np.ones(len(items.ids))}", "returns columns with 'new' of no kind"),
        ("return {}", "returns columns with 'old' missing"),
        ("return {'old': np.ones(3)}", "returns 'old' as float64[3], not a number for each of 50"),
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
    (failure,) = run.failures.to_dict("records")
    assert failure["stage"] == "compare the models by Mine"
    assert message in failure["message"]
    assert set(run.significance["test"]) == {"paired_t"}


@pytest.mark.parametrize("name", ["provides", "needs", "libraries"])
def test_a_model_that_lacks_a_member_is_refused(tmp_path: Path, name: str) -> None:
    lines = plan_and_collect_lines(make_spec(tmp_path, end=f"del Odd.{name}"), tmp_path)
    assert f": {tmp_path}/odd.py:Odd has no {name}" in lines
    assert f"help: give its class {name}: " in lines
