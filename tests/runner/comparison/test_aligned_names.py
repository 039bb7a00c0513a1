"""Entries whose automatic names differ between runs, although their settings do not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import recbias
from recbias.runs.compare import RunFrames, align_names
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
    run_models(path, "labelled", [FIVE | {"label": "mine"}, "MostPop"], ["nDCG"])
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


def test_a_label_of_the_user_is_no_automatic_name(folder: Path) -> None:
    result = invoke_recbias("compare", "labelled", "wide", folder=folder)
    assert "Equal settings" not in result.out
    first, *_ = result.out.splitlines()
    assert "1 result of labelled without a counterpart in wide" in first
    assert "nothing changed" not in result.out


def make_frames(label: str, entries: list[tuple[str, int]]) -> RunFrames:
    metrics = pd.DataFrame({"model": [name for name, _ in entries]})
    models = [
        {"label": name, "name": "ItemKNN", "parameters": {"neighbors": n}} for name, n in entries
    ]
    return RunFrames(label, metrics, None, manifest={"models": models})


def test_two_entries_of_equal_settings_are_ambiguous() -> None:
    a = make_frames("a", [("ItemKNN", 5)])
    b = make_frames("b", [("ItemKNN(x=1)", 5), ("ItemKNN(x=2)", 5)])
    (_, aligned), renamings = align_names([a, b])
    assert renamings == []
    assert aligned.metrics["model"].tolist() == ["ItemKNN(x=1)", "ItemKNN(x=2)"]
    (_, aligned), (renaming,) = align_names([a, make_frames("b", [("ItemKNN(x=1)", 5)])])
    assert (renaming.name_a, renaming.name_b) == ("ItemKNN", "ItemKNN(x=1)")
    assert aligned.metrics["model"].tolist() == ["ItemKNN"]


def test_gaps_of_a_renamed_metric_are_judged(tmp_path: Path) -> None:
    by = {"name": "nDCG", "by": "gender", "gap": "groups"}
    models = ["MostPop", FIVE]
    run_models(tmp_path, "one", models, [by])
    run_models(tmp_path, "two", models, [by, by | {"min_group": 9}])
    result = invoke_recbias("compare", "one", "two", "--fail-over", "0.001", folder=tmp_path)
    assert (result.code, result.err) == (0, "")
