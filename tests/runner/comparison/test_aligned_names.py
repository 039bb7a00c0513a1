"""Entries whose automatic names differ between runs, although their settings do not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import recbias
from support.commands import invoke_recbias

FIVE, NINE = ({"name": "ItemKNN", "neighbors": n} for n in (5, 9))


def run_models(folder: Path, name: str, models: list[Any], metrics: list[Any]) -> recbias.Run:
    spec = {
        "name": name,
        "dataset": {"name": "demo", "n_users": 60, "n_items": 40},
        "split": "random",
        "models": models,
        "metrics": metrics,
        "k": 5,
    }
    return recbias.run(spec, out=folder / "results")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("renamed")
    run_models(path, "one", [FIVE], ["nDCG"])
    run_models(path, "two", [FIVE, NINE], ["nDCG"])
    run_models(path, "other", ["MostPop", NINE], ["nDCG"])
    run_models(path, "wide", ["MostPop", FIVE, NINE], ["nDCG"])
    return path


def test_an_entry_of_equal_settings_is_compared_whatever_its_automatic_name(folder: Path) -> None:
    result = invoke_recbias("compare", "one", "two", folder=folder)
    assert result.code == 0, result.err
    assert result.out.splitlines() == [
        "one, two: no value that both have changed; 1 result of two without a counterpart in one",
        "Unchanged: 1 value with the same address in both runs.",
        "Excluded: 1 value of two that one lacks.",
        "Equal settings, other automatic names: ItemKNN(neighbors=5) of two is ItemKNN of one.",
    ]
    assert recbias.compare("one", "two", out=folder / "results").empty


def test_the_settings_decide_and_not_the_name(folder: Path) -> None:
    result = invoke_recbias("compare", "other", "wide", folder=folder)
    assert "ItemKNN(neighbors=9) of wide is ItemKNN of other" in result.out
    assert "1 result of wide without a counterpart in other" in result.out
