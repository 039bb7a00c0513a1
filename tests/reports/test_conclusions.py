from __future__ import annotations

import html
import json
import math
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from scipy.stats import nct, t

from recbias.cli.output import print_conclusions
from recbias.core.measures import Direction
from recbias.reports.conclusions import collect_conclusions, find_worst_groups, split_conclusions
from recbias.reports.render import Content, render_html, render_json, render_markdown
from recbias.reports.run import to_records
from recbias.reports.tables import build_cards, tabulate_comparisons
from recbias.reports.views import Definition
from support.hand_worked_runs import BY_GENDER, compare, contrast, state, write_groups, write_run


def test_a_card_has_the_groups_and_the_gap_with_its_test(tmp_path: Path) -> None:
    row = contrast("EASE", 0.05, p=0.0005, p_adjusted=0.001, significant=True)
    (card,) = build_cards(write_groups(tmp_path, row, models=["EASE"]))
    titles = [column.title for column in card.groups.columns]
    assert titles == ["model", "F (n 40)", "M (n 60)", "gap"]
    (row_of_ease,) = card.groups.rows
    assert [cell.text for cell in row_of_ease] == ["EASE", "0.2000", "0.3000", "0.1000"]
    assert [cell.mark for cell in row_of_ease] == ["", "w", "", "*"]
    assert card.gaps is not None
    # The gap is that of the higher group less the lower: -(0.2 - 0.3) = 0.1, ± 0.05.
    assert [cell.text for cell in card.gaps.rows[0]] == [
        *("EASE", "gender=M", "gender=F", "0.1000", "0.0500 to 0.1500", "0.0005", "0.001", "yes")
    ]
    assert "Welch's t-test, Bonferroni over one comparison" in card.gaps.notes[0]


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
    titles = [column.title for column in card.groups.columns]
    assert titles == ["model", "F (n 38)", "M (n 60)", "gap"]
    assert "n counts the units of each seed" in card.groups.notes[-1]
    assert card.gaps is not None
    assert "those of seed 1" in card.gaps.notes[-1]


def test_a_gap_alone_has_a_conclusion_with_the_means_of_its_test(tmp_path: Path) -> None:
    gap = {
        **BY_GENDER,
        "metric": "nDCG(by=gender, gap=difference)",
        "direction": "lower",
        "group_direction": "higher",
        "parameters": {"k": 10, "by": "gender", "gap": "difference"},
    }
    test = contrast("a", 0.05, metric=gap["metric"], significant=True)
    run = write_run(tmp_path, [state("a", 0.1, gap["metric"])], [test], [gap])
    (conclusion,) = (item for item in collect_conclusions(run) if item.kind == "groups")
    assert conclusion.sentence.startswith("a: nDCG@10 by gender is 0.1000 lower for gender=F (0.2")
    assert conclusion.detail.endswith("Worst off: gender=F.")


def test_two_models_that_differ_name_the_better_one(tmp_path: Path) -> None:
    row = compare("x", "y", (0.2, 0.5), 0.1, p_adjusted=0.004, significant=True)
    run = write_run(tmp_path, [state("x", 0.2), state("y", 0.5)], [row])
    (conclusion,) = collect_conclusions(run)
    # y less x: 0.5 - 0.2 = 0.3, and 0.3 ± 0.1
    assert conclusion.sentence == (
        "y has the better value of nDCG@10: 0.5000 against 0.2000 of x, difference 0.3000 (95% "
        "interval 0.2000 to 0.4000)."
    )
    assert conclusion.detail == (
        "Paired t-test, Bonferroni over one comparison, alpha 0.05: p 0.004, 100 users. Higher "
        "is better."
    )


def test_two_models_without_a_difference_state_what_could_have_been_detected(
    tmp_path: Path,
) -> None:
    row = compare("x", "y", (0.30, 0.31), 0.1, p_adjusted=0.8)
    run = write_run(tmp_path, [state("x", 0.30), state("y", 0.31)], [row])
    (conclusion,) = collect_conclusions(run)
    # x less y: 0.30 - 0.31 = -0.01, and -0.01 ± 0.1
    assert conclusion.detail == (
        "Paired t-test, Bonferroni over one comparison, alpha 0.05: difference -0.0100 (95% "
        "interval -0.1100 to 0.0900), p 0.8, 100 users."
    )
    # Half width 0.1 = t(0.975; 99) se, so se = 0.1 / 1.9842 = 0.0504. About (1.98 + 0.84) se.
    error = 0.1 / t.ppf(0.975, 99)
    assert conclusion.detectable == pytest.approx(2.83 * error, rel=0.005)
    power = nct.sf(t.ppf(0.975, 99), 99, conclusion.detectable / error)
    assert power == pytest.approx(0.8, abs=1e-6)
    assert conclusion.sentence == (
        f"No difference between x and y found in nDCG@10; one of at least "
        f"{conclusion.detectable:.4f} would have been detected in 80 of 100 such runs."
    )


