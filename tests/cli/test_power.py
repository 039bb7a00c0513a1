from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import brentq

import recbias
from recbias.cli.compare import find_run
from recbias.reports.run import read_run
from support.commands import invoke_recbias, write_small_spec
from support.specs import make_small_spec


def test_power_prints_the_detectable_difference_of_each_comparison(finished_runs: Path) -> None:
    result = invoke_recbias("power", "one", folder=finished_runs)
    assert (result.code, result.err) == (0, "")
    title, head, _, *lines = result.out.splitlines()
    assert title == "one: 6 rows (dataset demo, seed 42, fold 1, unit user)"
    assert head.split() == ["metric", "a", "b", "n", "observed", "detectable"]
    significance = read_run(find_run("one", finished_runs / "results")).significance
    row = significance.iloc[0]
    # 60 users, alpha 0.05 / 3: the noncentrality with which t(59) exceeds 2.464 in 80% is 3.316
    critical = stats.t.isf(0.05 / 3 / 2, 59)
    shift = brentq(lambda nc: stats.nct.sf(critical, 59, nc) - 0.8, 0, 10)
    assert shift == pytest.approx(3.316, abs=0.001)
    std = float(row["difference"]) / float(row["effect_size"])
    detectable = float(lines[0].split()[5])
    assert detectable == pytest.approx(shift * abs(std) / math.sqrt(60), abs=1e-4)
    assert lines[-1] == "Level of a single test: 0.017 (alpha divided by the family size)."


@pytest.fixture(scope="module")
def grouped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the run ``grouped``, which has 33 comparisons."""
    folder = tmp_path_factory.mktemp("grouped")
    models = ["Random", "MostPop", "ItemKNN"]
    metrics = ["nDCG", "HR", {"name": "nDCG", "by": "gender"}, {"name": "HR", "by": "gender"}]
    spec = make_small_spec(name="grouped", models=models, metrics=metrics)
    recbias.run(spec, out=folder / "results")
    return folder


def test_many_comparisons_are_summed_up_by_metric(grouped: Path) -> None:
    result = invoke_recbias("power", "grouped", "--difference", "0.05", folder=grouped)
    assert result.code == 0, result.err
    title, head, _, *lines = result.out.splitlines()
    table = recbias.power(recbias.load("grouped", grouped / "results"), 0.05)
    assert title.startswith(f"grouped: {len(table)} comparisons by metric (dataset demo, ")
    assert head.split() == ["metric", "comparisons", "n", "detectable", "needed", "remark"]
    rows = [line for line in lines if " of models " in line or " of groups " in line]
    counts = table.groupby(["metric", "between"]).ngroups
    assert len(rows) == counts
    overall = table[(table["metric"] == "nDCG")]
    ends = [f"{end:.4f}" for end in (overall["detectable"].min(), overall["detectable"].max())]
    largest = f"{overall['needed'].max():,.0f}"
    assert rows[0].split() == [
        "nDCG@5",
        "3",
        "of",
        "models",
        "60",
        ends[0],
        "to",
        ends[1],
        largest,
    ]
    # comparisons of models over all queries, then of groups, then the others
    assert rows[2].split()[:6] == ["nDCG@5", "by", "gender", "3", "of", "groups"]
    assert any(row.startswith("nDCG@5, gap by gender ") for row in rows[4:])


def test_spec_stands_for_its_latest_run_and_asks_for_a_pilot(tmp_path: Path) -> None:
    path = write_small_spec(tmp_path)
    result = invoke_recbias("power", path.name, folder=tmp_path)
    assert result.code == 2
    assert result.err.splitlines() == [
        "error: small has no finished run in results, which gives the variance",
        "help: run a pilot: recbias run small.yaml --limit 200",
    ]
    recbias.run(path, out=tmp_path / "results")
    result = invoke_recbias("power", path.name, "--difference", "1e-9", folder=tmp_path)
    assert result.code == 0, result.err
    assert "more than 1,000,000,000" in result.out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--difference", "0"), "--difference: must be a number above 0, not 0"),
        (("--difference", "-0.1"), "--difference: must be a number above 0, not -0.1"),
        (("--difference", "nan"), "--difference: must be a number above 0, not nan"),
        (("--difference", "inf"), "--difference: must be a number above 0, not inf"),
        (("--power", "1"), "--power: must be a number above alpha and below 1, not 1"),
        (("--power", "0.01"), "--power: must be a number above alpha and below 1, not 0.01"),
        (("--alpha", "0"), "--alpha: must be a number above 0 and below 1, not 0"),
        (("--metric", "nDGC"), "--metric: the run has no comparison of the metric 'nDGC'"),
        (("--model", "EASE"), "--model: the run has no comparison of the model 'EASE'"),
    ],
)
def test_impossible_questions_are_refused(
    words: tuple[str, ...], message: str, finished_runs: Path
) -> None:
    result = invoke_recbias("power", "one", *words, folder=finished_runs)
    error, remedy = result.err.splitlines()
    assert (result.code, error) == (2, f"error: {message}")
    assert remedy.startswith("help: ")


ITEMS = "item_id,price,cheap\n" + "".join(f"i{n},{'$' * (n % 4 + 1)},{n % 2}\n" for n in range(12))
PROMPTS = """\
words:
  name:
    - {gender: female, words: [Ann, Eve, Ida]}
    - {gender: male, words: [Bob, Max, Tom]}
templates:
  gifts: ["A gift for [name]", "Please surprise [name]", "What would [name] like?"]
"""


def test_names_and_templates_of_prompts_are_counted(tmp_path: Path) -> None:
    (tmp_path / "items.csv").write_text(ITEMS, encoding="utf-8")
    (tmp_path / "prompts.yaml").write_text(PROMPTS, encoding="utf-8")
    rng = np.random.default_rng(2)
    ids = [
        f"gifts-0{t}:{n}" for t in (1, 2, 3) for n in ("Ann", "Eve", "Ida", "Bob", "Max", "Tom")
    ]
    for model in ("ours", "theirs"):
        rows = [f"{query},{rank},i{item}" for query in ids
                for rank, item in enumerate(rng.permutation(12)[:4], start=1)]  # fmt: skip
        text = "\n".join(["query_id,rank,item_id", *rows]) + "\n"
        (tmp_path / f"{model}.csv").write_text(text, encoding="utf-8")
    price = {"label": "gender", "attribute": "price"}
    spec = {
        "name": "prompts",
        "dataset": {"name": "tables", "items": str(tmp_path / "items.csv")},
        "queries": {"name": "templates", "templates": str(tmp_path / "prompts.yaml")},
        "k": 4,
        "models": [
            {"name": "lists", "label": model, "path": str(tmp_path / f"{model}.csv")}
            for model in ("ours", "theirs")
        ],
        "metrics": [
            {"name": "REC-ST", "label": "cheap"},
            {"name": "mean_attribute", **price},
            {"name": "variance_split", **price},
        ],
        "tests": ["paired_t"],
        "report": {"formats": ["csv"]},
    }
    table = recbias.power(recbias.run(spec, out=tmp_path / "results"), 0.5)
    crossed = table[table["given"] != ""]
    counts = crossed[["metric", "between", "unit", "given", "n"]].to_numpy().tolist()
    split = "mean_attribute(label=gender, attribute=price)"
    name, template = ["name", "3 templates", 6], ["template", "6 names", 3]
    assert counts[:2] == [["REC-ST(label=cheap)", "models", *unit] for unit in (name, template)]
    assert counts[2:] == [[split, "groups", *unit] for unit in (name, template)] * 2
    assert (crossed["needed"].notna() | (crossed["remark"] != "")).all()
