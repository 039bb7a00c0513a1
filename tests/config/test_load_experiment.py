from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbias.config.experiment import Experiment
from recbias.config.load_experiment import load_experiment
from recbias.config.settings import read_settings
from recbias.config.specs import ExperimentFile
from recbias.core.errors import (
    BadYaml,
    Contradiction,
    DuplicateKey,
    Faults,
    MissingExtra,
    MissingFile,
    OutOfRange,
    UnknownKey,
    UnknownName,
    WrongType,
)
from support.models import fake_plugins
from support.models.fake_plugins import REGISTRIES

COMPLETE = Path(__file__).with_name("complete.yaml").read_text(encoding="utf-8")
HEAD = "name: x\ndataset: ml-1m\n"


def load(text: str, *overrides: str) -> Experiment:
    Path("spec.yaml").write_text(text, encoding="utf-8")
    return load_experiment(Path("spec.yaml"), registries=REGISTRIES, overrides=overrides)


def collect_faults(text: str, *overrides: str) -> Faults:
    with pytest.raises(Faults) as caught:
        load(text, *overrides)
    return caught.value


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


def test_empty_section_equals_a_missing_section() -> None:
    experiment = load(HEAD + "models: [MostPop]\nmetrics:\ntests:\nsplit:\n")
    assert (experiment.metrics, experiment.tests, experiment.split) == ((), (), None)


def test_datasets_and_seeds_may_be_lists() -> None:
    text = "name: x\nseeds: [1, 2]\nmodels: [MostPop]\ndataset:\n  - ml-1m\n"
    experiment = load(text + "  - {name: ml-1m, label: cast, side: [cast], filters: [k_core]}\n")
    assert experiment.seeds == (1, 2)
    assert [dataset.label for dataset in experiment.datasets] == ["ml-1m", "cast"]
    assert [len(dataset.filters) for dataset in experiment.datasets] == [0, 1]
    assert experiment.datasets[1].filters[0].where == ("dataset", 1, "filters", 0)


def test_queries_without_a_name_are_users() -> None:
    experiment = load(HEAD + "models: [MostPop]\n", "queries.where=age < 18")
    assert experiment.queries.plugin == fake_plugins.Users(where="age < 18")


def test_spec_may_be_a_mapping() -> None:
    spec = {"name": "x", "dataset": "ml-1m", "models": ("MostPop", {"name": "ItemKNN"})}
    experiment = load_experiment(spec, registries=REGISTRIES, overrides=["models.1.neighbors=4"])
    assert experiment.models[1].plugin.neighbors == 4
    assert spec["models"] == ("MostPop", {"name": "ItemKNN"})


def test_fault_in_a_mapping_has_the_key_without_a_line() -> None:
    spec = {"name": "x", "dataset": "ml-1m", "models": [{"name": "ItemKNN", "neighbors": "4"}]}
    with pytest.raises(Faults) as caught:
        load_experiment(spec, registries=REGISTRIES)
    assert caught.value.lines() == [
        "error: models[0].neighbors: must be a whole number above 0, found the text '4'",
        "help: write it without quotes: 4",
    ]


def test_path_in_an_extended_file_is_relative_to_that_file(folder: Path) -> None:
    (folder / "base").mkdir()
    (folder / "base" / "u.csv").write_text("")
    base = "dataset: {name: tables, interactions: u.csv, extras: [u.csv]}\n"
    (folder / "base" / "base.yaml").write_text(base)
    experiment = load("extends: base/base.yaml\nname: x\nmodels: [MostPop]\n")
    assert experiment.datasets[0].source.plugin.interactions == folder / "base" / "u.csv"
    assert experiment.datasets[0].source.plugin.extras == (folder / "base" / "u.csv",)


MODELS = HEAD + "models:\n"

NUMBER = "a number or nothing (null)"