def test_too_few_users_detect_no_possible_difference(tmp_path: Path) -> None:
    metric = {"metric": "nDCG", "name": "nDCG", "k": 10, "values": "0 to 1"}
    row = compare("x", "y", (0.30, 0.31), 0.9, p_adjusted=0.8, n=3.0, df=2.0)
    run = write_run(tmp_path, [state("x", 0.30), state("y", 0.31)], [row], [metric])
    (conclusion,) = collect_conclusions(run)
    # se = 0.9 / t(0.975; 2) = 0.21, and more than 4.3 se are needed
    assert conclusion.detectable > 1.0
    assert conclusion.sentence == (
        "No difference between x and y found in nDCG@10; not even 1 would have been detected in "
        "80 of 100 such runs."
    )


@pytest.mark.parametrize(
    ("significant", "text"),
    [
        (
            (True, True),
            "each of the 2 others; smallest difference 0.1000 (95% interval -0.1000 to 0.3000)",
        ),
        ((True, False), "significantly better than 1 of the 2 others."),
    ],
)
def test_the_best_of_three_models_is_no_better_than_the_tests_say(
    tmp_path: Path, significant: tuple[bool, bool], text: str
) -> None:
    rows = [
        compare("x", "z", (0.1, 0.5), 0.1, significant=significant[0]),
        compare("y", "z", (0.4, 0.5), 0.2, significant=significant[1]),
        compare("x", "y", (0.1, 0.4), 0.1, significant=False),
    ]
    values = [state("x", 0.1), state("y", 0.4), state("z", 0.5)]
    (conclusion,) = collect_conclusions(write_run(tmp_path, values, rows))
    assert conclusion.sentence.startswith("z has the best value of nDCG@10, 0.5000: significantly")
    assert conclusion.detail.endswith(" Higher is better.")
    assert text in conclusion.sentence
    assert ("No difference from y found" in conclusion.sentence) != all(significant)


def test_two_best_models_that_are_equal_are_both_better_than_the_third(tmp_path: Path) -> None:
    rows = [
        compare("x", "y", (0.5, 0.5), 0.1, p_adjusted=1.0),
        compare("x", "z", (0.5, 0.1), 0.1, p_adjusted=0.001, significant=True),
        compare("y", "z", (0.5, 0.1), 0.1, p_adjusted=0.001, significant=True),
    ]
    values = [state("x", 0.5), state("y", 0.5), state("z", 0.1)]
    (conclusion,) = collect_conclusions(write_run(tmp_path, values, rows))
    assert conclusion.sentence == (
        "x and y have the best value of nDCG@10, 0.5000: significantly better than z."
    )


def compare_equal_differences(n: int, significant: bool) -> dict[str, Any]:
    """Return the comparison of two models that differ by 0.05 for each of n users."""
    p = 2.0 ** (1 - n)
    method = {"n": n, "p": p, "p_adjusted": p, "significant": significant}
    return compare("x", "y", (0.5, 0.45), math.nan, effect_size=math.nan, **method)


def test_equal_differences_of_few_users_are_not_said_to_be_none(tmp_path: Path) -> None:
    rows = [
        compare_equal_differences(4, significant=False),
        compare("x", "z", (0.5, 0.3), math.nan, n=1, p=math.nan, p_adjusted=math.nan),
    ]
    values = [state("x", 0.5), state("y", 0.45), state("z", 0.3)]
    (conclusion,) = collect_conclusions(write_run(tmp_path, values, rows))
    assert conclusion.sentence == (
        "nDCG@10: x is 0.0500 above y in every one of 4 users; they are too few to be "
        "significant (p 0.12). No test could be computed for 1 comparison, with differences of up "
        "to 0.2000."
    )
    assert "(no interval: all 4 differences are equal), p 0.12, 4 users" in conclusion.detail


