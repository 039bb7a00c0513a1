from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import recbias
from recbias.reports.card import Form, fill_ll144
from recbias.reports.run import RunTables
from recbias.reports.write import write_reports


def make_run(
    counts: dict[str, tuple[int, int]], values: tuple[float, float], by: str = "sex"
) -> RunTables:
    """A run in which some individuals of each category have the second value, others the first."""
    low, high = values
    rows = [
        {"group": group, "unit_id": f"{group}{at}", "value": high if at < chosen else low}
        for group, (size, chosen) in counts.items()
        for at in range(size)
    ]
    frame = pd.DataFrame(rows).assign(
        dataset="d",
        model="A",
        seed=1,
        fold=1,
        unit="user",
        metric=f"HR(by={by})",
        k=10.0,
        target="",
    )
    metrics = frame.head(1)
    manifest: dict[str, Any] = {
        "models": [{"label": "A", "name": "EASE"}],
        "metrics": [
            {"metric": f"HR(by={by})", "k": 10, "name": "HR", "parameters": {"by": by}}
            | {"direction": "higher"}
        ],
        "queries": [{"dataset": "d", "asked": 110}],
    }
    run = RunTables(Path(), metrics, pd.DataFrame(), manifest)
    vars(run)["per_unit"] = frame
    return run


def list_texts(form: Form) -> list[tuple[str, ...]]:
    (table,) = form.tables
    return [tuple(cell.text for cell in row) for row in table.rows]


COUNTS = {"sex=F": (50, 20), "sex=M": (50, 40), "sex=X": (2, 2)}


@pytest.mark.parametrize("values", [(0.0, 1.0), (3.0, 7.5)])
def test_impact_ratios_are_to_the_most_selected_category_of_2_percent(
    values: tuple[float, float],
) -> None:
    counts = COUNTS if values[1] == 1 else COUNTS | {"sex=M": (50, 24)}  # median: 3.0
    form = fill_ll144(make_run(counts, values))
    rows = {row[1]: row for row in list_texts(form)}
    n_men = counts["sex=M"][1]
    assert rows["sex=F"][2:5] == ("50", "20", "0.400")
    assert rows["sex=F"][6] == f"{0.4 / (n_men / 50):.3f}"
    assert rows["sex=M"][6] == "1.000"
    assert rows["sex=X"][2:5] == ("2", "2", "1.000")
    assert rows["sex=X"][6:] == ("n/a", "none")  # 2 of 102 individuals are below 2 %
    assert "Individuals in an unknown category: 8 of 110." in form.tables[0].notes
    assert any("by race or ethnicity" in line for line in form.missing)
    assert not any("is left out" in line for line in form.missing)
    assert not any("by sex:" in line for line in form.missing)


def test_the_rate_over_seeds_is_the_mean_of_the_rates_of_the_seeds() -> None:
    """Of 50 women 20, then 30 are selected, of 50 men 40, then 40: 0.5 and 0.8."""
    run = make_run(COUNTS, (0.0, 1.0))
    second = make_run(COUNTS | {"sex=F": (50, 30)}, (0.0, 1.0)).per_unit
    vars(run)["per_unit"] = pd.concat([run.per_unit, second.assign(seed=2)])  # type: ignore[list-item]
    rows = {row[1]: row for row in list_texts(fill_ll144(run))}
    assert rows["sex=F"][2:5] == ("50", "25.0", "0.500")
    assert (rows["sex=M"][4], rows["sex=F"][6]) == ("0.800", "0.625")


def test_individuals_in_an_unknown_category_count_in_the_median_and_in_the_2_percent() -> None:
    """19 have the value 0 and 21 have 3, which is their median; 20 of unknown sex have 0."""
    run = make_run({"sex=F": (20, 20), "sex=M": (19, 0), "sex=X": (1, 1)}, (0.0, 3.0))
    known = run.per_unit
    assert known is not None
    unknown = known.head(20).assign(value=0.0, unit_id=[f"u{at}" for at in range(20)])
    everybody = pd.concat([known, unknown]).assign(metric="HR", group="")
    vars(run)["per_unit"] = pd.concat([known, everybody])
    run.manifest["queries"][0]["asked"] = 60
    form = fill_ll144(run)
    rows = {row[1]: row for row in list_texts(form)}
    assert "Scoring rate: the share above the median of the sample: 0 (A)." in form.tables[0].notes
    assert [rows[f"sex={sex}"][3] for sex in "FMX"] == ["20", "0", "1"]
    assert rows["sex=X"][6] == "n/a"  # one of 40 is above 2 %, one of 60 is not


