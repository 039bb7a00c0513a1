from __future__ import annotations

from typing import Any

import pytest

from recbias.config.build import Builder
from recbias.config.plugin_spec import Dimension, Range
from recbias.config.search_space import read_space
from recbias.config.spaces import packaged, packaged_spaces
from recbias.core.errors import UnknownName
from recbias.formats.yaml.source_map import Document
from recbias.registry import REGISTRIES

PAIRS = [(name, model) for name, models in packaged_spaces().items() for model in models]


@pytest.mark.parametrize(("name", "model"), PAIRS)
def test_every_packaged_space_is_one_that_a_spec_may_write(name: str, model: str) -> None:
    builder = Builder(Document({}), model)
    space = read_space(builder, REGISTRIES["models"].load(model), packaged(name, model), ())
    assert [error.lines() for _, error in builder.document.faults] == []
    assert [each.parameter for each in space] == [*packaged(name, model)]


@pytest.mark.parametrize(("name", "model"), PAIRS)
def test_models_are_built_from_both_ends_of_every_space(name: str, model: str) -> None:
    cls = REGISTRIES["models"].load(model)
    builder = Builder(Document({}), model)
    space = read_space(builder, cls, packaged(name, model), ())
    for end in (0, -1):
        drawn = {each.parameter: ends(each)[end] for each in space}
        assert builder.build(cls, drawn, ()) is not None


def ends(dimension: Dimension) -> tuple[Any, Any]:
    if isinstance(dimension, Range):
        return dimension.low, dimension.high
    return dimension.values[0], dimension.values[-1]


def test_the_ranges_are_those_of_the_table() -> None:
    # Table A.1: SLIM's topK 5 - 1000, l1 ratio 0.00001 - 1 log-uniform, alpha 0.01 - 1 uniform
    cls = REGISTRIES["models"].load("SLIM")
    space = read_space(Builder(Document({}), "SLIM"), cls, packaged("thesis", "SLIM"), ())
    assert space == (
        Range("neighbors", 5, 1000, log=False, whole=True),
        Range("l1_ratio", 1e-5, 1, log=True, whole=False),
        Range("alpha", 0.01, 1, log=False, whole=False),
    )


@pytest.mark.parametrize(
    ("model", "searched"),
    [
        # the settings of Table A.1, in its order, but for batches that are not made on a CPU
        ("FunkSVD", {"embedding_size", "learning_rate"}),
        ("MF", {"embedding_size", "learning_rate", "reg"}),
        ("MF2020", {"embedding_size", "learning_rate", "reg", "negatives"}),
        ("PMF", {"embedding_size", "batch_size", "learning_rate"}),
    ],
)
def test_what_is_searched_is_what_the_table_lists(model: str, searched: set[str]) -> None:
    assert set(packaged("thesis", model)) == searched


@pytest.mark.parametrize(
    ("name", "model", "found", "remedy"),
    [
        ("tesis", "SLIM", "no search space is called 'tesis'", "did you mean thesis?"),
        ("thesis", "MostPop", "'thesis' has nothing for MostPop", "it has ItemKNN, UserKNN"),
    ],
)
def test_what_is_not_there_is_an_error(name: str, model: str, found: str, remedy: str) -> None:
    with pytest.raises(UnknownName) as caught:
        packaged(name, model)
    assert found in str(caught.value)
    assert remedy in caught.value.remedy