BROKEN: dict[str, tuple[str, type[Exception], str, str]] = {
    "unknown setting": (
        MODELS + "  - name: ItemKNN\n    neighbours: 40\n",
        UnknownKey,
        "5:5: models[0].neighbours: not a setting of ItemKNN",
        "did you mean neighbors?",
    ),
    "setting of a plug-in without settings": (
        MODELS + "  - {name: MostPop, size: 4}\n",
        UnknownKey,
        "4:21: models[0].size: not a setting of MostPop",
        "the valid names are label, rerank, tune",
    ),
    "unknown top key": (
        HEAD + "models: [MostPop]\nmetric: [nDCG]\n",
        UnknownKey,
        "4:1: metric: not a setting of experiment",
        "did you mean metrics?",
    ),
    "duplicate key": (
        HEAD + "models: [MostPop]\nname: y\n",
        DuplicateKey,
        "4:1: name: is written twice, first in line 1",
        "keep one of them",
    ),
    "duplicate key inside": (
        MODELS + "  - {name: ItemKNN, shrink: 1, shrink: 2}\n",
        DuplicateKey,
        "4:32: models[0].shrink: is written twice, first in line 4",
        "keep one of them",
    ),
    "text for a whole number": (
        MODELS + "  - {name: ItemKNN, neighbors: '40'}\n",
        WrongType,
        "4:32: models[0].neighbors: must be a whole number above 0, found the text '40'",
        "write it without quotes: 40",
    ),
    "number for a whole number": (
        MODELS + "  - {name: ItemKNN, neighbors: 40.0}\n",
        WrongType,
        "4:32: models[0].neighbors: must be a whole number above 0, found 40.0",
        "the default is 50",
    ),
    "boolean for a whole number": (
        MODELS + "  - {name: ItemKNN, neighbors: true}\n",
        WrongType,
        "4:32: models[0].neighbors: must be a whole number above 0, found true",
        "the default is 50",
    ),
    "yes for a boolean": (
        MODELS + "  - {name: ItemKNN, binary: yes}\n",
        WrongType,
        "4:29: models[0].binary: must be true or false, found the text 'yes'",
        "write true or false",
    ),
    "number for text": (
        HEAD + "models: [MostPop]\nqueries: {name: users, where: 5}\n",
        WrongType,
        "4:31: queries.where: must be text, found 5",
        "put it in quotes: '5'",
    ),
    "single value for a list": (
        "name: x\ndataset: {name: ml-1m, side: cast}\nmodels: [MostPop]\n",
        WrongType,
        "2:30: dataset.side: must be a list (each one of overview, cast), found the text 'cast'",
        "write it as a list: [cast]",
    ),
    "out of range": (
        MODELS + "  - {name: ItemKNN, neighbors: 0}\n",
        OutOfRange,
        "4:32: models[0].neighbors: must be a whole number above 0, found 0",
        "the default is 50",
    ),
    "out of a range with two ends": (
        MODELS + "  - {name: SLIM, l1_ratio: 1.5}\n",
        OutOfRange,
        "4:28: models[0].l1_ratio: must be a number from 0 to 1, found 1.5",
        "the default is 0.1",
    ),
    "not one of the choices": (
        MODELS + "  - {name: ItemKNN, similarity: cosin}\n",
        OutOfRange,
        "4:33: models[0].similarity: must be one of cosine, jaccard, dice, found 'cosin'",
        "did you mean cosine?",
    ),
    "no member of a union": (
        HEAD + "models: [MostPop]\ntests: [{name: paired_t, family: metrc}]\n",
        OutOfRange,
        (
            "4:34: tests[0].family: must be one of metric, report or a whole number above 0, "
            "found 'metrc'"
        ),
        "did you mean metric?",
    ),
    "an entry of a list": (
        HEAD + "models: [MostPop]\nreport: {formats: [csv, pdf]}\n",
        OutOfRange,
        "4:25: report.formats[1]: must be one of csv, json, md, html, latex, card, found 'pdf'",
        "give one of csv, json, md, html, latex, card",
    ),
    "a check of the plug-in's own": (
        HEAD + "models: [MostPop]\nsplit: {name: random, test: 0.7, validation: 0.5}\n",
        Contradiction,
        "4:8: split: test 0.7 and validation 0.5 leave nothing to train on",
        "make them smaller",
    ),
    "a check that names its setting": (
        HEAD + "models: [MostPop]\nmetrics: [{name: APLT, head: 2}]\n",
        OutOfRange,
        "4:30: metrics[0].head: must be between 0 and 1, found 2.0",
        "the default is 0.2",
    ),
    "unknown model": (
        MODELS + "  - ItemKN\n",
        UnknownName,
        "4:5: models[0]: no model is called 'ItemKN'",
        "did you mean ItemKNN?",
    ),
    "a metric among the models": (
        MODELS + "  - {name: ndcg}\n",
        UnknownName,
        "4:12: models[0].name: no model is called 'ndcg'",
        "nDCG is a metric: move it to metrics",
    ),
    "a filter as a split": (
        HEAD + "models: [MostPop]\nsplit: threshold\n",
        UnknownName,
        "4:8: split: no split is called 'threshold'",
        "threshold is a filter: move it to dataset.filters",
    ),
    "a missing package": (
        MODELS + "  - ALS\n",
        MissingExtra,
        (
            "4:5: models[0]: ALS needs the package 'no_such_package_of_anyone', "
            "which is not installed"
        ),
        "pip install no_such_package_of_anyone",
    ),
    "a missing file": (
        MODELS + "  - {name: lists, path: spec.yml}\n",
        MissingFile,
        "4:25: models[0].path: no file 'spec.yml'",
        "did you mean spec.yaml?",
    ),
    "a missing setting": (
        MODELS + "  - lists\n",
        Exception,
        "4:5: models[0]: lists needs path",
        "add path: a file",
    ),
    "a missing section": (
        HEAD,
        Exception,
        "1:1: experiment needs models",
        "add models: a list that is not empty and with a length of at most 1000",
    ),
    "no model": (
        HEAD + "models: []\n",
        OutOfRange,
        (
            "3:9: models: must be a list that is not empty and with a length of at most 1000, "
            "found an empty list"
        ),
        "give a list that is not empty and with a length of at most 1000",
    ),
    "no dataset": (
        "name: x\ndataset: []\nmodels: [MostPop]\n",
        Exception,
        "2:10: dataset: is an empty list",
        "name a dataset",
    ),
    "an entry without a name": (
        MODELS + "  - {neighbors: 3}\n",
        WrongType,
        "4:5: models[0]: has no name",
        "write name: MostPop",
    ),
    "an entry that is a number": (
        MODELS + "  - 3\n",
        WrongType,
        "4:5: models[0]: must be a name or a mapping, found 3",
        "write - Name, or - {name: Name, setting: value}",
    ),
    "seed and seeds": (
        HEAD + "models: [MostPop]\nseed: 1\nseeds: [1]\n",
        Contradiction,
        "5:8: seeds: seed is set too",
        "keep one of seed and seeds",
    ),
    "a seed twice": (
        HEAD + "models: [MostPop]\nseeds: [1, 2, 1]\n",
        Contradiction,
        "4:8: seeds: has the same seed twice",
        "list each seed once",
    ),
    "two models of one label": (
        MODELS + "  - ItemKNN\n  - {name: item_knn, neighbors: 50}\n",
        Contradiction,
        "5:5: models[1]: ItemKNN is also models[0]",
        "give one of the two another label",
    ),
    "two metrics of one label and cutoff": (
        HEAD + "models: [MostPop]\nmetrics: [nDCG, ndcg@10]\n",
        Contradiction,
        "4:17: metrics[1]: nDCG@10 is also metrics[0]",
        "give one of the two another label",
    ),
    "a setting given twice": (
        HEAD + "models: [MostPop]\nmetrics: [{name: APLT(head=0.3), head: 0.4}]\n",
        Contradiction,
        "4:40: metrics[0].head: head is given both in the name and as a setting",
        "give it once",
    ),
    "misspelt key of a grouping": (
        HEAD + "models: [MostPop]\nmetrics: [{name: nDCG, by: gender, min_grup: 3}]\n",
        UnknownKey,
        "4:36: metrics[0].min_grup: not a setting of nDCG",
        "did you mean min_group?",
    ),
    "misspelt key of a detector": (
        HEAD + "models: [MostPop]\nlabels: [{name: a, detectr: names}]\n",
        UnknownKey,
        "4:29: labels[0].detectr: not a key of labels",
        "did you mean detector?",
    ),
    "a number that is undefined": (
        HEAD + "models: [MostPop]\nmetrics: [nDCG]\nchecks: [{metric: nDCG, at_least: .nan}]\n",
        WrongType,
        f"5:35: checks[0].at_least: must be {NUMBER}, found .nan, which is not a number",
        f"give {NUMBER}",
    ),
    "a metric in no notation": (
        HEAD + "models: [MostPop]\nmetrics: ['nDCG@@']\n",
        WrongType,
        "4:11: metrics[0]: 'nDCG@@' is not a metric's name",
        "write it as nDCG, nDCG@5 or APLT(head=0.8)@10",
    ),
    "a cutoff for a metric that has none": (
        HEAD + "models: [MostPop]\nmetrics: [Gini@5]\n",
        UnknownKey,
        "4:11: metrics[0].k: not a setting of Gini",
        "the valid names are by, label",
    ),
    "a name that is a path": (
        "name: ../x\ndataset: ml-1m\nmodels: [MostPop]\n",
        OutOfRange,
        "1:7: name: '../x' cannot be the name of a folder",
        "use 1 to 100 letters, digits, '.', '_' and '-', and do not begin with '.'",
    ),
    "a label of two lines": (
        MODELS + '  - {name: MostPop, label: "a\\nb"}\n',
        WrongType,
        "4:28: models[0].label: must be text on one line, found the text 'a\\nb'",
        "put it in quotes",
    ),
    "a nested setting": (
        MODELS + "  - {name: WOK, llm: {modl: x, model: y}}\n",
        UnknownKey,
        "4:23: models[0].llm.modl: not a setting of WOK.llm",
        "did you mean model?",
    ),
    "a class that is no plug-in": (
        MODELS + "  - Broken\n",
        Exception,
        (
            "4:5: models[0]: fake_plugins.py:190: NoDataclass is not a dataclass, "
            "so it has no settings"
        ),
        "write @dataclass(frozen=True, kw_only=True) above it",
    ),
    "not YAML": (
        "name: x\nmodels: [a\n",
        BadYaml,
        "3:1: expected ',' or ']' (while parsing a flow sequence)",
        "close every bracket and quote, and put text with other signs in quotes",
    ),
}


