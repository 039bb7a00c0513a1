from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from recbias import api
from recbias.core.errors import Faults
from recbias.runner.stages.requirements import cutoff
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
'''


def faults(folder: Path, **changes: object) -> str:
    (folder / "own.py").write_text(PLUGINS)
    with pytest.raises(Faults) as caught:
        api.plan(make_small_spec(**changes), out=folder)
    return "\n".join(caught.value.lines())


def test_a_metric_that_no_model_can_feed_is_refused(tmp_path: Path) -> None:
    name = f"{tmp_path}/own.py:Association"
    said = faults(tmp_path, models=["MostPop", "PureSVD"], metrics=[name])
    assert "needs embeddings, which MostPop does not provide" in said
    assert "it can be measured on PureSVD" in said


def test_a_model_that_the_data_cannot_feed_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "clicks.csv"
    path.write_text("user_id,item_id\na,1\na,2\nb,2\n")
    dataset = {"name": "tables", "interactions": str(path)}
    model = f"{tmp_path}/own.py:FromReviews"
    assert "needs reviews, which tables does not have" in faults(
        tmp_path, models=[model], dataset=dataset
    )


def tuned(metric: object) -> dict[str, object]:
    space = {"neighbors": {"int": [5, 50]}}
    return {"name": "ItemKNN", "tune": {"metric": metric, "trials": 3, "space": space}}


WITH_VALIDATION = {"name": "random", "test": 0.2, "validation": 0.1}


@pytest.mark.parametrize("split", [None, {"name": "random", "test": 0.2}])
def test_a_search_without_validation_rows_is_refused(
    tmp_path: Path, split: dict[str, object] | None
) -> None:
    said = faults(tmp_path, models=[tuned("nDCG")], split=split, metrics=["ItemCoverage"])
    assert "models[0].tune: a search is judged on validation rows" in said
    assert "validation: 0.1" in said


@pytest.mark.parametrize(
    ("metric", "found"),
    [
        (
            "{own}:Association",
            "own.py:Association needs embeddings, which ItemKNN does not provide",
        ),
        ("{own}:Count", "Count has no better and worse"),
        ("{own}:OfReviews", "own.py:OfReviews needs reviews, which demo does not have"),
    ],
)
def test_a_metric_that_cannot_say_what_is_better_is_refused(
    tmp_path: Path, metric: str, found: str
) -> None:
    models = [tuned(metric.format(own=tmp_path / "own.py"))]
    said = faults(tmp_path, models=models, split=WITH_VALIDATION)
    assert said.startswith("error: models[0].tune.metric: ")
    assert found in said


def test_a_search_without_its_package_is_refused_with_the_line_that_installs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    said = faults(tmp_path, models=[tuned("nDCG")], split=WITH_VALIDATION)
    assert "models[0].tune: a search needs the package 'optuna'" in said
    assert "help: pip install 'recbias[tune]'" in said


def test_a_search_may_be_judged_by_longer_lists_than_are_asked_for(tmp_path: Path) -> None:
    plan, _ = api.plan(
        make_small_spec(models=[tuned("nDCG@9")], split=WITH_VALIDATION), out=tmp_path
    )
    assert plan.chains[0].search is not None


def test_the_cutoff_of_a_metric_is_its_k(tmp_path: Path) -> None:
    plan, _ = api.plan(make_small_spec(metrics=["nDCG@3", "ItemCoverage"]), out=tmp_path)
    assert [cutoff(each) for each in plan.experiment.metrics] == [3, 5]


def test_vectors_can_feed_every_kind_of_metric(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(PLUGINS)
    np.save(tmp_path / "u.npy", np.eye(2, dtype=np.float32))
    (tmp_path / "ids.txt").write_text("1\n2\n")
    vectors = {"name": "vectors", "users": f"{tmp_path}/u.npy", "items": f"{tmp_path}/u.npy"}
    ids = dict.fromkeys(("user_ids", "item_ids"), f"{tmp_path}/ids.txt")
    metrics = ["nDCG", f"{tmp_path}/own.py:Association"]
    plan, _ = api.plan(make_small_spec(models=[{**vectors, **ids}], metrics=metrics), out=tmp_path)
    assert len(plan.chains[0].measures) == 2
