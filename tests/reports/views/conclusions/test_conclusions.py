from __future__ import annotations

import html
import json
import math
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from rich.console import Console
from scipy.stats import nct, t

from recbias.cli.output import print_conclusions
from recbias.reports.conclusions import (
    Conclusion,
    collect_conclusions,
    collect_questions,
    select_first,
    split_conclusions,
)
from recbias.reports.render import Content, render_html, render_json, render_markdown
from recbias.reports.run import read_run, to_records
from recbias.reports.tables import build_cards, tabulate_comparisons
from support.hand_worked_runs import (
    BY_GENDER,
    NDCG,
    compare,
    contrast,
    state,
    write_groups,
    write_run,
)
from support.run_folders import make_run


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


def test_no_conclusion_rests_on_the_exact_test_of_a_few_units(tmp_path: Path) -> None:
    row = compare("x", "y", (1.0, 0.0), 0.1, n=4, p_adjusted=0.03, significant=True)
    rows = [{**row, "test": "fisher_exact"}]
    run = write_run(tmp_path, [state("x", 1.0), state("y", 0.0)], rows)
    assert [item.kind for item in collect_conclusions(run)] == ["value"]


def test_tests_of_items_count_items(tmp_path: Path) -> None:
    sets = {"groups": {"of": "users"}, "targets": {"of": "items"}}
    metric = {"metric": "share", "name": "share", "k": None, "parameters": sets}
    rows = [
        compare("x", "y", (0.9, 0.1), 0.1, metric="share", k=None, target=target, p_adjusted=0.01)
        for target in ("accuracy", "predictions")
    ]
    names: dict[str, Any] = {"metric": "share", "k": None}
    values = [state(model, 0.5, target=row["target"], **names) for model in "xy" for row in rows]
    run = write_run(tmp_path, values, rows, [metric])
    units = pd.DataFrame([("share", "accuracy", "user"), ("share", "predictions", "item")])
    units.set_axis(["metric", "target", "unit"], axis=1).to_parquet(tmp_path / "per_unit.parquet")
    (question,) = collect_questions(run)
    assert question.units == {"accuracy": "user", "predictions": "item"}


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


def test_a_larger_family_detects_only_larger_differences(tmp_path: Path) -> None:
    detectable = []
    for size in (1, 10):
        row = compare("x", "y", (0.3, 0.31), 0.1, family_size=size)
        run = write_run(tmp_path / str(size), [state("x", 0.3), state("y", 0.31)], [row])
        detectable.append(collect_conclusions(run)[0].detectable)
    assert detectable[1] > detectable[0]


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


def test_one_model_may_differ_and_the_other_not(tmp_path: Path) -> None:
    rows = [contrast("a", 0.05, significant=True), contrast("b", 0.3)]
    (conclusion,) = collect_conclusions(write_groups(tmp_path, *rows, models=["a", "b"]))
    assert conclusion.sentence.startswith("a: nDCG@10 by gender is 0.1000 lower for gender=F")
    assert "No difference found for b; one of at least 0.4" in conclusion.detail


def test_many_models_without_a_gap_share_one_sentence(tmp_path: Path) -> None:
    names = ["a", "b", "c"]
    run = write_groups(tmp_path, *(contrast(name, 0.3) for name in names), models=names)
    (conclusion,) = collect_conclusions(run)
    assert conclusion.sentence.startswith(
        "No difference between gender=F and gender=M found in nDCG@10 by gender for any of 3 "
        "models; one of at least 0.4"
    )
    assert conclusion.detail.endswith("alpha 0.05: 3 tests, smallest p 0.5.")


def test_a_test_of_other_means_than_the_values_is_not_said_to_be_of_the_values(
    tmp_path: Path,
) -> None:
    row = contrast("a", 0.05, significant=True, mean_a=0.7, mean_b=0.8)
    (conclusion,) = collect_conclusions(write_groups(tmp_path, row, models=["a"]))
    assert "differs between gender=F (0.7000" in conclusion.sentence
    assert "the means that its test compares" in conclusion.sentence


def test_an_undefined_test_is_no_result(tmp_path: Path) -> None:
    row = contrast("a", math.nan, p=math.nan, p_adjusted=math.nan)
    (conclusion,) = collect_conclusions(write_groups(tmp_path, row, models=["a"]))
    assert conclusion.sentence == (
        "nDCG@10 by gender: no test between groups could be computed for a, so whether they "
        "differ is undefined: a group has fewer than two values, or all its values are equal."
    )
    assert math.isnan(conclusion.detectable)