@pytest.mark.parametrize(("text", "kind", "error", "help_line"), BROKEN.values(), ids=BROKEN)
def test_broken_spec_is_reported_with_line_and_remedy(
    text: str, kind: type[Exception], error: str, help_line: str
) -> None:
    reported = collect_faults(text)
    expected = [f"error: spec.yaml:{error}", *([f"help: {help_line}"] if help_line else [])]
    assert reported.lines() == expected
    assert isinstance(reported.faults[0], kind)


def test_all_faults_are_reported_at_once_in_the_order_of_the_file() -> None:
    text = (
        "name: .x\nsed: 1\ndataset: {name: ml-1m, sid: []}\nk: 0\nmodels:\n  - NoSuch\n"
        "  - {name: ItemKNN, shrink: -1, binary: 1}\nmetrics: [nDCG@0, Gini]\ntests: 3\nk: 1\n"
    )
    locations = [error.where.removeprefix("spec.yaml:") for error in collect_faults(text).faults]
    assert locations == [
        "1:7: name",
        "2:1: sed",
        "3:24: dataset.sid",
        "4:4: k",
        "6:5: models[0]",
        "7:29: models[1].shrink",
        "7:41: models[1].binary",
        "8:11: metrics[0].k",
        "9:8: tests",
        "10:1: k",
    ]