def test_groups_of_equal_values_that_differ_are_not_said_to_be_alike(tmp_path: Path) -> None:
    row = contrast("a", math.nan, n=4, p=2 / 6, p_adjusted=2 / 6, effect_size=math.nan)
    (conclusion,) = collect_conclusions(write_groups(tmp_path, row, models=["a"]))
    assert conclusion.sentence == (
        "a, nDCG@10 by gender: gender=F is 0.1000 below gender=M for all of 4 users, as the "
        "values within both are equal; they are too few to be significant (p 0.33)."
    )


def test_equal_differences_are_the_strongest_effect(tmp_path: Path) -> None:
    rows = [
        compare_equal_differences(8, significant=True),
        compare("x", "z", (0.5, 0.1), 0.01, p_adjusted=1e-9, significant=True, effect_size=9.0),
    ]
    values = [state("x", 0.5), state("y", 0.45), state("z", 0.1)]
    run = write_run(tmp_path, values, rows)
    (conclusion,) = collect_conclusions(run)
    assert conclusion.effect == math.inf
    table = tabulate_comparisons(run)
    assert [cell.text for cell in table.rows[0][1:7]] == ["x", "y", "0.0500", "", "0.0078", "∞"]
    assert "all differences are equal" in table.notes[0]
    assert "each of the 2 others; smallest difference 0.0500 (no interval: all 8" in (
        conclusion.sentence
    )


def test_groups_that_differ_name_both_groups_and_the_worst_off(tmp_path: Path) -> None:
    row = contrast("EASE", 0.05, p_adjusted=0.001, significant=True)
    (conclusion,) = collect_conclusions(write_groups(tmp_path, row, models=["EASE"]))
    assert conclusion.sentence == (
        "EASE: nDCG@10 by gender is 0.1000 lower for gender=F (0.2000) than for gender=M "
        "(0.3000), 95% interval 0.0500 to 0.1500."
    )
    assert conclusion.detail == (
        "Welch's t-test, Bonferroni over one comparison, alpha 0.05: p 0.001, 40 and 60 users. "
        "Worst off: gender=F (40 users)."
    )
    assert (conclusion.kind, conclusion.worst) == ("groups", ("gender=F",))


def test_a_p_value_above_alpha_does_not_read_as_alpha(tmp_path: Path) -> None:
    rows = [
        compare("x", name, (0.3, 0.2), 0.2, p_adjusted=p)
        for name, p in (("y", 0.0501), ("z", 0.9))
    ]
    values = [state(name, value) for name, value in (("x", 0.3), ("y", 0.2), ("z", 0.2))]
    (conclusion,) = collect_conclusions(write_run(tmp_path, values, rows))
    assert "smallest p 0.0501" in conclusion.detail


def test_significant_conclusions_within_models_come_first_by_effect(tmp_path: Path) -> None:
    rows = [contrast("EASE", 0.05, significant=True), contrast("ALS", 0.3)]
    overall = {"metric": "nDCG", "k": 10, "name": "nDCG", "direction": "higher"}
    run = write_groups(tmp_path, *rows, models=["EASE", "ALS"])
    values = to_records(run.metrics)
    pair = compare("EASE", "ALS", (0.9, 0.1), 0.01, significant=True, effect_size=5.0)
    values += [state("EASE", 0.9), state("ALS", 0.1)]
    metrics = [overall, *run.manifest["metrics"]]
    conclusions = collect_conclusions(write_run(tmp_path, values, [*rows, pair], metrics))
    kinds = [conclusion.kind for conclusion in conclusions]
    assert kinds == ["groups", "models"]


def test_hostile_names_of_groups_are_escaped(tmp_path: Path) -> None:
    hostile = "<img src=x onerror=alert(1)>"
    row = contrast("a", 0.05, significant=True, a=hostile)
    run = write_groups(tmp_path, row, models=["a"])
    page = render_html(Content(run))
    assert "<img" not in page
    assert "&lt;img src=x" in page


