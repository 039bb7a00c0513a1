from __future__ import annotations

import json
from pathlib import Path
from typing import Any

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


OWN = "{folder}/own.py:"
VALIDATED = {"name": "random", "test": 0.2, "validation": 0.1}
SVD = {"name": "PureSVD", "factors": 2}


def search(metric: object) -> dict[str, object]:
    space = {"neighbors": {"int": [5, 50]}}
    return {"name": "ItemKNN", "tune": {"metric": metric, "trials": 3, "space": space}}


def borrow(label: str) -> dict[str, Any]:
    metric = {"name": "intra_list_distance", "embeddings_of": label}
    return {"models": ["MostPop", SVD], "metrics": [metric]}


def compare(label: str) -> dict[str, Any]:
    metric = {"name": "propensity_sensitivity", "against": label}
    return {"models": ["MostPop"], "metrics": [metric]}


NO_VALIDATION = ("models[0].tune: a search evaluates on validation rows", "validation: 0.1")
CONTRADICTIONS: dict[str, tuple[dict[str, Any], str, str]] = {
    "no test part": ({"split": None}, "nDCG needs test", "split"),
    "long lists": (
        {"metrics": ["nDCG@30"]},
        "nDCG@30 needs lists of 30, but k is 5",
        "set k: 30",
    ),
    "no items": (
        {
            "dataset": {"name": "tables"},
            "split": None,
            "metrics": [{"name": "ARP", "popularity": "n_ratings"}],
            "models": ["MostPop"],
        },
        "ARP needs items",
        "items table",
    ),
    "no interactions": (
        {"dataset": {"name": "tables"}},
        "random has nothing to split",
        "interactions",
    ),
    "an output of no model": (
        {"models": ["MostPop", "ItemKNN"], "metrics": [f"{OWN}Association"]},
        "needs embeddings, which no model of the spec provides",
        "choose a model that provides embeddings",
    ),
    "data of a model": (
        {
            "models": [f"{OWN}FromReviews"],
            "dataset": {"name": "tables", "interactions": "{folder}/clicks.csv"},
        },
        "needs reviews, which tables does not have",
        "",
    ),
    "search without a split": (
        {"models": [search("nDCG")], "split": None, "metrics": ["ItemCoverage"]},
        *NO_VALIDATION,
    ),
    "search without validation rows": (
        {"models": [search("nDCG")], "split": {"name": "random", "test": 0.2}},
        *NO_VALIDATION,
    ),
    "search by another output": (
        {"models": [search(f"{OWN}Association")], "split": VALIDATED},
        "own.py:Association needs embeddings, which ItemKNN does not provide",
        "",
    ),
    "search without a better value": (
        {"models": [search(f"{OWN}Count")], "split": VALIDATED},
        "Count has no better and worse",
        "",
    ),
    "search by missing data": (
        {"models": [search(f"{OWN}OfReviews")], "split": VALIDATED},
        "own.py:OfReviews needs reviews, which demo does not have",
        "",
    ),
    "the worst group": (
        {"metrics": [{"name": "first_slot_share", "by": "gender", "gap": "worst"}]},
        "metrics[0].gap: first_slot_share has no better and worse",
        "choose gap: difference",
    ),
    "test against no model": (
        {"models": ["MostPop", SVD], "tests": [{"name": "paired_t", "against": "PureSVDD"}]},
        "tests[0].against: no model is labelled 'PureSVDD'",
        "did you mean PureSVD?",
    ),
    "embeddings of no model": (
        borrow("PureSVDD"),
        "metrics[0].embeddings_of: no model is labelled 'PureSVDD'",
        "did you mean PureSVD?",
    ),
    "no embeddings": (
        borrow("MostPop"),
        "metrics[0].embeddings_of: MostPop has no embeddings to compare items by",
        "provides embeddings",
    ),
    "a candidate that is none": (
        compare("MostPop"),
        "metrics[0].against: MostPop has no policy to compare with",
        "choose the model shown or policy",
    ),
}


@pytest.mark.parametrize(
    ("changes", "message", "remedy"), CONTRADICTIONS.values(), ids=CONTRADICTIONS
)
def test_contradictions_in_the_spec_are_refused(
    tmp_path: Path, changes: dict[str, Any], message: str, remedy: str
) -> None:
    (tmp_path / "own.py").write_text(PLUGINS)
    (tmp_path / "clicks.csv").write_text("user_id,item_id\na,1\na,2\nb,2\n")
    text = json.dumps(make_small_spec(**changes)).replace("{folder}", str(tmp_path))
    with pytest.raises(Faults) as caught:
        api.plan(json.loads(text), out=tmp_path)
    lines = "\n".join(caught.value.lines())
    assert message.replace("{folder}", str(tmp_path)) in lines
    assert remedy in lines


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