def test_fault_in_an_override_shows_the_override() -> None:
    error = collect_faults(
        HEAD + "models: [MostPop, ItemKNN]\n", "models.1.neighbours=40", "seed=-1"
    )
    assert error.lines() == [
        "error: --set models.1.neighbours=40: models[1].neighbours: not a setting of ItemKNN",
        "help: did you mean neighbors?",
        (
            "error: --set seed=-1: seed: must be a whole number from 0 to 9223372036854775807, "
            "found -1"
        ),
        "help: the default is 42",
    ]


def test_missing_spec_file_suggests_the_nearest_name(folder: Path) -> None:
    (folder / "quickstart.yaml").write_text(COMPLETE)
    with pytest.raises(Faults) as caught:
        load_experiment(Path("quickstrat.yaml"), registries=REGISTRIES)
    assert caught.value.lines() == [
        "error: quickstrat.yaml: no such file",
        "help: did you mean quickstart.yaml?",
    ]


def test_exponents_are_numbers_as_in_yaml_1_2() -> None:
    experiment = load(MODELS + "  - {name: SLIM, alpha: 1e-5}\n")
    assert experiment.models[0].plugin.alpha == 1e-5


plain_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)
keys = st.sampled_from([*read_settings(ExperimentFile), "extends"])
entries = plain_values | st.sampled_from(["ml-1m", "MostPop", "nDCG@5", "users", "random"])


