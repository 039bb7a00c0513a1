"""Each changed figure of a run is named, or is said not to be computed again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import recbias
from recbias.core.measurements.columns import PAIR_COLUMNS, VALUE_COLUMNS
from recbias.reports.audit_cards.build_card import build_card
from recbias.reports.audit_cards.differences import compare_cards
from recbias.reports.views.run_tables import RunTables, read_run
from recbias.verification import compare_tables, recompute_run
from support.specs import make_small_spec

METRICS = [
    *("nDCG", "HR", "Gini", "ItemCoverage", "popularity_lift"),
    {"name": "EXP", "attribute": "genres"},
    {"name": "nDCG", "by": "gender"},
    {"name": "nDCG", "by": "age < 25", "gap": "atkinson_within"},
]
TESTED = (*PAIR_COLUMNS, "p_adjusted", "family_size")

OMITTED = {
    **dict.fromkeys(("Gini", "ItemCoverage", "EXP(attribute=genres)"), "value"),
    "nDCG(by=age < 25, gap=atkinson_within)": "value",
    "popularity_lift": "interval",
}
"""What the files of a run do not determine: values of whole sets, and what popularity costs."""


OMITTED_COLUMNS = {"": (), "value": ("n", "undefined"), "interval": ("ci_low", "ci_high")}
"""The columns that an edit may change unnoticed; a value is the centre of its interval."""


@pytest.fixture(scope="module", params=[(["ItemKNN"], 1), (["MostPop", "ItemKNN"], 2)])
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> RunTables:
    """Return a run with one model and one fold, and one with two of each."""
    models, folds = request.param
    spec = make_small_spec(
        name="cells",
        dataset={"name": "demo", "n_users": 40, "n_items": 30},
        models=models,
        metrics=METRICS,
        split={"name": "random", "test": 0.2, "folds": folds},
    )
    return read_run(recbias.run(spec, out=tmp_path_factory.mktemp("cells") / "results").folder)


def change_column(table: pd.DataFrame, column: str, at: Any = True) -> pd.DataFrame:
    """Return the table with each number of a column changed, or with those of some rows."""
    numbers = table[column].astype(float)
    return table.assign(**{column: numbers + 0.01 * np.maximum(1.0, numbers.abs()) * at})


def list_differing(stored: pd.DataFrame, other: pd.DataFrame, columns: Sequence[str]) -> Any:
    """Return whether any of the columns differs, for each row."""
    pairs = [(stored[column].astype(float), other[column].astype(float)) for column in columns]
    same = [np.isclose(a, b, rtol=1e-9, atol=1e-15, equal_nan=True) for a, b in pairs]
    return ~np.all(same, axis=0)


def find_differences(run: RunTables, **tables: Any) -> list[str]:
    """Return where a run with other tables, and a card of it, contradict its other files."""
    other = replace(run, **tables)
    recomputation = recompute_run(other)
    original = replace(
        other, metrics=recomputation.metrics, significance=recomputation.significance
    )
    of_card = compare_cards(build_card(other), build_card(original))
    return [location.location for location in (*compare_tables(other, recomputation), *of_card)]


def test_nothing_differs_in_the_run_as_it_is(run: RunTables) -> None:
    assert find_differences(run) == []


def test_what_is_not_computed_again_is_said(run: RunTables) -> None:
    recomputation = recompute_run(run)
    singles = run.metrics[run.metrics["fold"].astype(str) != "all"].index
    parts = {run.metrics["metric"][at]: recomputation.omitted[at] for at in singles}
    assert {metric: part for metric, part in parts.items() if part} == OMITTED
    means = run.metrics.index.difference(singles)
    assert not any(recomputation.omitted[at] for at in means)  # they follow from their folds


@pytest.mark.parametrize("column", VALUE_COLUMNS)
def test_each_changed_figure_is_named_or_said_not_to_be_computed_again(
    run: RunTables, column: str
) -> None:
    is_mean = (run.metrics["fold"].astype(str) == "all").to_numpy()
    is_gap = run.metrics["metric"].astype(str).str.contains("gap=").to_numpy()
    is_defined = run.metrics[column].notna().to_numpy()
    for at in (is_mean, ~is_mean):  # the rows of folds do not depend on each other
        metrics = change_column(run.metrics, column, at)
        recomputation = recompute_run(replace(run, metrics=metrics))
        is_named = list_differing(metrics, recomputation.metrics, VALUE_COLUMNS)
        is_said = np.array([column in OMITTED_COLUMNS[part] for part in recomputation.omitted])
        is_count = is_gap & (column in {"n", "undefined"})
        assert (is_named | is_said | is_count | ~is_defined)[at].all()
        assert is_named[at].sum() >= is_defined[at].sum() / 4


@pytest.mark.parametrize("column", TESTED)
def test_each_changed_number_of_a_test_is_named(run: RunTables, column: str) -> None:
    significance = change_column(run.significance, column)
    recomputation = recompute_run(replace(run, significance=significance)).significance
    is_named = list_differing(significance, recomputation, TESTED)
    assert (is_named | run.significance[column].isna()).all()


def test_a_changed_card_differs_from_the_recomputed_one(run: RunTables) -> None:
    gini = run.metrics["metric"] == "Gini"
    for column in ("value", "ci_low", "ci_high"):
        metrics = run.metrics.assign(**{column: run.metrics[column] + 0.01 * gini})
        locations = find_differences(run, metrics=metrics)
        assert any(location.startswith("metrics.csv: demo ItemKNN 42") for location in locations)
        assert any(location.startswith("estimates: Gini@5 ItemKNN demo") for location in locations)
