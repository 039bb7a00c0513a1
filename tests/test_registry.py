from __future__ import annotations

from dataclasses import fields, is_dataclass

import pytest

from recbias.config.docstrings import read_formula, read_section
from recbias.core.registry import Registry
from recbias.registry import REGISTRIES

NAMES = [(kind, name) for kind, registry in REGISTRIES.items() for name in registry.table]


@pytest.mark.parametrize(("kind", "name"), NAMES)
def test_every_name_loads_a_frozen_dataclass_with_defaults_and_words(kind: str, name: str) -> None:
    loaded = REGISTRIES[kind].load(name)
    assert is_dataclass(loaded)
    assert loaded.__doc__
    assert isinstance(loaded, type)
    assert all(each.kw_only for each in fields(loaded))


@pytest.mark.parametrize("name", ["itemknn", "ITEM-KNN", "item_knn"])
def test_names_are_matched_without_case_and_hyphens(name: str) -> None:
    assert REGISTRIES["models"].canonical(name) == "ItemKNN"


def test_no_two_names_of_a_kind_are_alike() -> None:
    for registry in REGISTRIES.values():
        assert isinstance(registry, Registry)
        for name in registry.table:
            assert registry.canonical(name) == name


@pytest.mark.parametrize("name", REGISTRIES["metrics"].table)
def test_every_metric_says_what_a_reader_must_know(name: str) -> None:
    loaded = REGISTRIES["metrics"].load(name)
    assert read_formula(loaded)
    for title in ("Range", "Source"):
        assert read_section(loaded, title), title
    assert vars(loaded)["direction"] in {"higher", "lower", "zero", "none"}
