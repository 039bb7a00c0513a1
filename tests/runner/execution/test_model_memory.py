"""Models whose weights cannot fit into memory are refused before they are trained."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import recbias
from recbias.core.errors import Faults, TooLittleMemory, UserError
from recbias.registry import REGISTRIES
from recbias.runner.preflight import check_widths
from support.commands import invoke_recbias, write_small_spec
from support.specs import make_small_spec

HUGE = 10**12


@pytest.mark.parametrize(
    ("name", "settings", "large"),
    [
        ("PureSVD", {"factors": HUGE}, "factors"),
        ("BPR-MF", {"embedding_size": HUGE}, "embedding_size"),
        ("implicit/ALS", {"embedding_size": HUGE}, "embedding_size"),
        ("MultiVAE", {"hidden_size": HUGE}, "hidden_size"),
        ("DeepFM", {"hidden_sizes": (64, HUGE)}, "hidden_sizes"),
        ("DeepFM", {"hidden_sizes": (10**6, 10**6)}, "hidden_sizes"),
        ("ConvMF", {"word_size": HUGE}, "word_size"),
        ("ConvMF", {"filters": HUGE}, "filters"),
        ("SASRec", {"max_length": HUGE}, "max_length"),
        ("GRU4Rec", {"layers": HUGE}, "layers"),
    ],
)
def test_a_width_that_cannot_fit_is_refused(
    name: str, settings: dict[str, Any], large: str
) -> None:
    model = REGISTRIES["models"].load(name)
    check_widths(model(), n_items=1000)
    with pytest.raises(TooLittleMemory) as caught:
        check_widths(model(**settings), n_items=1000)
    assert caught.value.where == large
    assert caught.value.remedy == f"lower {large}"


def test_plan_and_run_name_the_setting_and_train_nothing(tmp_path: Path) -> None:
    spec = make_small_spec(models=["MostPop", {"name": "PureSVD", "factors": HUGE}])
    with pytest.raises(UserError) as caught:
        recbias.run(spec, out=tmp_path / "out")
    fault = caught.value.faults[0] if isinstance(caught.value, Faults) else caught.value
    assert fault.where.endswith("models[1].factors")
    assert not list((tmp_path / "out").glob("small/*"))


@pytest.mark.parametrize(
    ("space", "large"),
    [
        (f"factors: {{int: [1, {HUGE}]}}", "factors"),
        (f"factors: {{choice: [4, {HUGE}, 8]}}", "factors"),
    ],
)
def test_a_search_of_a_width_that_cannot_fit_is_refused(
    tmp_path: Path, space: str, large: str
) -> None:
    tune = f"tune: {{metric: nDCG, trials: 3, space: {{{space}}}}}"
    write_small_spec(
        tmp_path,
        "name: s\ndataset: {name: demo, n_users: 40, n_items: 30}\nmetrics: [nDCG]\n"
        "split: {name: random, test: 0.2, validation: 0.2}\nmodels:\n"
        f"  - {{name: PureSVD, {tune}}}\n",
    )
    result = invoke_recbias("plan", "small.yaml", folder=tmp_path)
    assert result.code == 2
    assert result.err.startswith("error: small.yaml:6:")
    assert f"models[0].tune.space.{large}: the largest values ({large} {HUGE}): the " in result.err
    assert result.err.endswith(f"help: search lower values of {large}\n")


def test_values_of_a_search_that_do_not_fit_together_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RECBIAS_MEMORY_MB", "1000")
    # 16 bytes of 2000^2 weights in each of 2 layers are 122 MB, in each of 20 are 1,221 MB
    space = {"embedding_size": {"int": [8, 2000]}, "layers": {"int": [1, 20]}}
    split = {"name": "random", "test": 0.2, "validation": 0.1}

    def find_faults(names: list[str]) -> str:
        tune = {"metric": "nDCG", "trials": 2, "space": {name: space[name] for name in names}}
        spec = make_small_spec(models=[{"name": "SASRec", "tune": tune}], split=split)
        (tmp_path / "spec.json").write_text(json.dumps(spec))
        return invoke_recbias("plan", "spec.json", folder=tmp_path).err

    assert not find_faults(["embedding_size"])
    assert not find_faults(["layers"])
    errors = find_faults(["embedding_size", "layers"])
    assert (
        "models[0].tune.space.layers: the largest values (embedding_size 2000, layers 20): "
        in errors
    )
    assert errors.endswith("help: search lower values of layers\n")


@pytest.mark.parametrize(("name", "n_matrices"), [("EASE", 3), ("SLIM", 1)])
def test_matrices_of_the_items_that_cannot_fit_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, n_matrices: int
) -> None:
    dataset = {"name": "demo", "n_users": 2000, "n_items": 2500}
    spec = make_small_spec(models=["MostPop", name], dataset=dataset)
    (tmp_path / "spec.json").write_text(json.dumps(spec))
    for megabytes, code in ((24 * n_matrices, 0), (23 * n_matrices, 2)):  # 4 * 2,500^2 bytes each
        monkeypatch.setenv("RECBIAS_MEMORY_MB", str(megabytes))
        result = invoke_recbias("plan", "spec.json", folder=tmp_path)
        assert result.code == code
    assert f"models[1]: the matrices of {name} for 2,500 items need at least" in result.err


def test_a_batch_counts_the_interactions_that_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECBIAS_MEMORY_MB", "1000")
    model = REGISTRIES["models"].load("BPR-MF")
    # 4 * 512 bytes of each of 1,000,000 interactions are 1,953 MB, of 100,000 are 195 MB
    large = model(embedding_size=512, batch_size=HUGE)
    check_widths(large, n_items=10, n_rows=100_000)
    check_widths(model(embedding_size=512, batch_size=10_000), n_items=10, n_rows=1_000_000)
    with pytest.raises(TooLittleMemory) as caught:
        check_widths(large, n_items=10, n_rows=1_000_000)
    assert caught.value.where == "batch_size"
    assert "1,000,000 interactions of a batch need at least 1.9 GB" in str(caught.value)
