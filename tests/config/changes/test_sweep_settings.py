from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from recbias.config.sweep import MOST_COMBINATIONS, read_sweep
from recbias.config.sweep import Target
from recbias.config.source import read_mapping, read_spec
from recbias.core.errors import Faults

HEAD = "dataset: ml-1m\nmodels: [MostPop, {name: ItemKNN, candidates: A}, ItemKNN]\n"


def list_values(sweep: Any) -> dict[Target, list[tuple[Any, ...]]]:
    return {
        target: [tuple(value.value for value in change) for change in changes]
        for target, changes in sweep.items()
    }


def read(sweep: Any, **spec: Any) -> dict[Target, list[tuple[Any, ...]]]:
    document = read_mapping({"dataset": "x", "models": ["A", "B"], "sweep": sweep, **spec})
    values = list_values(read_sweep(document))
    document.refuse()
    return values


def collect_faults(text: str, folder: Path, *overrides: str) -> list[str]:
    path = folder / "spec.yaml"
    path.write_text(HEAD + text, encoding="utf-8")
    document = read_spec(path, overrides)
    assert read_sweep(document) == {}
    with pytest.raises(Faults) as caught:
        document.refuse()
    return [line.replace(f"{folder}/", "") for line in caught.value.lines()]


def test_grid_is_every_combination_of_the_settings_of_each_target() -> None:
    sweep = {"models.1.n": [1, 2], "models.B.s": ["x", "y"], "models.0.k": [3], "seed": [7, 8]}
    assert read(sweep) == {
        Target("models", 1): [(1, "x"), (1, "y"), (2, "x"), (2, "y")],
        Target("models", 0): [(3,)],
        Target("seed"): [(7,), (8,)],
    }


def test_list_is_those_settings_and_keeps_what_it_does_not_name() -> None:
    sweep = [{"models.1.n": 1, "models.1.s": "x"}, {"models.1.n": 2}, {"models.0.k": 3}]
    assert read(sweep) == {
        Target("models", 1): [(1, "x"), (2,), ()],
        Target("models", 0): [(), (3,)],
    }
    sweep = [{"seed": seed, "models.0.k": k} for seed in (1, 2) for k in (3, 4)]
    assert read(sweep) == {Target("seed"): [(1,), (2,)], Target("models", 0): [(3,), (4,)]}


def test_models_that_are_not_a_list_are_not_entries() -> None:
    for models in (None, "A", {"a": 1}):
        document = read_mapping({"models": models, "sweep": {"models.0.n": [1]}})
        assert read_sweep(document) == {}
        ((_, error),) = document.faults
        assert error.message == "models is not a list in the spec"


def test_no_sweep_changes_nothing() -> None:
    assert read(None) == {}


@pytest.mark.parametrize(
    ("n_settings", "n_values", "shown"),
    [
        (2, 1_000, "1,000,000"),
        (6, 10, "1,000,000"),
        (30, 10, "about 10^30"),
        (9_000, 2, "10^2709"),
    ],
)
def test_many_combinations_are_refused_before_they_are_built(
    n_settings: int, n_values: int, shown: str
) -> None:
    sweep = {f"models.1.s{at}": list(range(n_values)) for at in range(n_settings)}
    document = read_mapping({"models": ["A", "B"], "sweep": sweep})
    assert read_sweep(document) == {}
    ((_, error),) = document.faults
    assert f"{shown} combinations, more than {MOST_COMBINATIONS:,}" in error.message
    assert error.remedy == (
        "list fewer values, list the settings of interest, or search them with tune"
    )


def test_combinations_are_those_of_models_datasets_and_seeds() -> None:
    sweep = {"models.0.n": [*range(300)], "models.1.n": [*range(200)], "seed": [1, 2]}
    assert [len(changes) for changes in read(sweep).values()] == [300, 200, 2]
    with pytest.raises(Faults, match="has 1,002 combinations, more than 1,000"):
        read(sweep | {"models.1.n": [*range(201)]})
    with pytest.raises(Faults, match="has 1,001 combinations"):
        read([{"models.0.n": n} for n in range(1_001)])


