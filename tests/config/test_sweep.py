from __future__ import annotations

from pathlib import Path

import pytest

from recbias.config.experiment import Experiment, load_experiment
from recbias.core.errors import Faults
from support.models import fake_plugins
from support.models.fake_plugins import REGISTRIES

HEAD = """\
name: x
dataset: {name: ml-1m, filters: [{name: threshold, at_least: 4}, {name: k_core, k: 5}]}
models: [MostPop, ItemKNN]
metrics: [nDCG]
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def load(text: str, *overrides: str, head: str = HEAD) -> Experiment:
    Path("spec.yaml").write_text(head + text, encoding="utf-8")
    return load_experiment(Path("spec.yaml"), registries=REGISTRIES, overrides=overrides)


def list_labels(experiment: Experiment) -> list[str]:
    return [model.label for model in experiment.models]


def test_grid_of_a_model_stands_in_its_place_with_labels() -> None:
    experiment = load("sweep: {models.1.neighbors: [5, 20], models.1.binary: [true, false]}\n")
    assert list_labels(experiment) == [
        "MostPop",
        "ItemKNN(neighbors=5, binary=true)",
        "ItemKNN(neighbors=5, binary=false)",
        "ItemKNN(neighbors=20, binary=true)",
        "ItemKNN(neighbors=20, binary=false)",
    ]
    assert experiment.models[4].plugin == fake_plugins.ItemKNN(neighbors=20, binary=False)
    assert experiment.sweep == {"models": list_labels(experiment)[1:]}


def test_datasets_and_their_filters_get_labels() -> None:
    experiment = load(
        "sweep: {dataset.filters.0.at_least: [3, 4], dataset.filters.k_core.k: [5]}\n"
    )
    assert [dataset.label for dataset in experiment.datasets] == [
        "ml-1m(threshold.at_least=3, k_core.k=5)",
        "ml-1m(threshold.at_least=4, k_core.k=5)",
    ]
    assert [dataset.filters[0].plugin.at_least for dataset in experiment.datasets] == [3, 4]
    experiment = load("sweep: {dataset: [ml-1m, {name: tables, label: mine}]}\n")
    assert [dataset.label for dataset in experiment.datasets] == ["ml-1m", "mine"]
    head = "name: x\ndataset: [ml-1m, tables]\nmodels: [MostPop]\n"
    experiment = load("sweep: {dataset.ml1m.side: [[], [cast]]}\n", head=head)
    labels = [dataset.label for dataset in experiment.datasets]
    assert labels == ["ml-1m(side=[])", "ml-1m(side=[cast])", "tables"]


def test_checks_of_a_label_mean_all_entries_that_have_it() -> None:
    head = (
        "name: x\ndataset: ml-1m\nmetrics: [nDCG]\nmodels: [ItemKNN, {name: ItemKNN, shrink: 2}]\n"
    )
    check = "checks: [{metric: nDCG, at_least: 0.1, models: [ItemKNN]}]\n"
    one = load(f"{check}sweep: {{models.0.neighbors: [5, 20]}}\n", head=head)
    assert list_labels(one) == list(one.checks[0].models)
    both = "sweep: {models.0.neighbors: [5], models.1.neighbors: [7]}\n"
    experiment = load(check + both, head=head)
    labels = ["ItemKNN(neighbors=5, shrink=0.0)", "ItemKNN(neighbors=7, shrink=2.0)"]
    assert experiment.sweep == {"models": labels}
    assert list_labels(experiment) == list(experiment.checks[0].models)


def test_files_are_relative_to_the_file_of_the_sweep() -> None:
    Path("sub").mkdir()
    Path("sub/mine.csv").touch()
    text = f"{HEAD}sweep: {{models.0: [{{name: lists, path: mine.csv}}]}}\n"
    Path("sub/base.yaml").write_text(text, encoding="utf-8")
    experiment = load("extends: sub/base.yaml\n", head="")
    assert experiment.models[0].plugin.path == Path("sub/mine.csv").absolute()
    assert load("extends: sub/base.yaml\nsweep: null\n", head="").models[0].name == "MostPop"
    mine = load("extends: sub/base.yaml\nsweep: {seed: [1, 2]}\n", head="")
    assert (mine.seeds, mine.models[0].name) == ((1, 2), "lists")


def test_resolved_spec_is_the_same_experiment() -> None:
    experiment = load(
        "sweep: {models.1.neighbors: [5, 20], dataset.filters.1.k: [2, 3], seed: [1, 2]}\n"
    )
    spec = experiment.as_spec()
    again = load_experiment(spec, registries=REGISTRIES)
    assert again.as_spec() == spec
    assert list_labels(again) == list_labels(experiment)
    assert again.identity(str) == experiment.identity(str)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"{{models.1.neighbors: {[*range(1, 1002)]}}}", "1,001"),
        (f"{{models.1.neighbors: {[*range(1, 502)]}, seed: [1, 2]}}", "1,002"),
    ],
)
def test_many_combinations_are_refused(text: str, shown: str) -> None:
    with pytest.raises(Faults, match=f"has {shown} combinations, more than 1,000"):
        load(f"sweep: {text}\n")
