from __future__ import annotations

from pathlib import Path

from recbias.cli.compare import find_run
from recbias.reports.run import read_run
from support.commands import invoke_recbias


def read_value(out: Path, run: str, *, model: str, metric: str) -> float:
    metrics = read_run(find_run(run, out)).metrics
    row = metrics[(metrics["model"] == model) & (metrics["metric"] == metric)].iloc[0]
    return float(row["value"])


def test_runs_are_compared_side_by_side_with_p_values(finished_runs: Path) -> None:
    result = invoke_recbias("compare", "one", "two", folder=finished_runs)
    assert (result.code, result.err) == (0, "")
    title, head, _, *lines = result.out.splitlines()
    # ItemKNN has nDCG and HR in both; the other models did not change
    assert title == "one, two: 2 values (dataset demo, seed 42, fold 1)"
    columns = ["model", "metric", "one", "two", "difference", "95%", "interval", "p", "p"]
    assert head.split() == [*columns, "adjusted"]
    rows = {tuple(line.split()[:2]): line.split()[2:] for line in lines[:2]}
    a, b = (
        read_value(finished_runs / "results", run, model="ItemKNN", metric="nDCG")
        for run in ("one", "two")
    )
    assert rows["ItemKNN", "nDCG@10"][:3] == [f"{a:.4f}", f"{b:.4f}", f"{b - a:.4f}"]
    low, _, high, p, adjusted = rows["ItemKNN", "HR@10"][3:]
    assert float(low) < float(rows["ItemKNN", "HR@10"][2]) < float(high)
    assert 0 < float(p) < float(adjusted) <= 1
    assert lines[2:] == [
        (
            "Difference: the later run minus the earlier one, with its 95% interval. "
            "p: paired t-test over the 60 units that both runs have; "
            "p adjusted: bonferroni over 2 tests."
        ),
        "Unchanged: 4 values with the same address in both runs.",
        "Excluded: 3 values of two that one lacks.",
    ]


def test_three_runs_are_compared_pair_by_pair(finished_runs: Path) -> None:
    result = invoke_recbias("compare", "one", "two", "one", folder=finished_runs)
    assert result.code == 0, result.err
    titles = [line.split()[:4] for line in result.out.splitlines() if "model" in line.split()[:2]]
    assert titles == [["run", "model", "nDCG@10", "HR@10"], ["model", "metric", "a", "b"]]
    # two pairs with two changed values each; the first and the third run are the same
    rows = [line for line in result.out.splitlines() if line.startswith("ItemKNN")]
    assert len(rows) == 4


def test_published_and_measured_values_are_compared(finished_runs: Path) -> None:
    result = invoke_recbias("compare", "one", "--reference", "children/a3", folder=finished_runs)
    assert result.code == 0, result.err
    lines = result.out.splitlines()
    assert lines[0] == "one and children/a3"
    row = next(line.split() for line in lines if line.startswith("MostPop  nDCG@10"))
    measured = read_value(finished_runs / "results", "one", model="MostPop", metric="nDCG")
    difference = measured - 0.1622
    assert row[2:5] == ["0.1622", f"{measured:.4f}", f"{difference:.4f}"]
    assert row[5:] == [f"{difference / 0.1622:+.1%}", "yes" if abs(difference) <= 0.01 else "no"]
    assert "Within: the difference is at most 0.01." in lines
    assert any("mean_precision" in line for line in lines), (
        "the note on metrics that differ is missing"
    )
