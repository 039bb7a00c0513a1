from __future__ import annotations

from dataclasses import fields, is_dataclass

import pytest

from recbias.core.docstrings import read_formula, read_section
from recbias.core.errors import UnknownName
from recbias.core.registry import Registry
from recbias.registry import REGISTRIES, name_metric

NAMES = [(kind, name) for kind, registry in REGISTRIES.items() for name in registry.table]


@pytest.mark.parametrize(("kind", "name"), NAMES)
def test_every_plug_in_is_a_documented_keyword_only_dataclass(kind: str, name: str) -> None:
    plugin = REGISTRIES[kind].load(name)
    assert is_dataclass(plugin)
    assert plugin.__doc__
    assert isinstance(plugin, type)
    assert all(field.kw_only for field in fields(plugin))


def test_no_two_names_of_a_kind_match_each_other() -> None:
    for registry in REGISTRIES.values():
        assert isinstance(registry, Registry)
        for name in registry.table:
            assert registry.resolve_name(name) == name


def test_an_unknown_metric_leads_to_those_that_have_the_word_in_their_description() -> None:
    with pytest.raises(UnknownName) as caught:
        REGISTRIES["metrics"].resolve_name("Novelty")
    assert "self_information" in caught.value.remedy


@pytest.mark.parametrize("name", REGISTRIES["metrics"].table)
def test_every_metric_documents_formula_range_source_and_direction(name: str) -> None:
    metric = REGISTRIES["metrics"].load(name)
    assert read_formula(metric)
    for title in ("Range", "Source"):
        assert read_section(metric, title), title
    assert getattr(metric, "direction", "") in {"higher", "lower", "zero", "none"}


def test_no_two_metrics_have_the_same_name_for_people() -> None:
    names = [name_metric(name) for name in REGISTRIES["metrics"].table]
    assert len(names) == len(set(names))
    assert {name for name in names if "_" in name} == {"HIT_BAD", "MRR_BAD"}  # of their papers
