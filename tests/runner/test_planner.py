from __future__ import annotations

from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from recbias import api
from recbias.config.experiment import identify_plugin
from recbias.config.settings import (
    get_item_type,
    is_input_file,
    list_members,
    read_settings,
)
from recbias.config.specs import PluginSpec
from recbias.core.errors import Faults, UserError
from recbias.models.baselines import MostPop
from recbias.models.knn import ItemKNN
from recbias.registry import REGISTRIES
from recbias.runner.address import assign_address
from recbias.runner.plan import Keys, Plan, Stage
from support.specs import make_small_spec


def make_plan(folder: Path, **changes: Any) -> Plan:
    return api.plan(make_small_spec(**changes), out=folder, data=folder)[0]


def list_addresses(plan: Plan) -> dict[str, str]:
    return {stage.title: stage.digest for stage in plan.stages}


def test_every_seed_and_fold_has_a_data_context(tmp_path: Path) -> None:
    split = {"name": "random", "test": 0.2, "folds": 3}
    plan = make_plan(tmp_path, seed=None, seeds=[1, 2], split=split)
    assert [(context.keys.seed, context.keys.fold) for context in plan.data_contexts] == [
        *((1, 1), (1, 2), (1, 3)),
        *((2, 1), (2, 2), (2, 3)),
    ]


@pytest.mark.parametrize(
    ("change", "unchanged"),
    [
        ({"seed": 7}, set()),
        (
            {"k": 4},
            {"load demo", "split demo", "select queries of demo", "fit ItemKNN", "fit MostPop"},
        ),
        (
            {"models": ["MostPop", {"name": "ItemKNN", "neighbors": 3}]},
            {
                *(
                    "load demo",
                    "split demo",
                    "select queries of demo",
                    "fit MostPop",
                    "recommend MostPop",
                ),
                *("measure nDCG of MostPop", "measure HR of MostPop"),
            },
        ),
        ({"metrics": ["nDCG"]}, None),
        ({"name": "other"}, None),
        ({"report": {"formats": ["md"]}}, None),
    ],
)
def test_a_change_of_the_spec_changes_the_addresses_that_depend_on_it(
    tmp_path: Path, change: dict[str, Any], unchanged: set[str] | None
) -> None:
    before, after = (
        list_addresses(make_plan(tmp_path)),
        list_addresses(make_plan(tmp_path, **change)),
    )
    same_titles = {title for title, digest in after.items() if before.get(title) == digest}
    assert same_titles == (set(after) if unchanged is None else unchanged)


def test_an_address_depends_on_the_bytes_of_input_files(tmp_path: Path) -> None:
    path = tmp_path / "clicks.csv"
    dataset = {"name": "tables", "interactions": str(path)}
    path.write_text("user_id,item_id\na,1\nb,2\n")
    before = list_addresses(make_plan(tmp_path, dataset=dataset))
    path.write_text("user_id,item_id\na,1\nb,3\n")
    after = list_addresses(make_plan(tmp_path, dataset=dataset))
    assert before["load tables"] != after["load tables"]


READS_FILES = [
    (kind, name, setting.name)
    for kind, registry in REGISTRIES.items()
    for name in registry.table
    for setting in read_settings(registry.load(name)).values()
    if any(map(is_input_file, list_members(get_item_type(setting.hint) or setting.hint)))
]


def identify(kind: str, name: str, setting: str, path: Path) -> object:
    """Return the identity of a plug-in that reads a file, with the defaults of other settings."""
    cls = REGISTRIES[kind].load(name)
    plugin: Any = object.__new__(cls)
    settings = read_settings(cls)
    for each in settings.values():
        object.__setattr__(plugin, each.field.name, each.default)
    value = (path,) if get_item_type(settings[setting].hint) else path
    object.__setattr__(plugin, settings[setting].field.name, value)
    spec = PluginSpec(kind, name, name, plugin, {}, ())
    return identify_plugin(spec, lambda path: path.read_text())


@pytest.mark.parametrize(("kind", "name", "setting"), READS_FILES)
def test_the_name_of_each_input_file_is_part_of_the_address_and_its_folder_is_not(
    tmp_path: Path, kind: str, name: str, setting: str
) -> None:
    names = ["a.txt", "a.tsv", "a.txt.gz", "a.dev.txt", "b.txt", "A.txt", "a.qrels", "a"]
    paths = [tmp_path / folder / name for folder in ("one", "two") for name in names]
    for path in paths:
        path.parent.mkdir(exist_ok=True)
        path.write_text("same bytes")
    one, two = (
        [str(identify(kind, name, setting, path)) for path in part]
        for part in (paths[: len(names)], paths[len(names) :])
    )
    assert len(set(one)) == len(names)
    assert (one == two) == (name != "fairllm")  # which reads the name of the folder
    paths[0].write_text("other bytes")
    assert str(identify(kind, name, setting, paths[0])) not in one


