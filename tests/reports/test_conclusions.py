from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from scipy.stats import nct, t

from recbias.core.measures import SERVED, Direction
from recbias.reports.conclusions import collect_conclusions, split_conclusions
from recbias.reports.run import to_records
from recbias.reports.tables import build_group_tables, tabulate_comparisons
from recbias.reports.views import Definition, find_worst_groups
from support.hand_worked_runs import (
    BY_GENDER,
    NDCG,
    compare,
    contrast,
    state,
    write_groups,
    write_run,
)


def test_a_table_has_the_groups_and_the_gap_with_its_test(tmp_path: Path) -> None:
    row = contrast("EASE", 0.05, p=0.0005, p_adjusted=0.001, significant=True)
    (table,) = build_group_tables(write_groups(tmp_path, row, models=["EASE"]))
    titles = [column.title for column in table.columns]
    assert titles == ["model", "F (n 40)", "M (n 60)", "gap"]
    (row_of_ease,) = table.rows
    assert [cell.text for cell in row_of_ease] == ["EASE", "0.2000", "0.3000", "0.1000"]
    assert [cell.mark for cell in row_of_ease] == ["", "w", "", "*"]
    # The gap is that of the higher group less the lower: -(0.2 - 0.3) = 0.1, ± 0.05.
    assert row_of_ease[-1].interval == "0.0500 to 0.1500"
    assert row_of_ease[-1].note.startswith("gender=M less gender=F, 95% interval 0.0500 to 0.15")
    assert "Welch's t-test, Bonferroni over one comparison" in table.notes[-1]


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
    (table,) = build_group_tables(write_run(tmp_path, values, tests, [BY_GENDER]))
    titles = [column.title for column in table.columns]
    assert titles == ["model", "F (n 38)", "M (n 60)", "gap"]
    assert "n counts the units of each seed" in table.notes[-1]


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
    assert conclusion.sentence.startswith("nDCG is lower for gender=F (0.2000) than for gender=M")
    assert conclusion.worst == ("gender=F",)


def test_two_models_that_differ_name_the_better_one(tmp_path: Path) -> None:
    row = compare("x", "y", (0.2, 0.5), 0.1, p_adjusted=0.004, significant=True)
    run = write_run(tmp_path, [state("x", 0.2), state("y", 0.5)], [row])
    (conclusion,) = collect_conclusions(run)
    # y less x: 0.5 - 0.2 = 0.3, and 0.3 ± 0.1
    assert conclusion.sentence == (
        "y has a higher nDCG than x: 0.5000 against 0.2000, "
        "a difference of 0.3000 [0.2000, 0.4000]."
    )
    assert conclusion.detail == (
        "Paired t-test, Bonferroni over one comparison, alpha 0.05: p 0.004, 100 users. Higher "
        "is better."
    )


def test_another_level_than_95_of_an_interval_is_said(tmp_path: Path) -> None:
    row = compare("x", "y", (0.2, 0.5), 0.1, p_adjusted=0.004, significant=True, alpha=0.01)
    run = write_run(tmp_path, [state("x", 0.2), state("y", 0.5)], [row])
    (conclusion,) = collect_conclusions(run)
    assert "alpha 0.01: p 0.004, 100 users, 99% interval." in conclusion.detail


def test_two_models_without_a_difference_state_what_could_have_been_detected(
    tmp_path: Path,
) -> None:
    row = compare("x", "y", (0.30, 0.31), 0.1, p_adjusted=0.8)
    run = write_run(tmp_path, [state("x", 0.30), state("y", 0.31)], [row])
    (conclusion,) = collect_conclusions(run)
    # x less y: 0.30 - 0.31 = -0.01, and -0.01 ± 0.1
    assert conclusion.sentence == "No significant difference in nDCG between x and y was found."
    # Half width 0.1 = t(0.975; 99) se, so se = 0.1 / 1.9842 = 0.0504. About (1.98 + 0.84) se.
    error = 0.1 / t.ppf(0.975, 99)
    assert conclusion.detectable == pytest.approx(2.83 * error, rel=0.005)
    power = nct.sf(t.ppf(0.975, 99), 99, conclusion.detectable / error)
    assert power == pytest.approx(0.8, abs=1e-6)
    assert conclusion.detail == (
        "Paired t-test, Bonferroni over one comparison, alpha 0.05: p 0.8, 100 users. A "
        f"difference of {conclusion.detectable:.4f} or more would have been detected in 80 of 100 "
        "such runs. "
        "Difference -0.0100 [-0.1100, 0.0900]."
    )


