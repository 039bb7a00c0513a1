from __future__ import annotations

from pathlib import Path

import pytest

from recbias import api
from recbias.core.errors import Faults
from support.specs import make_small_spec

PLUGINS = '''
from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, kw_only=True)
class Association:
    """A metric of vectors."""

    needs: ClassVar[frozenset] = frozenset({"embeddings"})
    direction: ClassVar[str] = "zero"
    unit: ClassVar[str] = ""

    def measure(self, evidence):
        return []


@dataclass(frozen=True, kw_only=True)
class Count(Association):
    """A metric without a better side."""

    needs: ClassVar[frozenset] = frozenset({"lists"})
    direction: ClassVar[str] = "none"


@dataclass(frozen=True, kw_only=True)
class OfReviews(Association):
    """A metric of lists and reviews."""

    needs: ClassVar[frozenset] = frozenset({"lists", "reviews"})


@dataclass(frozen=True, kw_only=True)
class FromReviews:
    """A model of texts."""

    provides: ClassVar[frozenset] = frozenset({"lists"})
    needs: ClassVar[frozenset] = frozenset({"reviews"})
    libraries: ClassVar[tuple] = ()

    def fit(self, data, rng):
        return self
'''


def plan_and_collect_faults(folder: Path, **changes: object) -> str:
    (folder / "own.py").write_text(PLUGINS)
    with pytest.raises(Faults) as caught:
        api.plan(make_small_spec(**changes), out=folder)
    return "\n".join(caught.value.lines())


def test_a_metric_of_an_output_that_no_model_provides_is_refused(tmp_path: Path) -> None:
    name = f"{tmp_path}/own.py:Association"
    text = plan_and_collect_faults(tmp_path, models=["MostPop", "ItemKNN"], metrics=[name])
    assert "needs embeddings, which no model of the spec provides" in text
    assert "choose a model that provides embeddings" in text


def test_a_metric_is_undefined_for_a_model_without_its_output(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(PLUGINS)
    metrics = [f"{tmp_path}/own.py:Association"]
    spec = make_small_spec(models=["MostPop", "PureSVD"], metrics=metrics)
    plan, _ = api.plan(spec, out=tmp_path)
    (undefined,) = plan.undefined
    metric, model, missing = undefined
    assert (metric.name.rpartition(":")[2], model.label, missing) == (
        "Association",
        "MostPop",
        "embeddings",
    )
    measured = [len(model_plan.measures) for model_plan in plan.model_plans]
    assert measured == [0, 1]


def test_a_model_that_needs_missing_data_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "clicks.csv"
    path.write_text("user_id,item_id\na,1\na,2\nb,2\n")
    dataset = {"name": "tables", "interactions": str(path)}
    model = f"{tmp_path}/own.py:FromReviews"
    assert "needs reviews, which tables does not have" in plan_and_collect_faults(
        tmp_path, models=[model], dataset=dataset
    )


def make_search(metric: object) -> dict[str, object]:
    space = {"neighbors": {"int": [5, 50]}}
    return {"name": "ItemKNN", "tune": {"metric": metric, "trials": 3, "space": space}}


WITH_VALIDATION = {"name": "random", "test": 0.2, "validation": 0.1}


@pytest.mark.parametrize("split", [None, {"name": "random", "test": 0.2}])
def test_a_search_without_validation_rows_is_refused(
    tmp_path: Path, split: dict[str, object] | None
) -> None:
    text = plan_and_collect_faults(
        tmp_path, models=[make_search("nDCG")], split=split, metrics=["ItemCoverage"]
    )
    assert "models[0].tune: a search evaluates on validation rows" in text
    assert "validation: 0.1" in text


@pytest.mark.parametrize(
    ("metric", "message"),
    [
        (
            "{own}:Association",
            "own.py:Association needs embeddings, which ItemKNN does not provide",
        ),
        ("{own}:Count", "Count has no better and worse"),
        ("{own}:OfReviews", "own.py:OfReviews needs reviews, which demo does not have"),
    ],
)
def test_a_metric_that_cannot_be_optimized_is_refused(
    tmp_path: Path, metric: str, message: str
) -> None:
    models = [make_search(metric.format(own=tmp_path / "own.py"))]
    text = plan_and_collect_faults(tmp_path, models=models, split=WITH_VALIDATION)
    assert text.startswith("error: models[0].tune.metric: ")
    assert message in text


def test_the_worst_group_of_a_metric_without_a_better_value_is_refused(tmp_path: Path) -> None:
    grouped = {"name": "first_slot_share", "by": "gender", "gap": "worst"}
    text = plan_and_collect_faults(tmp_path, metrics=[grouped])
    assert "metrics[0].gap: first_slot_share has no better and worse" in text
    assert "choose gap: difference" in text


def test_a_test_against_a_model_that_is_not_there_is_refused(tmp_path: Path) -> None:
    tests = [{"name": "paired_t", "against": "PureSVDD"}]
    models = ["MostPop", {"name": "PureSVD", "factors": 2}]
    text = plan_and_collect_faults(tmp_path, models=models, metrics=["nDCG"], tests=tests)
    assert "tests[0].against: no model is labelled 'PureSVDD'" in text
    assert "did you mean PureSVD?" in text


@pytest.mark.parametrize(
    ("label", "message", "remedy"),
    [
        ("PureSVDD", "no model is labelled 'PureSVDD'", "did you mean PureSVD?"),
        ("MostPop", "MostPop has no embeddings to compare items by", "provides embeddings"),
    ],
)
def test_a_model_whose_embeddings_cannot_be_borrowed_is_refused(
    tmp_path: Path, label: str, message: str, remedy: str
) -> None:
    metric = {"name": "intra_list_distance", "embeddings_of": label}
    models = ["MostPop", {"name": "PureSVD", "factors": 2}]
    text = plan_and_collect_faults(tmp_path, models=models, metrics=[metric])
    assert f"metrics[0].embeddings_of: {message}" in text
    assert remedy in text
