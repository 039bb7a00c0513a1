from __future__ import annotations

from pathlib import Path

import pytest

from recbias.config.experiment import Experiment, load_experiment
from support.models import fake_plugins
from support.models.fake_plugins import REGISTRIES

COMPLETE = Path(__file__).with_name("complete.yaml").read_text(encoding="utf-8")
HEAD = "name: x\ndataset: ml-1m\n"


def load(text: str, *overrides: str) -> Experiment:
    Path("spec.yaml").write_text(text, encoding="utf-8")
    return load_experiment(Path("spec.yaml"), registries=REGISTRIES, overrides=overrides)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_sections_of_a_spec_become_plugins() -> None:
    experiment = load(COMPLETE)
    assert (experiment.name, experiment.seeds, experiment.k) == ("children-ml1m", (7,), 10)
    assert experiment.datasets[0].source.plugin == fake_plugins.ML1M(side=("overview",))
    assert [step.plugin for step in experiment.datasets[0].filters] == [
        fake_plugins.Threshold(at_least=4.0),
        fake_plugins.KCore(k=10),
    ]
    assert experiment.split is not None
    assert experiment.split.plugin == fake_plugins.RandomSplit(folds=5)
    assert experiment.queries.plugin == fake_plugins.Users(where="age < 18")
    assert [model.name for model in experiment.models] == ["MostPop", "ItemKNN"]
    assert experiment.models[1].plugin == fake_plugins.ItemKNN(neighbors=70, shrink=10.0)
    assert experiment.models[1].where == ("models", 1)
    assert experiment.models[1].parameters == {
        "neighbors": 70,
        "similarity": "cosine",
        "shrink": 10.0,
        "binary": True,
    }
    assert experiment.labels[0].plugin == fake_plugins.Names(from_="cast")
    assert (experiment.labels[0].label, experiment.labels[0].name) == ("ngim", "names")
    assert experiment.labels[0].parameters == {"from": "cast"}
    assert experiment.tests[0].plugin == fake_plugins.PairedT(family=3)
    assert experiment.report.formats == ("csv", "md")
    assert experiment.base == Path()


def test_metrics_have_the_cutoff_of_the_spec_and_labels_in_notation() -> None:
    experiment = load(COMPLETE)
    assert [(metric.label, metric.plugin.k) for metric in experiment.metrics] == [
        ("nDCG", 10),
        ("nDCG", 5),
        ("APLT(head=0.8)", 10),
        ("HIT_BAD(label=ngim.gender)", 10),
        ("tail", 10),
    ]


def test_short_spec_has_defaults() -> None:
    experiment = load(HEAD + "models: [MostPop]\n")
    assert (experiment.seeds, experiment.k, experiment.split, experiment.labels) == (
        (42,),
        10,
        None,
        (),
    )
    assert experiment.queries.plugin == fake_plugins.Users()
    assert (experiment.metrics, experiment.tests) == ((), ())
    assert experiment.report.formats == ("csv", "json", "md", "html", "latex")
    assert (experiment.report.reference, experiment.report.tolerance) == (None, 0.01)


def test_datasets_and_seeds_may_be_lists() -> None:
    text = "name: x\nseeds: [1, 2]\nmodels: [MostPop]\ndataset:\n  - ml-1m\n"
    experiment = load(text + "  - {name: ml-1m, label: cast, side: [cast], filters: [k_core]}\n")
    assert experiment.seeds == (1, 2)
    assert [dataset.label for dataset in experiment.datasets] == ["ml-1m", "cast"]
    assert [len(dataset.filters) for dataset in experiment.datasets] == [0, 1]
    assert experiment.datasets[1].filters[0].where == ("dataset", 1, "filters", 0)