def test_groups_with_too_many_pairs_have_the_test_of_all_groups_and_a_reason(
    tmp_path: Path,
) -> None:
    metric = BY_GENDER["metric"]
    gap = {**BY_GENDER, "metric": "nDCG(by=gender, gap=difference)"}
    gap |= {"parameters": {**BY_GENDER["parameters"], "gap": "difference"}}
    values = [state("a", n / 100, metric, group=f"gender={n}", n=9) for n in range(33)]
    values += [state("a", 0.32, gap["metric"])]
    anova = contrast("a", math.nan, test="welch_anova", metric=gap["metric"], significant=True)
    anova |= {"a": "gender=32", "b": "gender=0", "mean_a": 0.32, "mean_b": 0.0, "difference": 0.32}
    run = write_run(tmp_path, values, [anova], [BY_GENDER, gap])
    of_all, of_groups = collect_conclusions(run)
    assert (
        "differs, most between gender=32 (0.3200) and gender=0 (0.0000): by 0.32"
        in of_all.sentence
    )
    assert of_groups.sentence == (
        "nDCG@10 by gender: worst off is gender=0 for a (0.0000, 9 users)."
    )
    assert of_groups.detail == (
        "No test compares the groups in pairs: 528 pairs are more than 500. Set min_group or "
        "reference_group, or group by conditions."
    )


def test_the_model_with_the_largest_gap_leads_and_the_other_follows(tmp_path: Path) -> None:
    small = contrast("a", 0.01, effect_size=0.9, significant=True)
    large = contrast("b", 0.05, effect_size=0.5, significant=True, mean_b=0.35, difference=-0.15)
    large |= {"ci_low": -0.2, "ci_high": -0.1}
    run = write_groups(tmp_path, small, large, models=["a", "b"])
    values = to_records(run.metrics)
    for row in values:
        if row["model"] == "b" and row["group"] == "gender=M":
            row["value"] = 0.35
    run = write_run(tmp_path, values, [small, large], run.manifest["metrics"])
    (conclusion,) = collect_conclusions(run)
    assert conclusion.sentence == (
        "b: nDCG@10 by gender is 0.1500 lower for gender=F (0.2000) than for gender=M (0.3500), "
        "95% interval 0.1000 to 0.2000; a: 0.1000 lower."
    )
    assert (conclusion.model, conclusion.difference) == ("b", -0.15)
    assert "1 more is significant (a)" in conclusion.detail


def test_failed_checks_come_first(tmp_path: Path) -> None:
    run = write_groups(tmp_path, contrast("a", 0.05, significant=True), models=["a"])
    manifest: Any = run.manifest
    check: dict[str, Any] = {"dataset": "ml-1m", "model": "a"}
    check |= {"metric": "nDCG(by=gender, gap=difference)"}
    check |= {"k": 10, "group": "", "target": "", "value": 0.1, "ci_low": 0.05, "ci_high": 0.15}
    check |= {"limit": "at most 0.05", "verdict": "fails", "failed": True, "baseline": None}
    check |= {"basis": "interval"}
    passed = {**check, "failed": False, "verdict": "passes", "limit": "at most 0.5"}
    manifest["checks"] = [passed, check]
    first, others = split_conclusions(run)
    assert [item.kind for item in first] == ["check", "groups"]
    assert first[0].sentence == (
        "Check failed: a, nDCG@10, gap by gender: 0.1000 (95% interval 0.0500 to 0.1500); limit: "
        "at most 0.05."
    )
    manifest["checks"] = [check | {"model": f"m{n}"} for n in range(5)]
    collect_conclusions.cache_clear()
    first, others = split_conclusions(run)
    assert [item.kind for item in first] == ["check"] * 3 + ["groups"]
    assert [item.kind for item in others] == ["check"] * 2


def test_terminal_markdown_and_page_say_the_same_in_two_lines(tmp_path: Path) -> None:
    row = contrast("EASE", 0.05, p_adjusted=0.001, significant=True)
    run = write_groups(tmp_path, row, models=["EASE"])
    (conclusion,) = collect_conclusions(run)
    console = Console(width=1000)
    with console.capture() as printed:
        print_conclusions(*split_conclusions(run), console)
    assert printed.get().splitlines() == [f"* {conclusion.sentence}", f"  {conclusion.detail}"]
    lines = html.unescape(render_markdown(Content(run))).replace("\\", "").splitlines()
    assert f"- {conclusion.sentence}  " in lines  # two blanks end a line
    assert lines[lines.index(f"- {conclusion.sentence}  ") + 1] == f"  {conclusion.detail}"
    page = html.unescape(render_html(Content(run)))
    assert f"<li>{conclusion.sentence}<small>{conclusion.detail}</small></li>" in page
    (entry,) = json.loads(render_json(run))["conclusions"]
    assert (entry["sentence"], entry["detail"]) == (conclusion.sentence, conclusion.detail)
    assert (entry["correction"], entry["family"], entry["alpha"]) == ("bonferroni", "metric", 0.05)