@pytest.mark.parametrize("by", ["sex & age < 25", "age < 11"])
def test_a_metric_has_one_table_of_all_its_groups(by: str) -> None:
    *sex, condition = by.split(" & ")
    sides = (condition, f"not {condition}")
    names = [f"sex={name}&{side}" for name in "FM" for side in sides] if sex else [*sides]
    counts = {name: (20, 4 * at) for at, name in enumerate(names, start=1)}
    form = fill_ll144(make_run(counts, (0.0, 1.0), by))
    ratios = {row[1]: row[6] for row in list_texts(form)}
    assert ratios == {name: f"{at / len(names):.3f}" for at, name in enumerate(names, start=1)}
    assert form.tables[0].title == f"HR@10 by {by}, d"
    unknown = 110 - 20 * len(names)
    assert f"Individuals in an unknown category: {unknown} of 110." in form.tables[0].notes


@pytest.mark.parametrize(
    ("gap", "direction", "heading", "why"),
    [
        ("difference", "higher", "HR@10, gap by sex", "gap: difference is one number"),
        ("groups", "lower", "HR@10 by sex", "lower is better, so that a value above"),
        ("groups", "zero", "HR@10 by sex", "nearer to 0 is better, so that a value above"),
    ],
)
def test_a_metric_that_has_no_table_is_named_with_the_reason(
    gap: str, direction: str, heading: str, why: str
) -> None:
    run = make_run(COUNTS, (0.0, 1.0))
    title = "HR(by=sex)" if gap == "groups" else f"HR(by=sex, gap={gap})"
    (entry,) = run.manifest["metrics"]
    entry |= {"metric": title, "parameters": {"by": "sex", "gap": gap}}
    entry |= {"direction": direction, "group_direction": direction}
    run = RunTables(run.folder, run.metrics.assign(metric=title), run.significance, run.manifest)
    vars(run)["per_unit"] = None if gap == "difference" else make_run(COUNTS, (0, 1)).per_unit
    form = fill_ll144(run)
    assert not form.tables
    (line,) = [line for line in form.missing if "is left out" in line]
    assert line.startswith(f"6 RCNY 5-301: {heading} is left out: {why}")
    assert any("no table is by sex:" in line for line in form.missing)


def test_both_forms_are_written_with_what_the_run_cannot_fill_in(tmp_path: Path) -> None:
    spec = {
        "name": "forms",
        "dataset": {"name": "demo", "n_users": 60, "n_items": 40},
        "split": {"name": "random", "test": 0.2},
        "models": ["MostPop", {"name": "EASE", "reg": 20.0}],
        "metrics": [{"name": "nDCG", "by": "gender", "gap": "groups"}, "HR"],
        "checks": [
            {"metric": "HR", "at_least": 0.1, "models": ["EASE"]},
            {"metric": "HR", "at_most": 0.1, "models": ["EASE"]},
        ],
        "report": {"formats": ["card_ll144", "card_eu"]},
    }
    run = recbias.run(spec, out=tmp_path, progress=False)
    law, eu = ((run.folder / f"card_{name}.md").read_text() for name in ("ll144", "eu"))
    assert "## nDCG@10 by gender, demo" in law
    assert "5-302: whether the data are historical" in law
    findings = [line.split(" | ") for line in eu.splitlines() if line.startswith("| to be named")]
    assert {line[-2]: line[-1] for line in findings} == {
        "pass": "positive |",
        "**fail**": "negative |",
    }
    assert "inherent and control risk" in eu
    assert (run.folder / "card_eu.html").exists()
    (run.folder / "card_eu.md").unlink()
    write_reports(run.folder, formats=["card_eu"])
    assert (run.folder / "card_eu.md").read_text() == eu
