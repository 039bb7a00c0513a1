from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from recbias.config.entries import build_base, get_packaged_space, load_packaged_spaces, read_space
from recbias.config.settings import Builder
from recbias.config.specs import Dimension, PluginSpec, Range, Tune
from recbias.core.errors import Contradiction
from recbias.formats.yaml import Document
from recbias.registry import REGISTRIES
from support.commands import invoke_recbias

PAIRS = [(name, model) for name, models in load_packaged_spaces().items() for model in models]


@pytest.mark.parametrize(("name", "model"), PAIRS)
def test_every_packaged_space_is_valid(name: str, model: str) -> None:
    builder = Builder(Document({}), model)
    space = read_space(
        builder, REGISTRIES["models"].load(model), get_packaged_space(name, model), ()
    )
    assert [error.lines() for _, error in builder.document.faults] == []
    assert [dimension.parameter for dimension in space] == [*get_packaged_space(name, model)]


@pytest.mark.parametrize(("name", "model"), PAIRS)
def test_models_accept_both_ends_of_every_packaged_space(name: str, model: str) -> None:
    cls = REGISTRIES["models"].load(model)
    builder = Builder(Document({}), model)
    space = read_space(builder, cls, get_packaged_space(name, model), ())
    for end in (0, -1):
        settings = {dimension.parameter: get_ends(dimension)[end] for dimension in space}
        assert builder.build(cls, settings, ()) is not None


def get_ends(dimension: Dimension) -> tuple[Any, Any]:
    if isinstance(dimension, Range):
        return dimension.low, dimension.high
    return dimension.values[0], dimension.values[-1]


def test_packaged_intervals_are_those_of_the_table() -> None:
    # Table A.1: SLIM's topK 5 - 1000, l1 ratio 0.00001 - 1 log-uniform, alpha 0.01 - 1 uniform
    cls = REGISTRIES["models"].load("SLIM")
    space = read_space(
        Builder(Document({}), "SLIM"), cls, get_packaged_space("thesis", "SLIM"), ()
    )
    assert space == (
        Range("neighbors", 5, 1000, log=False, integer=True),
        Range("l1_ratio", 1e-5, 1, log=True, integer=False),
        Range("alpha", 0.01, 1, log=False, integer=False),
    )


@pytest.mark.parametrize(
    ("model", "searched"),
    [
        # the settings of Table A.1 without batch sizes that have no effect on a CPU
        ("FunkSVD", {"embedding_size", "learning_rate"}),
        ("MF", {"embedding_size", "learning_rate", "reg"}),
        ("MF2020", {"embedding_size", "learning_rate", "reg", "negatives"}),
        ("PMF", {"embedding_size", "batch_size", "learning_rate"}),
    ],
)
def test_packaged_space_has_the_settings_of_the_table(model: str, searched: set[str]) -> None:
    assert set(get_packaged_space("thesis", model)) == searched


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """A model that needs the number of items that it draws."""

    size: int
    loss: str = "full"
    negatives: int = 0

    def __post_init__(self) -> None:
        if self.loss == "sampled" and not self.negatives:
            raise Contradiction("has no negatives", where="negatives")


def build(cls: type, settings: dict[str, Any], space: dict[str, Any]) -> tuple[Any, list[str]]:
    builder = Builder(Document({}), cls.__name__)
    dimensions = read_space(builder, cls, space, ())
    tune = Tune(PluginSpec("metrics", "nDCG", "nDCG", None, {}, ()), 2, dimensions, {})
    base = build_base(builder, cls, settings, (), tune)
    return base, [str(error) for _, error in builder.document.faults]


@pytest.mark.parametrize(
    ("settings", "space", "base"),
    [
        # the defaults, by which trials were addressed before
        ({"size": 3}, {"negatives": {"int": [4, 8]}}, Sampling(size=3)),
        ({"size": 3}, {"loss": {"choice": ["sampled"]}}, Sampling(size=3)),
        # the first values where the defaults fit no model
        (
            {"size": 3, "loss": "sampled"},
            {"negatives": {"int": [4, 8]}},
            Sampling(size=3, loss="sampled", negatives=4),
        ),
        (
            {"loss": "sampled"},
            {"negatives": {"choice": [8, 4]}, "size": {"log": [2, 5]}},
            Sampling(size=2, loss="sampled", negatives=8),
        ),
    ],
)
def test_base_of_a_search(settings: dict[str, Any], space: dict[str, Any], base: Sampling) -> None:
    assert build(Sampling, settings, space) == (base, [])


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("negatives: {int: [8, 4]}", "tune.space.negatives.int: 8 is not below 4"),
        ("negatives: {choice: [8]}, epochs: {int: [0, 4]}", "must be a whole number above 0"),
    ],
)
def test_a_fault_of_a_search_is_the_only_one(tmp_path: Path, entry: str, message: str) -> None:
    (tmp_path / "spec.yaml").write_text(
        "name: searched\ndataset: {name: demo}\nsplit: {name: random, validation: 0.2}\n"
        "metrics: [nDCG]\nmodels:\n  - {name: SASRec, loss: binary_cross_entropy,\n"
        f"     tune: {{metric: nDCG, trials: 2, space: {{{entry}}}}}}}\n"
    )
    result = invoke_recbias("plan", "spec.yaml", folder=tmp_path)
    assert result.code == 2
    assert result.err.count("error: ") == 1
    assert message in result.err