@pytest.mark.parametrize(
    ("old", "new", "is_same"),
    [("# Why.", "# Why else.", True), ("SIZE = 1", "SIZE = 2", False)],
    ids=["comment", "constant"],
)
def test_a_plugin_file_is_addressed_by_its_code(
    tmp_path: Path, old: str, new: str, is_same: bool
) -> None:
    path = tmp_path / "mine.py"
    models = [f"{path}:Mine"]
    source = """
        from recbias.models.baselines import MostPop

        SIZE = 1  # Why.

        class Mine(MostPop):
            pass
    """
    path.write_text(dedent(source))
    before = list_addresses(make_plan(tmp_path, models=models))
    path.write_text(dedent(source).replace(old, new))
    assert (list_addresses(make_plan(tmp_path, models=models)) == before) == is_same


def test_missing_data_is_reported_before_any_stage_runs(tmp_path: Path) -> None:
    with pytest.raises(UserError) as caught:
        make_plan(tmp_path, dataset="ml-1m")
    assert "recbias data fetch ml-1m" in "\n".join(caught.value.lines())


def make_stage(digest: str) -> Stage:
    return Stage("dataset", "load", lambda: None, (), Keys(), digest)


def compute_address(
    *, kind: str, work: Any, inputs: tuple[Stage, ...] = (), **options: Any
) -> str:
    return assign_address(Stage(kind, "a stage", work, inputs, Keys()), **options).digest


@pytest.mark.parametrize(
    "change",
    [
        {"identity": {"seed": 2}},
        {"kind": "fit"},
        {"inputs": (make_stage("ab"),)},
        {"libraries": ("pyarrow",)},
        {"work": MostPop()},
    ],
    ids=["identity", "kind", "inputs", "libraries", "source code"],
)
def test_an_address_changes_with_everything_that_could_change_the_result(
    change: dict[str, Any],
) -> None:
    stage: dict[str, Any] = {"kind": "split", "work": ItemKNN(), "identity": {"seed": 1}}
    assert compute_address(**stage | change) != compute_address(**stage)


def test_equal_bytes_under_two_names_are_each_read_as_their_name_says(tmp_path: Path) -> None:
    """A line is a judgement of item 5 as qrels, and an interaction with item 0 as a table."""
    (tmp_path / "train.csv").write_text("user_id,item_id\nq1,x\nq2,y\nu,0\nu,5\n")
    rows = [
        f"{query} Q0 {item} {rank} 0 x"
        for query in ("q1", "q2")
        for rank, item in ((1, 0), (2, 5))
    ]
    (tmp_path / "run.trec").write_text("\n".join(rows))
    for name in ("ok.qrels", "qrels.dev.tsv"):
        (tmp_path / name).write_text("q1\t0\t5\t2\nq2\t5\t5\t1\n")

    def measure(test: str) -> float:
        spec = make_small_spec(
            dataset={"name": "tables", "interactions": f"{tmp_path}/train.csv"},
            split={
                "name": "given",
                "train": f"{tmp_path}/train.csv",
                "test": f"{tmp_path}/{test}",
            },
            k=2,
            models=[{"name": "lists", "path": f"{tmp_path}/run.trec"}],
            metrics=["MRR"],
            tests=None,
        )
        return float(api.run(spec, out=tmp_path / "out").metrics["value"].iloc[0])

    names = ["ok.qrels", "qrels.dev.tsv", "ok.qrels"]
    assert [measure(name) for name in names] == [0.5, 0.75, 0.5]
    for name in ("ok.qrels", "qrels.csv"):  # what is no table is refused, whatever is stored
        (tmp_path / name).write_text("q1 0 5 2\nq1 0 0 0\n")
    assert measure("ok.qrels") == 0.5
    with pytest.raises(UserError, match=r"qrels\.csv:1: the cells are separated by blanks"):
        measure("qrels.csv")


def test_a_filter_that_the_split_does_not_use_is_refused(tmp_path: Path) -> None:
    """The parts of the split are files of their own, but reviews may be masked."""
    for name, text in [
        ("train.csv", "user_id,item_id\nu,a\n"),
        ("test.csv", "user_id,item_id\nu,b\n"),
    ]:
        (tmp_path / name).write_text(text, encoding="utf-8")
    split = {
        "name": "given",
        "train": str(tmp_path / "train.csv"),
        "test": str(tmp_path / "test.csv"),
    }
    filters = [{"name": "threshold", "at_least": 4}, "mask_names"]
    with pytest.raises(Faults) as caught:
        make_plan(tmp_path, dataset={"name": "demo", "filters": filters}, split=split)
    faults = [str(fault) for fault in caught.value.faults]
    assert len(faults) == 1
    assert "dataset.filters[0]: threshold has no effect: split given" in faults[0]


def test_labels_that_no_metric_names_are_warned_of_by_their_names(tmp_path: Path) -> None:
    """A report leaves out what stands before a colon if several warnings end alike."""
    entry = {"detector": "names", "from": "cast"}
    labels = [{"name": "first", **entry}, {"name": "second", **entry}]
    assert make_plan(tmp_path, labels=labels).warnings == tuple(
        f"labels {name} have no effect, as no metric or re-ranker names them"
        for name in ("first", "second")
    )
