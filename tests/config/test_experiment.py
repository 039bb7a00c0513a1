from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from recbias.config.experiment import Experiment, identify_plugin, load_experiment
from recbias.config.specs import PluginSpec
from recbias.core.files import digest_file
from recbias.core.plugins import ModelName
from recbias.formats.yaml import dump
from support.models import fake_plugins
from support.models.fake_plugins import REGISTRIES

COMPLETE = Path(__file__).with_name("complete.yaml").read_text(encoding="utf-8")
HEAD = "name: x\ndataset: ml-1m\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def load(text: str) -> Experiment:
    Path("spec.yaml").write_text(text, encoding="utf-8")
    return load_experiment(Path("spec.yaml"), registries=REGISTRIES)


def test_as_spec_loads_again_as_the_same_experiment() -> None:
    experiment = load(COMPLETE)
    reloaded = load(dump(experiment.as_spec()))
    assert reloaded.as_spec() == experiment.as_spec()
    assert reloaded.identity(digest_file) == experiment.identity(digest_file)
    for metric, expected in zip(reloaded.metrics, experiment.metrics, strict=True):
        assert (metric.plugin, metric.label) == (expected.plugin, expected.label)


def test_as_spec_has_every_key_in_order_with_defaults() -> None:
    spec = load(HEAD + "models: [ItemKNN]\n").as_spec()
    order = "name seed dataset split queries device k models labels metrics tests report"
    assert list(spec) == order.split()
    assert spec["models"] == [
        {"name": "ItemKNN", "neighbors": 50, "similarity": "cosine", "shrink": 0.0, "binary": True}
    ]
    assert spec["dataset"] == {"name": "ml-1m", "side": [], "bad_lines": "error", "filters": []}


def test_as_spec_of_a_search_excludes_the_searched_settings() -> None:
    space = "{alpha: {log: [0.001, 1]}}"
    text = f"{HEAD}models: [{{name: SLIM, tune: {{metric: nDCG, space: {space}}}}}]\n"
    spec = load(text).as_spec()
    assert spec["models"][0] == {
        "name": "SLIM",
        "l1_ratio": 0.1,
        "neighbors": None,
        "tune": {
            "metric": "nDCG",
            "trials": 20,
            "pruning": "median",
            "objective": "value",
            "max_perplexity_increase": None,
            "parallel": 1,
            "space": {"alpha": {"log": [0.001, 1]}},
        },
    }
    assert load(dump(spec)).as_spec() == spec


def test_paths_are_relative_to_the_spec_and_absolute_in_as_spec(folder: Path) -> None:
    (folder / "sub").mkdir()
    (folder / "sub" / "mine.csv").write_text("query_id\n")
    text = HEAD + "models: [{name: lists, path: mine.csv}]\n"
    (folder / "sub" / "spec.yaml").write_text(text)
    experiment = load_experiment(Path("sub/spec.yaml"), registries=REGISTRIES)
    assert experiment.models[0].plugin.path == folder / "sub" / "mine.csv"
    assert experiment.models[0].parameters == {"path": "mine.csv"}
    digest = digest_file(folder / "sub" / "mine.csv")
    assert experiment.identity(digest_file)["models"] == [
        {"name": "lists", "path": f"{digest}:mine.csv"}
    ]
    assert experiment.as_spec()["models"][0]["path"] == str(folder / "sub" / "mine.csv")
    reloaded = load(dump(experiment.as_spec()))
    assert reloaded.models[0].plugin == experiment.models[0].plugin


def test_plugin_file_is_relative_to_the_spec_and_absolute_in_as_spec(folder: Path) -> None:
    (folder / "mine.py").write_text(
        "from dataclasses import dataclass\n\n@dataclass(frozen=True, kw_only=True)\n"
        'class Mine:\n    """Mine."""\n    size: int = 3\n'
    )
    experiment = load(HEAD + "models: [{name: './mine.py:Mine', size: 4}]\n")
    assert (experiment.models[0].label, experiment.models[0].plugin.size) == ("Mine", 4)
    assert len(experiment.models[0].source) == 64
    assert experiment.as_spec()["models"] == [
        {"name": f"{folder}/mine.py:Mine", "label": "Mine", "size": 4}
    ]
    other = folder / "other"
    other.mkdir()
    (other / "spec.yaml").write_text(dump(experiment.as_spec()))
    reloaded = load_experiment(other / "spec.yaml", registries=REGISTRIES)
    assert reloaded.models[0].plugin == experiment.models[0].plugin


@dataclass(frozen=True, kw_only=True)
class Named:
    """A plug-in with the folder of a model and a folder as plain text."""

    encoder: ModelName = "a-model"
    folder: str = ""

    def model_files(self) -> Sequence[Path]:
        return ()


@pytest.mark.parametrize(
    ("setting", "differ"), [("folder", True), ("encoder", False), ("other", False)]
)
def test_identity_excludes_the_path_of_a_model_folder(setting: str, differ: bool) -> None:
    def identify(parent: str) -> object:
        plugin = Named(**({} if setting == "other" else {setting: f"{parent}/d"}))
        spec = PluginSpec("models", "Named", "Named", plugin, {}, ())
        return identify_plugin(spec, lambda path: "never called")

    assert (identify("/x") != identify("/y")) == differ


def test_sections_of_a_spec_become_plugins() -> None:
    experiment = load(COMPLETE)
    assert (experiment.name, experiment.seeds, experiment.k) == ("children-ml1m", (7,), 10)
    assert experiment.datasets[0].source.plugin == fake_plugins.ML1M(side=("overview",))
    assert [step.plugin for step in experiment.datasets[0].filters] == [
        fake_plugins.Threshold(at_least=4.0),
        fake_plugins.KCore(k=10),
    ]
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
