from __future__ import annotations

from typing import Any

import pytest

from recbias.api import read_experiment
from recbias.config.checks import Check
from recbias.core.errors import Faults
from support.specs import make_small_spec

METRICS = [
    "nDCG",
    "nDCG@3",
    {"name": "HR", "label": "hits"},
    {"name": "nDCG", "by": "gender & age < 25"},
    {"name": "MRR", "by": "gender", "gap": "ratio", "label": "evenness"},
    {"name": "APLT", "head": 0.5},
]


def resolve(**check: Any) -> Check:
    spec = make_small_spec(metrics=METRICS, checks=[check])
    (resolved,) = read_experiment(spec).checks
    return resolved


@pytest.mark.parametrize(
    ("check", "label", "k"),
    [
        ({"metric": "ndcg"}, "nDCG", 5),  # the cutoff of the spec
        ({"metric": "nDCG@3"}, "nDCG", 3),
        ({"metric": "hits"}, "hits", 5),
        ({"metric": "HR@5"}, "hits", 5),
        ({"metric": "APLT"}, "APLT(head=0.5)", 5),
        ({"metric": "APLT(head=0.5)@5"}, "APLT(head=0.5)", 5),
        ({"metric": "nDCG", "by": "gender&age < 25"}, "nDCG(by=gender & age < 25)", 5),
        (
            {"metric": "nDCG", "by": "gender & age < 25", "gap": "difference"},
            "nDCG(by=gender & age < 25, gap=difference)",
            5,
        ),
        (
            {"metric": "nDCG(by=gender & age < 25, gap=std)"},
            "nDCG(by=gender & age < 25, gap=std)",
            5,
        ),
        ({"metric": "evenness"}, "evenness", 5),
        ({"metric": "MRR", "by": "gender", "gap": "ratio"}, "evenness", 5),
    ],
)
def test_a_check_names_its_metric_as_the_reports_do(
    check: dict[str, Any], label: str, k: int
) -> None:
    metric = resolve(**check, at_most=1).metric
    assert (metric.label, metric.cutoff) == (label, k)


def test_all_models_are_checked_but_the_baseline() -> None:
    assert resolve(metric="hits", at_most=1).models == ("MostPop", "ItemKNN")
    check = resolve(metric="hits", not_below="mostpop", margin=0.5)
    assert (check.models, check.baseline) == (("ItemKNN",), "MostPop")
    assert check.spec.line == "not below MostPop - 0.5"
    assert resolve(metric="hits", at_most=1, models=["itemknn"]).models == ("ItemKNN",)


@pytest.mark.parametrize(
    ("check", "where", "text"),
    [
        ({"metric": "nDGC", "at_most": 1}, "metric", "did you mean nDCG"),
        (
            {"metric": "hits", "not_below": "MostPop", "models": ["ItemKNN", "mostpop"]},
            "models[1]",
            "MostPop is the model that the others are compared with",
        ),
        ({"metric": "nDCG", "by": "age", "at_most": 1}, "metric", "add it to metrics"),
        ({"metric": "Gini", "at_most": 1}, "metric", "Gini is not among the metrics"),
        ({"metric": "hits", "not_below": "EASY"}, "not_below", "'EASY'"),
        ({"metric": "hits", "not_above": "MostPopp"}, "not_above", "did you mean MostPop?"),
        ({"metric": "hits", "models": ["X"], "at_most": 1}, "models[0]", "'X'"),
        ({"metric": "hits"}, "", "found none"),
        ({"metric": "hits", "at_most": 1, "at_least": 0}, "", "found at_least and at_most"),
        ({"metric": "hits", "at_most": 1, "margin": 0.1}, "margin", "not_below"),
        ({"metric": "hits", "not_below": "MostPop", "margin": -1}, "margin", "at least 0"),
        ({"metric": "hits", "within": [1, 0]}, "within", "larger"),
        ({"metric": "hits", "within": [1]}, "within", "list of 2"),
        ({"metric": "hits", "gap": "std", "at_most": 1}, "gap", "needs by"),
        ({"metric": "hits", "at_moist": 1}, "at_moist", "did you mean at_most"),
        ({"metric": "hits", "at_most": "high"}, "at_most", "must be a number"),
    ],
)
def test_a_faulty_check_is_refused_at_its_place(
    check: dict[str, Any], where: str, text: str
) -> None:
    with pytest.raises(Faults) as caught:
        resolve(**check)
    lines = "\n".join(caught.value.lines())
    assert f"checks[0]{'.' if where else ''}{where}" in lines
    assert text in lines
