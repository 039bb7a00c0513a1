from __future__ import annotations

import math
from pathlib import Path

import pandas as pd
import pytest

from recbias.core.measures import METRICS, Direction
from recbias.reports.conclusions import collect_conclusions, find_worst_groups
from recbias.reports.run import read_run
from recbias.reports.tables import build_cards, build_group_tables, build_summary
from recbias.reports.views import Definition
from support.hand_worked_runs import BY_GENDER, contrast, state, write_groups, write_run


def test_a_card_has_the_groups_and_the_gap_with_its_test(tmp_path: Path) -> None:
    row = contrast("EASE", 0.05, p=0.0005, p_adjusted=0.001, significant=True)
    (card,) = build_cards(write_groups(tmp_path, row, models=["EASE"]))
    assert [[cell.text for cell in row] for row in card.groups.rows] == [
        ["EASE", "gender=F", "40", "0.2000", "0.2000 to 0.2000", "worst off"],
        ["EASE", "gender=M", "60", "0.3000", "0.3000 to 0.3000", ""],
    ]
    assert card.gaps is not None
    # The gap is that of the higher group less the lower: -(0.2 - 0.3) = 0.1, ± 0.05.
    assert [cell.text for cell in card.gaps.rows[0]] == [
        *("EASE", "gender=M", "gender=F", "0.1000", "0.0500 to 0.1500", "0.0005", "0.001", "yes")
    ]
    assert "Welch's t-test, Bonferroni over one comparison" in card.gaps.notes[0]


def test_the_test_of_all_groups_stands_beside_the_largest_gap(tmp_path: Path) -> None:
    gap = "nDCG(by=gender, gap=difference)"
    of_gap = {**BY_GENDER, "metric": gap, "direction": "lower"}
    of_gap["parameters"] = {"k": 10, "by": "gender", "gap": "difference"}
    anova = contrast("a", math.nan, test="welch_anova", metric=gap, p_adjusted=0.03)
    run = write_groups(tmp_path, contrast("a", 0.05), models=["a"])
    values = [
        *(
            state("a", value, BY_GENDER["metric"], group=name)
            for name, value in (("F", 0.2), ("M", 0.3))
        ),
        state("a", 0.1, gap),
    ]
    run = write_run(tmp_path, values, [contrast("a", 0.05), anova], [BY_GENDER, of_gap])
    (card,) = build_cards(run)
    assert card.gaps is not None
    assert card.gaps.columns[-1].title == "p of all groups"
    assert card.gaps.rows[0][-1].text == "0.03"


@pytest.mark.parametrize(
    ("direction", "values", "worst"),
    [
        ("higher", [0.1, 0.3, math.nan], [0]),
        ("lower", [0.1, 0.3, 0.3], [1, 2]),
        ("zero", [-0.4, 0.3, 0.1], [0]),
        ("none", [0.1, 0.3, 0.2], []),
        ("higher", [0.3, 0.3, 0.3], []),
        ("higher", [math.nan, math.nan, math.nan], []),
    ],
)
def test_the_worst_group_depends_on_the_direction(
    direction: Direction, values: list[float], worst: list[int]
) -> None:
    rows = [{"value": value, "n": 2} for value in values]
    found = find_worst_groups(rows, Definition("m", "m", group_direction=direction))
    assert [id(row) for row in found] == [id(rows[number]) for number in worst]


def test_over_several_seeds_n_counts_users_and_the_basis_is_stated(tmp_path: Path) -> None:
    metric = BY_GENDER["metric"]
    values = [
        state("a", value, metric, group=f"gender={gender}", seed=seed, n=n, undefined=undefined)
        for seed, gender, value, n, undefined in [
            *((1, "F", 0.2, 40, 3), (1, "M", 0.3, 60, 0)),
            *((2, "F", 0.4, 38, 5), (2, "M", 0.3, 60, 0)),
            *(("all", "F", 0.3, 2, 0), ("all", "M", 0.3, 2, 0)),
        ]
    ]
    tests = [contrast("a", 0.05, seed=seed) for seed in (1, 2)]
    (card,) = build_cards(write_run(tmp_path, values, tests, [BY_GENDER]))
    assert [row[2].text for row in card.groups.rows] == ["38", "60"]
    assert "n counts the units of each seed" in card.groups.notes[1]
    assert card.gaps is not None
    assert "those of seed 1" in card.gaps.notes[-1]


def test_a_gap_alone_has_a_card_with_the_means_of_its_test(tmp_path: Path) -> None:
    gap = {
        **BY_GENDER,
        "metric": "nDCG(by=gender, gap=difference)",
        "direction": "lower",
        "group_direction": "higher",
        "parameters": {"k": 10, "by": "gender", "gap": "difference"},
    }
    test = contrast("a", 0.05, metric=gap["metric"], significant=True)
    run = write_run(tmp_path, [state("a", 0.1, gap["metric"])], [test], [gap])
    (card,) = build_cards(run)
    assert card.groups.title == "nDCG@10 by gender"
    assert [[cell.text for cell in row] for row in card.groups.rows] == [
        ["a", "gender=F", "", "0.2000", "", "worst off"],
        ["a", "gender=M", "", "0.3000", "", ""],
    ]
    assert "run the spec again" in card.groups.notes[-1]
    assert card.gaps is not None
    (conclusion,) = (item for item in collect_conclusions(run) if item.kind == "groups")
    assert conclusion.sentence.startswith("a: nDCG@10 by gender is 0.1000 lower for gender=F (0.2")
    assert conclusion.detail.endswith("Worst off: gender=F.")


def test_the_card_of_a_gap_alone_has_the_groups_of_the_file(tmp_path: Path) -> None:
    title = "nDCG(by=gender, gap=difference)"
    gap = {**BY_GENDER, "metric": title, "direction": "lower", "group_direction": "higher"}
    gap["parameters"] = {"k": 10, "by": "gender", "gap": "difference"}
    write_run(tmp_path, [state("a", 0.1, title)], [contrast("a", 0.05, metric=title)], [gap])
    groups = [
        state("a", value, title, group=f"gender={name}", n=n, ci_low=value - 0.01, ci_high=value)
        for name, value, n in (("F", 0.2, 40), ("M", 0.3, 60))
    ]
    frame = pd.DataFrame(groups, columns=list(METRICS.names))
    frame.to_csv(tmp_path / "groups.csv", index=False)
    run = read_run(tmp_path)
    (card,) = build_cards(run)
    assert [[cell.text for cell in row] for row in card.groups.rows] == [
        ["a", "gender=F", "40", "0.2000", "0.1900 to 0.2000", "worst off"],
        ["a", "gender=M", "60", "0.3000", "0.2900 to 0.3000", ""],
    ]
    (table,) = build_group_tables(run)
    assert table.title == "nDCG@10 by gender"
    assert table.notes[0].startswith("nDCG@10 by gender: higher is better.")
    assert [column.title for column in build_summary(run).columns] == [
        *("model", "nDCG@10, gap by gender")
    ]