@pytest.mark.parametrize(
    ("sweep", "place", "message", "remedy"),
    [
        ("{}", "3:1: sweep", "is empty", "write sweep: {models.1.neighbors"),
        ("[]", "3:1: sweep", "is empty", "write sweep: {models.1.neighbors"),
        ("[{}]", "3:1: sweep", "must be a mapping of settings to lists, or a list", "write sweep"),
        ("5", "3:1: sweep", "must be a mapping of settings to lists, or a list", "write sweep"),
        ("{seed: []}", "3:9: sweep.seed", "is an empty list", "write seed: [20, 50, 100]"),
        ("{seed: 5}", "3:9: sweep.seed", "must be a list of values", "write seed: [20, 50, 100]"),
        (
            "{models.2.n: {a: 1}}",
            "3:9: sweep.models.2.n",
            "must be a list of values",
            "write models.2.n: [20, 50, 100]",
        ),
        (
            "{models.2.n: [1, 2.5, 1.0]}",
            "3:30: sweep.models.2.n[2]",
            "is also sweep.models.2.n[0]",
            "list each setting once",
        ),
        (
            "[{seed: 1}, {seed: 2}, {seed: 1}]",
            "3:31: sweep[2]",
            "is also sweep[0]",
            "list each setting once",
        ),
        (
            "{model.2.n: [1]}",
            "3:9: sweep.model.2.n",
            "is not a setting of a",
            "did you mean models",
        ),
        ("{sweep.seed: [1]}", "3:9: sweep.sweep.seed", "is not a setting", "did you mean seed"),
        ("{name: [a]}", "3:9: sweep.name", "is not a setting of a model", "the valid names are"),
        ("{seed.x: [1]}", "3:9: sweep.seed.x", "is not a setting", "did you mean seed?"),
        ("{models: [[A]]}", "3:9: sweep.models", "is not one entry", "models.0"),
        (
            "{models.3.n: [1]}",
            "3:9: sweep.models.3.n",
            "models is a list without '3'",
            "models.0 to",
        ),
        (
            "{models.ItemKNM.n: [1]}",
            "3:9: sweep.models.ItemKNM.n",
            "models is a list without 'ItemKNM'",
            "did you mean ItemKNN?",
        ),
        (
            "{models.ItemKNN.n: [1]}",
            "3:9: sweep.models.ItemKNN.n",
            "'ItemKNN' is the label of 2 entries of models",
            "write models.1 or models.2",
        ),
        (
            "{models.1.n: [1], 'models[1].n': [2]}",
            "3:26: sweep.models[1].n",
            "is models[1].n, which is swept too",
            "keep one of the two",
        ),
        (
            "[{models.1.candidates.n: 1, models.1.candidates: B}]",
            "3:10: sweep[0].models.1.candidates.n",
            "is inside models[1].candidates, which is swept too",
            "keep one of the two",
        ),
        (
            "[{seed: 1, models.0.n: 1}, {seed: 2, models.0.n: 2}]",
            "3:1: sweep",
            "every seed: 2 of these combinations are not in the list",
            "write the sweep as a mapping of lists",
        ),
        ("{k: [5, 10]}", "3:9: sweep.k", "has one value in a run", "nDCG@5, nDCG@10"),
        ("{split.test: [0.1]}", "3:9: sweep.split.test", "has one value in a run", "compare A B"),
        (
            "{metrics.0.k: [5]}",
            "3:9: sweep.metrics.0.k",
            "has one value in a run",
            "list the metric",
        ),
        ("{seeds: [1]}", "3:9: sweep.seeds", "has one value in a run", "write sweep: {seed:"),
    ],
)
def test_fault_has_a_place_and_a_remedy(
    tmp_path: Path, sweep: str, place: str, message: str, remedy: str
) -> None:
    error, help_line = collect_faults(f"sweep: {sweep}\n", tmp_path)
    assert error.startswith(f"error: spec.yaml:{place}: ")
    assert message in error
    assert remedy in help_line


def test_swept_value_that_is_also_set_elsewhere_is_refused(tmp_path: Path) -> None:
    error, help_line = collect_faults("sweep: {models.2.n: [1, 2]}\n", tmp_path, "models.2.n=5")
    assert error.endswith("3:9: sweep.models.2.n: models[2].n is also set by --set")
    assert help_line.endswith("or write --set 'sweep.models.2.n=[20, 50]'")
    error, _ = collect_faults("seeds: [1]\nsweep: {seed: [1, 2]}\n", tmp_path)
    assert error.endswith("4:9: sweep.seed: seeds is set too")


def test_all_faults_are_reported_at_once(tmp_path: Path) -> None:
    lines = collect_faults("sweep: {seed: [], models.9.n: [1], k: [1]}\n", tmp_path)
    assert len(lines) == 6
