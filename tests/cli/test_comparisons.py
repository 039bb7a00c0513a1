from __future__ import annotations

import math
from pathlib import Path

import pandas as pd
import pytest

from recbias.cli.comparisons import labels_of, largest
from recbias.cli.runs import find_run
from recbias.reports.views.run_tables import read_run
from support.commands import inside, recbias


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


def test_runs_stand_side_by_side_with_p_values(finished: Path) -> None:
    said = recbias("compare", "one", "two", folder=finished)
    assert (said.code, said.err) == (0, "")
    title, head, _, *lines = said.out.splitlines()
    # 3 models of nDCG and HR; Recall is in the second only
    assert title == "one, two: 6 figures (dataset demo, seed 42, fold 1)"
    assert head.split() == ["model", "metric", "one", "two", "difference", "p", "p", "adjusted"]
    figures = {tuple(line.split()[:2]): line.split()[2:] for line in lines[:6]}
    one = read_run(find_run("one", finished / "results")).metrics
    two = read_run(find_run("two", finished / "results")).metrics
    a, b = (
        float(each[(each["model"] == "ItemKNN") & (each["metric"] == "nDCG")]["value"].iloc[0])
        for each in (one, two)
    )
    assert figures["ItemKNN", "nDCG@10"][:3] == [f"{a:.4f}", f"{b:.4f}", f"{a - b:.4f}"]
    p, adjusted = map(float, figures["ItemKNN", "HR@10"][3:])
    assert 0 < p < adjusted <= 1
    assert figures["MostPop", "nDCG@10"][2:] == ["0.0000", "1.0", "1.0"]
    assert lines[6:] == [
        (
            "Difference: the first less the second. p: paired t-test over the 60 units of both; "
            "p adjusted: bonferroni over 6 tests."
        ),
        "Left out: 3 figures that one lacks.",
    ]


def test_several_runs_are_compared_pair_by_pair(finished: Path) -> None:
    said = inside("compare", "one", "two", "one", folder=finished)
    assert said.code == 0, said.err
    head = said.out.splitlines()[1]
    assert head.split()[:4] == ["model", "metric", "a", "b"]
    # three pairs of six figures; the third has Recall in neither
    rows = [line for line in said.out.splitlines() if line.startswith(("Random", "Most", "Item"))]
    assert len(rows) == 18


def test_published_stands_beside_measured(finished: Path) -> None:
    said = inside("compare", "one", "--reference", "children/a3", folder=finished)
    assert said.code == 0, said.err
    lines = said.out.splitlines()
    assert lines[0] == "one beside children/a3"
    row = next(line.split() for line in lines if line.startswith("MostPop  nDCG@10"))
    metrics = read_run(find_run("one", finished / "results")).metrics
    ours = metrics[(metrics["model"] == "MostPop") & (metrics["metric"] == "nDCG")]
    measured = float(ours["value"].iloc[0])
    gap = measured - 0.1622
    assert row[2:5] == ["0.1622", f"{measured:.4f}", f"{gap:.4f}"]
    assert row[5:] == [f"{gap / 0.1622:+.1%}", "yes" if abs(gap) <= 0.01 else "no"]
    assert "Within: at most 0.01 apart." in lines
    assert any("mean_precision" in line for line in lines), "what cannot be equal is said"