@pytest.mark.parametrize(
    ("significant", "text"),
    [
        (
            (True, True),
            "z has the highest nDCG, 0.5000, significantly better than x and y.",
        ),
        ((True, False), "z has the highest nDCG, 0.5000, but is not shown to be better than y."),
        ((False, False), "No significant difference in nDCG between the 3 models was found."),
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
    assert conclusion.sentence.startswith(text)
    assert ("Smallest difference 0.1000 [-0.1000, 0.3000], from y." in conclusion.detail) == all(
        significant
    )


NEAREST = {"metric": "nDCG", "k": 10, "name": "nDCG", "direction": "zero"}


def state_around(model: str, value: float) -> dict[str, Any]:
    return state(model, value, ci_low=value - 0.02, ci_high=value + 0.02)


def test_values_on_opposite_sides_of_0_are_not_nearer_because_they_differ(tmp_path: Path) -> None:
    """-0.06 and 0.04 differ by 0.1 ± 0.02; |-0.06| - |0.04| = 0.02 is within 0.02 + 0.02."""
    values = [state_around("x", -0.06), state_around("y", 0.04), state_around("z", 0.5)]
    sure = {"significant": True, "p_adjusted": 0.001}
    pair = compare("x", "y", (-0.06, 0.04), 0.02, **sure)
    rows = [
        pair,
        *(compare(a, "z", (v, 0.5), 0.02, **sure) for a, v in (("x", -0.06), ("y", 0.04))),
    ]
    (conclusion,) = collect_conclusions(write_run(tmp_path / "three", values, rows, [NEAREST]))
    assert conclusion.sentence == (
        "y has the nDCG nearest to 0, 0.0400, but is not shown to be better than x."
    )
    reason = (
        "Paired t-test, Bonferroni over one comparison, alpha 0.05: p 0.001, 100 users, of the "
        "signed difference -0.1000 [-0.1200, -0.0800]; distances from 0 differ only if the sum, "
        "-0.0200 ± 0.0400, is not 0 either."
    )
    assert conclusion.detail == f"{reason} Nearer to 0 is better."
    (conclusion,) = collect_conclusions(write_run(tmp_path / "two", values[:2], [pair], [NEAREST]))
    assert conclusion.sentence == (
        "No model is shown to have its nDCG nearer to 0 than another: x -0.0600 and y 0.0400."
    )
    assert conclusion.detail == reason


def test_without_the_interval_of_the_sum_models_differ_and_none_is_said_to_be_equal(
    tmp_path: Path,
) -> None:
    metric, means = "gini_difference", {"x": -0.2, "y": -0.02}
    values = [state_around(*item) | {"metric": metric} for item in means.items()]
    values[0]["n"] = 90
    values += [state(*item, metric, group=SERVED, n=70) for item in means.items()]
    pairs = [
        compare("x", "y", (-0.2, -0.02), 0.01, group=group, significant=True, metric=metric)
        for group in ("", SERVED)
    ]
    metrics = [{**NEAREST, "metric": metric, "name": metric}]
    (conclusion,) = collect_conclusions(write_run(tmp_path, values, pairs, metrics))
    assert conclusion.sentence == (
        "For the 70 of 100 users with lists of all models, popularity bias (Gini) differs between "
        "models: x -0.2000 and y -0.0200."
    )
    assert conclusion.more[0].startswith(
        "Over all users with a value, y has its popularity bias (Gini) nearer to 0 than x: -0.0200"
    )
    assert conclusion.detail.endswith("; whether distances from 0 differ is not known.")


def test_the_best_model_is_the_best_beside_a_better_baseline(tmp_path: Path) -> None:
    values = {"Random": 0.9, "x": 0.1, "y": 0.2, "z": 0.5}
    sure = {"significant": True, "p_adjusted": 0.001}
    rows = [
        compare(a, b, (values[a], values[b]), 0.01, **sure)
        for a in values
        for b in values
        if a < b
    ]
    run = write_run(tmp_path, [state(*item) for item in values.items()], rows)
    run.manifest["models"] = [{"label": name, "name": name} for name in values]
    (conclusion,) = collect_conclusions(run)
    assert conclusion.sentence.startswith("Baselines aside, z has the highest nDCG, 0.5000, sign")
    assert conclusion.more[0].startswith("z has a lower nDCG than the baseline Random: 0.5000")


def compare_equal_differences(n: int, significant: bool) -> dict[str, Any]:
    """Return the comparison of two models that differ by 0.05 for each of n users."""
    p = 2.0 ** (1 - n)
    method = {"n": n, "p": p, "p_adjusted": p, "significant": significant}
    return compare("x", "y", (0.5, 0.45), math.nan, effect_size=math.nan, **method)


def test_equal_differences_of_few_users_are_said_to_be_too_few(tmp_path: Path) -> None:
    row = compare_equal_differences(4, significant=False)
    run = write_run(tmp_path, [state("x", 0.5), state("y", 0.45)], [row])
    (conclusion,) = collect_conclusions(run)
    said = "is 0.0500 higher for x than for y in each of 4 users, too few for significance."
    assert conclusion.sentence.endswith(said)


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
    assert "Smallest difference 0.0500, from y." in conclusion.detail


def test_groups_that_differ_name_both_groups_and_the_worst_off(tmp_path: Path) -> None:
    row = contrast("EASE", 0.05, p_adjusted=0.001, significant=True)
    (conclusion,) = collect_conclusions(write_groups(tmp_path, row, models=["EASE"]))
    assert conclusion.sentence == (
        "nDCG is lower for gender=F (0.2000) than for gender=M (0.3000) with EASE: by 0.1000 "
        "[0.0500, 0.1500]."
    )
    assert conclusion.detail == (
        "Welch's t-test, Bonferroni over one comparison, alpha 0.05: p 0.001, 100 users."
    )
    assert (conclusion.kind, conclusion.worst) == ("groups", ("gender=F",))


def test_a_metric_without_a_direction_has_no_worst_group(tmp_path: Path) -> None:
    metric = {**BY_GENDER, "direction": "none", "group_direction": "none"}
    values = [
        state("a", value, metric["metric"], group=f"gender={gender}", n=9)
        for gender, value in (("F", 0.2), ("M", 0.3))
    ]
    (conclusion,) = collect_conclusions(write_run(tmp_path, values, [], [metric]))
    assert conclusion.sentence == (
        "nDCG is highest for gender=M with a: 0.3000 and lowest for gender=F with a: 0.2000."
    )


def test_groups_with_too_many_pairs_have_the_test_of_all_groups(
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
        "differs, most between gender=32 (0.3200) and gender=0 (0.0000) with a: by 0.32"
        in of_all.sentence
    )
    assert of_groups.sentence == "nDCG is worst for gender=0 with a: 0.0000."
    assert of_groups.detail == "No test compares the groups."


def test_models_with_the_same_gap_are_counted_and_the_largest_is_named(tmp_path: Path) -> None:
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
        "nDCG is lower for gender=F than for gender=M with both models, most with b: by 0.1500 "
        "[0.1000, 0.2000]."
    )
    assert (conclusion.model, conclusion.difference) == ("b", -0.15)


def test_no_model_has_most_of_equal_gaps(tmp_path: Path) -> None:
    equal = [contrast(name, 0.01, significant=True) for name in "ab"]
    run = write_groups(tmp_path, *equal, models=["a", "b"])
    sentence = collect_conclusions(run)[0].sentence
    assert sentence.startswith("nDCG is lower for gender=F than for gender=M with both models: by")


@pytest.mark.parametrize(
    ("changes", "ending"),
    [
        ({}, "[0.0500, 0.1500]; also significant with b."),
        ({"a": "gender=M", "b": "gender=X"}, "; other differences are significant with b."),
        ({"difference": 0.01}, "; other differences are significant with b."),
    ],
)
def test_a_model_with_another_difference_is_not_said_to_have_this_one(
    tmp_path: Path, changes: dict[str, Any], ending: str
) -> None:
    large = contrast("a", 0.05, significant=True)
    own = contrast("b", 0.005, significant=True, difference=-0.01) | changes
    other = contrast("b", 0.05, a="gender=X", b="gender=Y", difference=0.09, significant=True)
    run = write_groups(tmp_path, large, own, other, models=["a", "b"])
    sentence = collect_conclusions(run)[0].sentence
    assert sentence.startswith("nDCG is lower for gender=F (0.2000) than for gender=M (0.3000)")
    assert sentence.endswith(ending)


def test_the_answer_for_the_queries_of_all_models_has_their_numbers(tmp_path: Path) -> None:
    values = [state(name, value) for name, value in (("x", 0.4), ("y", 0.41))]
    values += [state(name, 0.5, group=SERVED, n=40) for name in "xy"]
    rows = [
        compare("x", "y", (0.4, 0.41), 0.05),
        compare("x", "y", (0.5, 0.53), 0.08, group=SERVED, n=40, p_adjusted=0.7),
    ]
    (conclusion,) = collect_conclusions(write_run(tmp_path, values, rows))
    none = "no significant difference in nDCG between x and y was found."
    assert conclusion.sentence == f"For the 40 of 100 users with lists of all models, {none}"
    assert conclusion.more == (f"Over all 100 users, {none}",)
    assert "p 0.7, 40 users" in conclusion.detail
    assert conclusion.detail.endswith("Difference -0.0300 [-0.1100, 0.0500].")


def test_a_baseline_with_a_better_value_is_named_for_every_metric(tmp_path: Path) -> None:
    gini = {"metric": "Gini", "k": 10, "name": "Gini", "direction": "lower"}
    values = [state(*item, "Gini") for item in (("Random", 0.1), ("x", 0.5), ("y", 0.6))]
    run = write_run(tmp_path / "untested", values, (), [gini])
    run.manifest["models"] = [{"label": name, "name": name} for name in ("Random", "x", "y")]
    (conclusion,) = collect_conclusions(run)
    assert conclusion.sentence == (
        "x has the lowest Gini index, 0.5000, against y 0.6000; the baseline Random has 0.1000."
    )
    rows = [
        compare(a, b, means, 0.05, metric="Gini", significant=True)
        for a, b, means in (
            ("Random", "x", (0.1, 0.5)),
            ("Random", "y", (0.1, 0.6)),
            ("x", "y", (0.5, 0.6)),
        )
    ]
    run = write_run(tmp_path / "tested", values, rows, [gini])
    run.manifest["models"] = [{"label": name, "name": name} for name in ("Random", "x", "y")]
    (conclusion,) = collect_conclusions(run)
    assert conclusion.more[0].startswith(
        "x has a higher Gini index than the baseline Random: 0.5000 against 0.1000"
    )


@pytest.mark.parametrize("corrected", [None, False])
def test_unchecked_labels_say_how_wrong_they_would_have_to_be(
    tmp_path: Path, corrected: bool | None
) -> None:
    """0.3 against 0.2, by 0.1 (0.05 to 0.15): 0.05 / 0.8 and 0.05 / 0.3, and twice that for 0."""
    row = contrast("EASE", 0.05, p=0.0005, p_adjusted=0.001, significant=True)
    settings = {"label": "judge.gender", "corrected": corrected, "by": "gender"}
    metric = {**BY_GENDER, "name": "REC-ST", "parameters": settings}
    run = write_groups(tmp_path, row, models=["EASE"], metric=metric)
    (conclusion,) = collect_conclusions(run)
    text = conclusion.detail
    assert ("People did not check the labels" in text) == (corrected is None)
    if corrected is None:
        assert "6.2% more of the items without one are labelled wrongly for gender=M than" in text
        assert "or 16.7% more of those with one are missed for gender=F" in text
        assert "it is 0 at 12.5% or 33.3%." in text


def test_groups_are_compared_before_models_within_a_group_and_never_baselines(
    tmp_path: Path,
) -> None:
    names, metric = ("Random", "MostPop", "x"), BY_GENDER["metric"]
    label = {"metric": metric, "group": "gender=F", "significant": True, "effect_size": 9.0}
    metrics = [{**BY_GENDER, "direction": "none", "group_direction": "none"}]
    for own, sentence in (
        ([], "nDCG for gender=F is higher with x (0.5000) than with the baseline MostPop"),
        ([contrast("x", 0.3)], "No significant difference in nDCG between gender=F and gender=M"),
    ):
        rows = [
            *own,
            *(contrast(name, 0.05, significant=True) for name in names[:2] if own),
            compare("Random", "MostPop", (0.9, 0.0), 0.01, **label),
            compare("MostPop", "x", (0.0, 0.5), 0.01, **label),
        ]
        run = write_groups(tmp_path / str(len(own)), *rows, models=names, metric=metrics[0])
        run.manifest["models"] = [{"label": name, "name": name} for name in names]
        first, *others = split_conclusions(run)[0]
        assert first.sentence.startswith(sentence)
        assert (first.n_tests, others) == (1, [])


def test_a_significant_answer_on_groups_follows_that_on_a_named_pair(tmp_path: Path) -> None:
    pairs = {**BY_GENDER["parameters"], "by": "age", "pairs": [["1", "2"]]}
    by_age = {**BY_GENDER, "metric": "nDCG(by=age)", "parameters": pairs}
    by_job = {**by_age, "metric": "nDCG(by=job)", "parameters": {**pairs, "by": "job"}}
    del by_job["parameters"]["pairs"]
    rows = [
        contrast("x", 0.3, metric="nDCG(by=job)", a="job=1", b="job=2"),
        contrast("MostPop", 0.01, metric="nDCG(by=job)", a="job=1", b="job=2", significant=True),
        contrast("x", 0.05, significant=True, effect_size=0.1),
        contrast("x", 0.3, metric="nDCG(by=age)", a="age=1", b="age=2"),
        compare("x", "y", (0.5, 0.1), 0.01, significant=True, effect_size=9.0),
    ]
    titles = ["nDCG", *(row["metric"] for row in rows[1:4])]
    means = {"MostPop": 0.0, "x": 0.5, "y": 0.1}
    values = [state(*item, title) for item in means.items() for title in titles]
    run = write_run(tmp_path, values, rows, [NDCG, by_job, BY_GENDER, by_age])
    run.manifest["models"] = [{"label": name, "name": name} for name in means]
    first, others = split_conclusions(run)
    assert [item.metric for item in first] == [
        *("nDCG(by=age)@10", "nDCG(by=gender)@10", "nDCG@10")
    ]
    assert [item.n_significant for item in others] == [0]  # a baseline alone has a difference


def test_of_several_pairs_the_power_is_that_of_one_which_is_named(tmp_path: Path) -> None:
    rows = [
        contrast("x", half, a=f"gender={a}", b=f"gender={b}", p=p, p_adjusted=p)
        for a, b, half, p in (("F", "M", 0.3, 0.2), ("F", "X", 0.9, 0.7))
    ]
    (conclusion,) = collect_conclusions(write_groups(tmp_path, *rows, models=["x"]))
    assert "or more between gender=F and gender=M with x would have been" in conclusion.detail
    assert "p 0.2, 100 users" in conclusion.detail


@pytest.mark.parametrize("name", ["nDCG", "APLT"])
def test_empty_lists_that_count_as_0_are_said_of_groups(tmp_path: Path, name: str) -> None:
    metric = {**BY_GENDER, "name": name}
    run = write_groups(tmp_path, contrast("x", 0.3), models=["x"], metric=metric)
    values = [state("x", 0.2, n=60), state("x", 0.4, group=SERVED, n=20), *to_records(run.metrics)]
    metrics = [{**NDCG, "name": name, "parameters": {"k": 10}}, metric]
    run = write_run(tmp_path, values, to_records(run.significance), metrics)
    (conclusion,) = (item for item in collect_conclusions(run) if item.kind == "groups")
    said = "; 40 of 60 users lack a list of some model."
    assert conclusion.sentence.endswith(said) == (name == "nDCG")
    assert ("p 0.5, 100 users; a missing list counts" in conclusion.detail) == (name == "nDCG")


def test_opposite_differences_of_two_models_are_said_to_be_opposite(tmp_path: Path) -> None:
    metric = {**BY_GENDER, "direction": "none", "group_direction": "none"}
    rows = [
        compare("x", "y", means, 0.01, metric=metric["metric"], group=group, significant=True)
        for group, means in (("gender=F", (0.2, 0.5)), ("gender=M", (0.3, 0.1)))
    ]
    (conclusion,) = collect_conclusions(
        write_groups(tmp_path, *rows, models=["x", "y"], metric=metric)
    )
    assert conclusion.sentence == (
        "nDCG for gender=F is lower with x (0.2000) than with y (0.5000): by 0.3000 [0.2900, "
        "0.3100]; it is higher for gender=M."
    )
    assert conclusion.detail.endswith("2 of 2 tests are significant, in both directions.")


def test_opposite_differences_within_two_models_are_said_to_be_opposite(tmp_path: Path) -> None:
    rows = [
        contrast("x", 0.01, significant=True),
        contrast("y", 0.01, significant=True, difference=0.05, mean_b=0.15),
    ]
    (conclusion,) = collect_conclusions(write_groups(tmp_path, *rows, models=["x", "y"]))
    assert conclusion.sentence.endswith("; the opposite holds with y.")


def test_the_shares_behind_an_association_are_called_shares(tmp_path: Path) -> None:
    title = "association(label=gender, attribute=genre)"
    metric = {**NDCG, "metric": title, "name": "association", "direction": "zero"}
    test = contrast("x", 0.01, metric=title, target="genre=War", significant=True)
    values = [state("x", 1.2, title, group="gender=F", target="genre=War")]
    (conclusion,) = collect_conclusions(write_run(tmp_path, values, [test], [metric]))
    assert conclusion.sentence == (
        "Share of positions for genre=War (association) is lower for gender=F (0.2000) than for "
        "gender=M (0.3000) with x: by 0.1000 [0.0900, 0.1100]."
    )


def test_a_test_without_means_says_what_it_and_the_interval_are_of(tmp_path: Path) -> None:
    metric = {**NDCG, "metric": "R-RIPA", "name": "R-RIPA", "direction": "zero"}
    unknown = {"metric": "R-RIPA", "mean_a": math.nan, "mean_b": math.nan}
    test = contrast("x", 0.01, **unknown, difference=0.1, ci_low=0.09, ci_high=0.11)
    test["significant"] = True
    run = write_run(tmp_path, [state("x", 0.1, "R-RIPA")], [test], [metric])
    (conclusion,) = collect_conclusions(run)
    assert conclusion.sentence == (
        "R-RIPA of gender=F and gender=M is 0.1000 [0.0900, 0.1100] with x, more than by chance."
    )
    assert "the test permutes the groups, and the interval is of the value" in conclusion.detail


@pytest.mark.parametrize(("other", "mark"), [(0.25, "*"), (0.9, "")])
def test_the_star_of_a_named_pair_stands_at_the_gap_of_this_pair_only(
    tmp_path: Path, other: float, mark: str
) -> None:
    pairs = {**BY_GENDER["parameters"], "pairs": [["F", "M"]]}
    run = write_groups(tmp_path, contrast("x", 0.05, significant=True), models=["x"])
    values = [*to_records(run.metrics), state("x", other, BY_GENDER["metric"], group="gender=X")]
    metrics = [{**BY_GENDER, "parameters": pairs}]
    run = write_run(tmp_path, values, to_records(run.significance), metrics)
    (table,) = build_group_tables(run)
    assert table.rows[0][-1].mark == mark
    assert "*: significant (only the named pairs are tested; Welch's t-test" in table.notes[-1]
