from __future__ import annotations

import math
from pathlib import Path

import pandas as pd
import pytest

from commands import recbias
from recbias.cli.comparisons import labels_of, largest


@pytest.mark.parametrize(
    ("folders", "labels"),
    [
        (["results/a/1", "results/b/2"], ["a", "b"]),
        (["results/a/1", "results/a/2"], ["1", "2"]),
    ],
)
def test_runs_are_called_by_what_tells_them_apart(folders: list[str], labels: list[str]) -> None:
    assert labels_of([Path(each) for each in folders]) == labels


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ([0.5, 0.25], [0.75, 0.25], 0.25),
        ([math.nan], [math.nan], 0.0),
        ([math.nan, 0.5], [0.5, 0.5], math.inf),
    ],
)
def test_what_is_undefined_in_one_run_only_is_infinitely_far(
    a: list[float], b: list[float], expected: float
) -> None:
    assert largest(pd.Series(a), pd.Series(b)) == expected


def test_the_comparison_shows_both_values_and_the_adjusted_p(finished: Path) -> None:
    said = recbias("compare", "one", "two", folder=finished)
    assert said.code == 0, said.err
    for word in ("one", "two", "difference", "p adjusted", "ItemKNN", "nDCG"):
        assert word in said.out
    assert "bonferroni" in said.out.lower()