def test_equal_values_have_no_detectable_difference(tmp_path: Path) -> None:
    row = compare("x", "y", (0.3, 0.3), 0.0, p_adjusted=1.0, effect_size=math.nan)
    run = write_run(tmp_path, [state("x", 0.3), state("y", 0.3)], [row])
    (conclusion,) = collect_conclusions(run)
    assert conclusion.sentence == (
        "No difference between x and y found in nDCG@10; all compared values are equal."
    )


def test_a_p_value_above_alpha_does_not_read_as_alpha(tmp_path: Path) -> None:
    rows = [
        compare("x", name, (0.3, 0.2), 0.2, p_adjusted=p)
        for name, p in (("y", 0.0501), ("z", 0.9))
    ]
    values = [state(name, value) for name, value in (("x", 0.3), ("y", 0.2), ("z", 0.2))]
    (conclusion,) = collect_conclusions(write_run(tmp_path, values, rows))
    assert "smallest p 0.0501" in conclusion.detail


def test_a_test_of_the_value_itself_names_no_undefined_means(tmp_path: Path) -> None:
    metric = {"metric": "R-RIPA", "k": None, "name": "R-RIPA", "direction": "zero"}
    test = contrast("a", 0.1, metric="R-RIPA", k=None, test="permutation", significant=True)
    test |= {"mean_a": math.nan, "mean_b": math.nan, "difference": 0.4}
    test |= {"ci_low": 0.3, "ci_high": 0.5, "p_adjusted": 0.001}
    run = write_run(tmp_path, [state("a", 0.4, "R-RIPA", k=None)], [test], [metric])
    conclusion = next(item for item in collect_conclusions(run) if item.kind == "groups")
    assert conclusion.sentence == (
        "a: R-RIPA of gender=F and gender=M is 0.4000 (95% interval 0.3000 to 0.5000)."
    )


def test_models_are_not_compared_again_in_large_groups(tmp_path: Path) -> None:
    grouped = {**BY_GENDER, "parameters": {**BY_GENDER["parameters"], "min_group": 20}}
    values = [state(name, value) for name, value in (("x", 0.3), ("y", 0.2))]
    values += [
        state(name, value, BY_GENDER["metric"], group="gender=F")
        for name, value in (("x", 0.3), ("y", 0.2))
    ]
    rows = [
        compare("x", "y", (0.3, 0.2), 0.05, significant=True, metric=metric, group=group)
        for metric, group in (("nDCG", ""), (BY_GENDER["metric"], "gender=F"))
    ]
    overall = {**NDCG, "parameters": {"k": 10}}
    conclusions = collect_conclusions(write_run(tmp_path, values, rows, [overall, grouped]))
    assert [item.metric for item in conclusions if item.kind == "models"] == ["nDCG@10"]


def test_one_model_without_tests_states_its_value_and_where_its_interval_lies(
    tmp_path: Path,
) -> None:
    metric = {"metric": "lift", "name": "popularity_lift", "k": 10, "direction": "zero"}
    row = state("mine", 0.2, "lift", ci_low=0.1, ci_high=0.3, undefined=3)
    (conclusion,) = collect_conclusions(write_run(tmp_path, [row], metrics=[metric]))
    assert conclusion.sentence == (
        "lift@10: mine has 0.2000 (95% interval 0.1000 to 0.3000), an interval above 0."
    )
    assert conclusion.detail == "Nearer to 0 is better: 100 users, undefined for 3."


def test_models_that_no_test_compares_are_not_ranked(tmp_path: Path) -> None:
    values = [state("a", 0.1), state("b", 0.3), state("c", None)]
    (conclusion,) = collect_conclusions(write_run(tmp_path, values))
    assert conclusion.sentence == "nDCG@10: a 0.1000, b 0.3000; undefined for c."
    assert conclusion.detail == "No test compares the models."


def test_that_no_test_compares_the_models_is_said_once(tmp_path: Path) -> None:
    values = [state(model, 0.1, name) for name in ("nDCG", "HR", "MRR") for model in ("a", "b")]
    details = [item.detail for item in collect_conclusions(write_run(tmp_path, values))]
    assert details == ["No test compares the models, here and in the conclusions below.", "", ""]


def test_values_that_are_undefined_for_all_are_said_to_be(tmp_path: Path) -> None:
    (conclusion,) = collect_conclusions(write_run(tmp_path, [state("a", None)]))
    assert conclusion.sentence == "nDCG@10: undefined for a."


def test_a_run_without_values_has_no_conclusions(tmp_path: Path) -> None:
    assert split_conclusions(write_run(tmp_path, [])) == ([], [])


