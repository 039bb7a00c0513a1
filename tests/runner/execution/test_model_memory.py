"""Models whose weights cannot fit into memory are refused before they are trained."""

from __future__ import annotations

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