@given(st.dictionaries(keys, entries | st.lists(entries, max_size=3), max_size=8))
def test_any_mapping_gives_an_experiment_or_faults(
    spec: dict[str, Any],
) -> None:
    with contextlib.suppress(Faults):
        experiment = load_experiment(spec, registries=REGISTRIES)
        complete = experiment.as_spec()
        assert load_experiment(complete, registries=REGISTRIES).as_spec() == complete


@given(st.text(max_size=60) | st.text(alphabet="ab:-[]{}&*!|>'\"\n #,%@`?\\", max_size=30))
def test_any_text_gives_faults(text: str) -> None:
    with pytest.raises(Faults):
        load(text.encode("utf-8", "ignore").decode())


def test_a_check_of_a_model_with_a_fault_is_not_a_second_fault() -> None:
    checks = "checks: [{metric: nDCG, at_least: 0.1, models: [ItemKNN]}]\n"
    models = "models: [{name: ItemKNN, neighbors: 1.0e+30}]\nmetrics: [nDCG]\n"
    (fault,) = collect_faults(HEAD + models + checks).faults
    assert "models[0].neighbors" in str(fault)


def test_every_published_table_of_a_spec_is_checked() -> None:
    named: list[str] = []

    def refuse_second(name: str) -> None:
        named.append(name)
        if name == "b":
            message = "no published table is called 'b'"
            raise UnknownName(message, remedy="the valid names are a, c")

    text = f"{HEAD}models: [MostPop]\nmetrics: [nDCG]\nreport: {{reference: [a, b, c]}}\n"
    Path("spec.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(Faults) as caught:
        load_experiment(Path("spec.yaml"), registries=REGISTRIES, check_reference=refuse_second)
    assert named == ["a", "b", "c"]
    assert "report.reference: no published table is called 'b'" in "\n".join(caught.value.lines())


def test_a_faulty_check_hides_no_fault_of_the_others() -> None:
    models = "models: [MostPop]\nmetrics: [nDCG]\n"
    checks = (
        "checks: [{metric: nDCG, at_most: abc}, {metric: nDCG@3, at_least: 0.1}, "
        "{metric: nDCG, at_least: 0.1, models: [Foo]}, {metric: nDCG}]\n"
    )
    faults = collect_faults(HEAD + models + checks).faults
    places = ("checks[0].at_most", "checks[1].metric", "checks[2].models[0]", "checks[3]")
    assert len(faults) == len(places)
    for fault, place in zip(faults, places, strict=True):
        assert str(fault.where).endswith(place)
