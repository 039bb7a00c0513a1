from __future__ import annotations

from typing import Any

import pytest

from recbias.config.experiment import load_experiment
from recbias.core.errors import Faults
from recbias.registry import REGISTRIES

HEAD: dict[str, Any] = {"name": "x", "dataset": "demo", "split": "random", "metrics": ["nDCG"]}


def load_labels(key: str, *entries: Any) -> list[str]:
    """Return the labels of a section, and check that the resolved spec gives the same ones."""
    spec = {"models": ["MostPop"], **HEAD, key: list(entries)}
    experiment = load_experiment(spec, registries=REGISTRIES)
    again = load_experiment(experiment.as_spec(), registries=REGISTRIES)
    assert get_labels(again, key) == get_labels(experiment, key)
    return get_labels(experiment, key)


def get_labels(experiment: Any, key: str) -> list[str]:
    specs = experiment.datasets if key == "dataset" else getattr(experiment, key)
    return [spec.label for spec in specs]


def test_models_state_the_settings_in_which_they_differ() -> None:
    entries = ["MostPop", "ItemKNN", {"name": "ItemKNN", "neighbors": 5}]
    assert load_labels("models", *entries) == [
        "MostPop",
        "ItemKNN(neighbors=100)",
        "ItemKNN(neighbors=5)",
    ]


def test_versions_by_re_rankers_state_the_settings_in_which_they_differ() -> None:
    fair = {"name": "FA*IR", "attribute": "genres"}
    reranked = [
        fair | {"protected": "Drama", "share": [0.2, 0.4]},
        fair | {"protected": "Comedy", "share": [0.2]},
        {"name": "MMR", "attribute": "genres"},
        fair | {"protected": "Comedy", "label": "mine"},
    ]
    assert load_labels("models", {"name": "MostPop", "rerank": reranked}) == [
        "MostPop",
        "MostPop + FA*IR(protected=Drama, share=0.2)",
        "MostPop + FA*IR(protected=Drama, share=0.4)",
        "MostPop + FA*IR(protected=Comedy, share=0.2)",
        "MostPop + MMR",
        "MostPop + mine",
    ]


def test_names_of_long_values_that_differ_in_the_middle_differ() -> None:
    models = [f"{'a' * 50}{middle}{'b' * 50}" for middle in "xyz"]
    labels = load_labels("models", *({"name": "WOK", "llm": {"model": name}} for name in models))
    assert len(set(labels)) == 3
    assert all(len(label) < 90 for label in labels)
    assert [label[-2:] for label in labels] == ["b)", "#2", "#3"]


def test_tests_state_the_settings_that_have_no_column() -> None:
    entries = [
        {"name": "sign_flip", "permutations": 99},
        {"name": "sign_flip", "correction": "holm"},
        "paired_t",
        {"name": "paired_t", "correction": "holm"},
        {"name": "paired_t", "label": "mine"},
    ]
    labels = ["sign_flip(permutations=99)", "sign_flip(permutations=10000)"]
    assert load_labels("tests", *entries) == [*labels, "paired_t", "paired_t", "mine"]
    with pytest.raises(Faults, match=r"mine is also tests\[0\]"):
        load_labels("tests", *[{"name": "paired_t", "label": "mine"}] * 2)


@pytest.mark.parametrize(
    ("differing", "labels"),
    [
        (
            [{"reference_group": "F"}, {"reference_group": "M"}],
            ["nDCG(by=gender, reference_group=F)", "nDCG(by=gender, reference_group=M)"],
        ),
        (
            [{"gap": "difference"}, {"gap": "difference", "min_group": 5}],
            ["nDCG(by=gender, gap=difference)", "nDCG(by=gender, gap=difference, min_group=5)"],
        ),
        ([{"gap": "groups"}, {"gap": "ratio"}], ["nDCG(by=gender)", "nDCG(by=gender, gap=ratio)"]),
    ],
)
def test_metrics_state_how_their_groups_differ(
    differing: list[dict[str, Any]], labels: list[str]
) -> None:
    entries = [{"name": "nDCG", "by": "gender", "gap": "groups"} | each for each in differing]
    assert load_labels("metrics", *entries) == labels


def test_a_reference_group_without_a_gap_is_that_of_the_groups_alone() -> None:
    entry = {"name": "nDCG", "by": "gender", "reference_group": "F"}
    labels = load_labels("metrics", entry)  # checks that the resolved spec can be run again
    assert labels[:2] == ["nDCG(by=gender)", "nDCG(by=gender, gap=difference)"]


def test_the_name_of_a_metric_by_group_can_be_written_in_a_spec() -> None:
    names = ["nDCG(by=gender)", "nDCG(by=gender, gap=ratio)", "nDCG(by=gender, gap=atkinson)"]
    assert load_labels("metrics", {"name": names[0], "gap": "groups"}, *names[1:]) == names
    with pytest.raises(Faults, match="by is given both in the name and as a setting"):
        load_labels("metrics", {"name": "nDCG(by=gender)", "by": "age"})


def test_metrics_state_a_setting_that_changes_no_value_only_to_tell_them_apart() -> None:
    association = {
        "name": "EAA",
        "groups": {"attribute": "gender", "a": "F", "b": "M"},
        "targets": {"attribute": "genres", "e": "Drama", "p": "Comedy"},
    }
    (plain,) = load_labels("metrics", association)
    assert "permutations" not in plain
    labels = load_labels("metrics", association, association | {"permutations": 500})
    start = plain.removesuffix(")")
    assert labels == [f"{start}, permutations=10000)", f"{start}, permutations=500)"]
