from __future__ import annotations

from pathlib import Path

import pytest

import recbias
from recbias.cli.compare import find_run, label_runs
from recbias.reports.run import read_run
from support.commands import invoke_recbias
from support.screen import run_in_terminal
from support.specs import make_small_spec


def read_value(out: Path, run: str, *, model: str, metric: str) -> float:
    metrics = read_run(find_run(run, out)).metrics
    row = metrics[(metrics["model"] == model) & (metrics["metric"] == metric)].iloc[0]
    return float(row["value"])


@pytest.mark.parametrize(
    ("folders", "labels"),
    [
        (["results/a/1", "results/b/2"], ["a", "b"]),
        (["results/a/1", "results/a/2"], ["1", "2"]),
    ],
)
def test_labels_of_runs_are_unique(folders: list[str], labels: list[str]) -> None:
    assert label_runs([Path(folder) for folder in folders]) == labels


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


def test_runs_in_which_nothing_changed_have_no_table(finished_runs: Path) -> None:
    result = invoke_recbias("compare", "one", "one", "--fail-over", "0", folder=finished_runs)
    assert result.code == 0, result.err
    title, note = result.out.splitlines()
    assert title.endswith(": nothing changed")
    assert note == "Unchanged: 6 values with the same address in both runs."


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


def test_comparison_in_a_terminal_of_eighty_columns_is_one_table(tmp_path: Path) -> None:
    metrics = ["log_popularity_difference", {"name": "nDCG", "by": "gender"}]
    for name, neighbors in (("before", 20), ("after", 3)):
        models = ["MostPop", {"name": "ItemKNN", "neighbors": neighbors}]
        spec = make_small_spec(name=name, models=models, metrics=metrics)
        recbias.run(spec, out=tmp_path / "results")
    code, screen = run_in_terminal("compare", "before", "after", folder=tmp_path, width=80)
    lines = screen.text()
    assert (code, screen.strange) == (0, [])
    assert max(map(len, lines)) <= 80
    heads = [line.split() for line in lines if line.startswith("model ")]
    assert len(heads) == 2  # the values and the gaps
    assert all(head[-2:] == ["p", "adjusted"] and "difference" in head for head in heads)
    assert any("Too wide to show: " in line for line in lines)
    assert not [line for line in lines if "by=" in line or "gap=" in line]
    text = " ".join(invoke_recbias("compare", "before", "after", folder=tmp_path).out.split())
    for name in ("nDCG@5, gap by gender", "nDCG@5 of gender=F - gender=M", "nDCG@5 of gender=M"):
        assert f"ItemKNN {name} " in text