def make_conclusion(number: int, kind: str, n_significant: int) -> Conclusion:
    facts = {"kind": kind, "n_significant": n_significant}
    return Conclusion(metric=str(number), dataset="", sentence="", **facts)  # type: ignore[arg-type]


def test_the_first_conclusions_include_some_within_models() -> None:
    conclusions = [make_conclusion(number, "models", 1) for number in range(12)]
    conclusions += [make_conclusion(number, "groups", 0) for number in (12, 13, 14)]
    chosen = [int(item.metric) for item in select_first(conclusions)]
    assert chosen == [0, 1, 2, 3, 4, 5, 12, 13]


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


def test_a_comparison_of_one_fold_names_the_fold(tmp_path: Path) -> None:
    run = write_groups(tmp_path, contrast("a", 0.3), models=["a"])
    values = [row | {"fold": fold} for fold in ("1", "2") for row in to_records(run.metrics)]
    run = write_run(tmp_path, values, [contrast("a", 0.3)], run.manifest["metrics"])
    (conclusion,) = collect_conclusions(run)
    assert "found in nDCG@10 by gender, fold 1 for a" in conclusion.sentence


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


def test_a_significant_ratio_of_the_groups_is_not_hidden(tmp_path: Path) -> None:
    metrics, values, tests = [], [], []
    for gap, significant in (("difference", False), ("ratio", True)):
        name = f"nDCG(by=gender, gap={gap})"
        settings = {"k": 10, "by": "gender", "gap": gap}
        metrics.append({**NDCG, "metric": name, "parameters": settings, "direction": "lower"})
        values += [state("x", 0.05, name), state("y", 0.06, name)]
        p = 0.0001 if significant else 0.2
        tests.append(
            compare(
                *("x", "y"),
                (0.05, 0.06),
                0.02,
                metric=name,
                test="paired_bootstrap",
                p_adjusted=p,
                significant=significant,
            )
        )
    (conclusion, *_) = collect_conclusions(write_run(tmp_path, values, tests, metrics))
    assert conclusion.sentence.startswith("No difference between x and y found in nDCG@10, gap")
    assert conclusion.sentence.endswith("such runs. The ratio of the groups differs (p 0.0001).")


def test_crossings_and_hidden_blanks_are_readable_in_sentences_and_cards(tmp_path: Path) -> None:
    by = "gender & age < 25"
    metric = {**BY_GENDER, "metric": f"nDCG(by={by})"}
    metric |= {"parameters": {**BY_GENDER["parameters"], "by": by}}
    groups = ("gender=F&age < 25", "gender=F &age < 25")
    values = [
        state("a", value, metric["metric"], group=group)
        for group, value in zip(groups, (0.2, 0.3), strict=True)
    ]
    row = contrast("a", 0.05, significant=True, metric=metric["metric"], a=groups[0], b=groups[1])
    run = write_run(tmp_path, values, [row], [metric])
    (conclusion,) = collect_conclusions(run)
    assert "for gender=F and age < 25 (0.2000) than for gender='F ' and" in conclusion.sentence
    assert "Worst off: gender=F and age < 25 (100 users)" in conclusion.detail
    assert conclusion.a == groups[0]
    (card,) = build_cards(run)
    column = [item.title for item in card.groups.columns].index("group")
    texts = [cells[column].text for cells in card.groups.rows]
    assert texts == ["gender=F&age < 25", "gender='F '&age < 25"]


def test_failed_checks_come_first(tmp_path: Path) -> None:
    run = write_groups(tmp_path, contrast("a", 0.05, significant=True), models=["a"])
    manifest: Any = run.manifest
    check: dict[str, Any] = {"dataset": "ml-1m", "model": "a"}
    check |= {"metric": "nDCG(by=gender, gap=difference)"}
    check |= {"k": 10, "group": "", "target": "", "value": 0.1, "ci_low": 0.05, "ci_high": 0.15}
    check |= {"line": "at most 0.05", "verdict": "fails", "failed": True, "baseline": None}
    check |= {"basis": "interval"}
    passed = {**check, "failed": False, "verdict": "passes", "line": "at most 0.5"}
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


def test_a_sentence_is_short(tmp_path: Path) -> None:
    conclusions = collect_conclusions(read_run(make_run(tmp_path)))
    assert max(len(item.sentence) for item in conclusions) < 250
    assert all("alpha" not in item.sentence for item in conclusions)
    assert all("alpha 0.05" in item.detail for item in conclusions if item.kind != "value")
