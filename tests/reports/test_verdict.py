from __future__ import annotations

import html
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from recbias.cli.output import show_verdict
from recbias.core.measures import CONTROL
from recbias.reports.conclusions import split_conclusions
from recbias.reports.render import Content, render_json, render_markdown
from recbias.reports.run import RunTables, to_records
from recbias.reports.tables import build_check_table
from recbias.reports.verdict import build_verdict, render_junit
from recbias.runs.tables import Run
from support.hand_worked_runs import (
    BY_GENDER,
    NDCG,
    compare,
    contrast,
    state,
    write_groups,
    write_run,
)

CHECK: dict[str, Any] = {
    "dataset": "ml-1m",
    "model": "a",
    "seed": "42",
    "fold": "0",
    "group": "",
    "target": "",
    "metric": "nDCG(by=gender, gap=difference)",
    "k": 10,
    "baseline": "",
    "value": 0.1,
    "ci_low": 0.05,
    "ci_high": 0.15,
    "limit": "at most 0.04",
    "verdict": "fail",
    "failed": True,
    "basis": "interval",
    "strict": False,
}
PASSED = {**CHECK, "limit": "at most 0.5", "verdict": "pass", "failed": False}
UNDECIDED = {**CHECK, "limit": "at most 0.1", "verdict": "undecided", "failed": False}
STOPPED = UNDECIDED | {"value": None, "ci_low": None, "ci_high": None, "basis": "failure"}
WITHOUT_VALUE = "nDCG gap by gender is undefined because a stage failed, limit at most 0.1"
FAILED = "nDCG gap by gender is 0.1000 [0.0500, 0.1500], limit at most 0.04"


def write_checks(folder: Path, *checks: dict[str, Any]) -> RunTables:
    """Return a run of two groups with a significant gap, with checks."""
    run = write_groups(folder, contrast("a", 0.05, significant=True), models=["a"])
    run.manifest["checks"] = [*checks]
    return run


@pytest.mark.parametrize(
    ("checks", "state", "line"),
    [
        (
            [PASSED, PASSED | {"value": 0.2}],
            "pass",
            (
                "PASS: 2 of 2 checks of a; largest nDCG gap by gender 0.2000 [0.0500, 0.1500], "
                "limit at most 0.5"
            ),
        ),
        (
            [PASSED],
            "pass",
            (
                "PASS: 1 of 1 check of a; nDCG gap by gender 0.1000 [0.0500, 0.1500], "
                "limit at most 0.5"
            ),
        ),
        ([PASSED, CHECK], "fail", f"FAIL: 1 of 2 checks failed: {FAILED}"),
        (
            [CHECK, UNDECIDED, CHECK],
            "fail",
            "FAIL: 2 of 3 checks failed, 1 undecided: nDCG gap by gender",
        ),
        (
            [UNDECIDED],
            "undecided",
            f"UNDECIDED: 1 of 1 check: {FAILED[:-4]}0.1",
        ),
        (
            [STOPPED],
            "undecided",
            f"UNDECIDED: 1 of 1 check: {WITHOUT_VALUE}",
        ),
    ],
)
def test_checks_are_judged_first(
    tmp_path: Path, checks: list[dict[str, Any]], state: str, line: str
) -> None:
    verdict = build_verdict(write_checks(tmp_path, *checks))
    assert (verdict.subject, verdict.state, verdict.line) == ("checks", state, line)
    assert len(verdict.tiles) == len(checks)


def test_a_smoke_test_is_said_to_be_one(tmp_path: Path) -> None:
    run = write_checks(tmp_path, PASSED)
    run.manifest["limit"] = 20
    few = build_verdict(run).small[0]
    assert few == "Smoke test: the first 20 queries only (--limit)."


def test_failed_checks_are_the_sentences_and_more_than_three_are_counted(tmp_path: Path) -> None:
    verdict = build_verdict(
        write_checks(tmp_path, *[CHECK | {"model": f"m{n}"} for n in range(4)])
    )
    assert verdict.sentences == (
        f"{FAILED.replace(' is', ' with m0 is')}.",
        f"{FAILED.replace(' is', ' with m1 is')}.",
        "2 more failed or undecided checks are in the table.",
    )


@pytest.mark.parametrize(
    ("checked", "line"),
    [
        ("xy", "PASS: 2 of 2 checks of x and y; baselines Random and MostPop not checked"),
        (["Random", "MostPop", "x", "y"], "PASS: 4 of 4 checks of 4 models"),
    ],
)
def test_a_passed_gate_says_which_models_it_is_about(
    tmp_path: Path, checked: Sequence[str], line: str
) -> None:
    run = write_models(tmp_path, "Random", "MostPop", "x", "y", Random=True, MostPop=True)
    run.manifest["checks"] = [PASSED | {"model": name, "metric": "nDCG"} for name in checked]
    assert build_verdict(run).line == line


def test_the_limit_of_a_difference_is_of_the_difference(tmp_path: Path) -> None:
    limit = {"metric": "nDCG", "baseline": "b", "limit": "not below b - 0.01"}
    (tile,) = build_verdict(write_checks(tmp_path, PASSED | limit)).tiles
    assert (tile.label, tile.note) == ("nDCG minus b", "limit at least -0.01")


def test_the_model_that_is_checked_leads_and_not_its_baseline(tmp_path: Path) -> None:
    rows = [
        contrast("old", 0.05, significant=True),
        contrast("new", 0.03, significant=True)
        | {"mean_a": 0.24, "difference": -0.06, "ci_low": -0.09, "ci_high": -0.03},
    ]
    run = write_groups(tmp_path, *rows, models=["old", "new"])
    run.manifest["checks"] = [PASSED | {"model": "new", "baseline": "old", "metric": "nDCG"}]
    assert (
        build_verdict(run)
        .sentences[0]
        .endswith("with new: by 0.0600 [0.0300, 0.0900]; also significant with old.")
    )


def test_a_passed_gate_is_followed_by_what_the_run_found(tmp_path: Path) -> None:
    verdict = build_verdict(write_checks(tmp_path, PASSED))
    assert verdict.sentences[0].startswith("nDCG is lower for gender=F (0.2000) than for gender=M")
    assert verdict.small == (
        "Welch's t-test, Bonferroni over one comparison, alpha 0.05: p 0.5, 100 users.",
    )


@pytest.mark.parametrize("baseline", ["old", ""])
def test_a_passed_gate_is_followed_by_what_has_become_worse(tmp_path: Path, baseline: str) -> None:
    gap = {"parameters": {"k": 10, "by": "gender", "gap": "difference"}, "direction": "lower"}
    metrics = [NDCG, BY_GENDER, {**BY_GENDER, **gap, "metric": CHECK["metric"]}]
    by, significant = BY_GENDER["metric"], {"significant": True}
    rows = [
        contrast("new", 0.05, significant=True),
        compare("old", "new", (0.2, 0.4), 0.01, **significant),
        compare("old", "new", (0.3, 0.2), 0.01, **significant, metric=by, group="gender=F"),
        compare("old", "new", (0.1, 0.9), 0.01, **significant, metric=by, group="gender=M"),
        compare("old", "new", (0.2, 0.7), 0.01, **significant, metric=CHECK["metric"]),
    ]
    values = [
        state(*item, row["metric"])
        for row in rows[1:]
        for item in (("old", row["mean_a"]), ("new", row["mean_b"]))
    ]
    run = write_run(tmp_path, values, rows, metrics)
    run.manifest["checks"] = [PASSED | {"model": "new", "baseline": baseline, "metric": "nDCG"}]
    losses = [
        "nDCG for gender=F is lower with new ",
        "new has a higher nDCG gap by gender than old",
    ]
    sentences = [*losses * bool(baseline), "nDCG differs between gender=F (0.2000) and gender=M"]
    found = build_verdict(run).sentences[: len(sentences)]
    for text, start in zip(found, sentences, strict=True):
        assert text.startswith(start)


def write_models(folder: Path, *names: str, **marks: bool) -> RunTables:
    """Return a run in which each model is significantly better than those before it."""
    values = {name: 0.1 * (at + 1) for at, name in enumerate(names)}
    rows = [
        compare(a, b, (values[a], values[b]), 0.05, p_adjusted=0.001, significant=True)
        for at, a in enumerate(names)
        for b in names[at + 1 :]
    ]
    run = write_run(folder, [state(*item) for item in values.items()], rows)
    run.manifest["models"] = [
        {"label": name, "name": name} | ({"is_baseline": marks[name]} if name in marks else {})
        for name in names
    ]
    return run


@pytest.mark.parametrize(
    ("names", "marks", "line"),
    [
        (
            ("Random", "MostPop", "x", "y"),
            {},
            "y has a higher nDCG than x: 0.4000 against 0.3000, a difference of 0.1000",
        ),
        (
            ("x", "y", "MostPop"),
            {},
            "y has a higher nDCG than x: 0.2000 against 0.1000, a difference of 0.1000",
        ),
        (
            ("MostPop", "x"),
            {},
            "x has a higher nDCG than the baseline MostPop: 0.2000 against 0.1000",
        ),
        (
            ("x", "MostPop"),
            {},
            "x has a lower nDCG than the baseline MostPop: 0.1000 against 0.2000",
        ),
        (("x", "MostPop"), {"MostPop": False}, "MostPop has a higher nDCG than x: 0.2000 against"),
        (
            ("MostPop", "x", "y", "z"),
            {"x": True},
            "z has a higher nDCG than y: 0.4000 against 0.3000",
        ),
        (("Random", "MostPop"), {}, "MostPop has a higher nDCG than Random: 0.2000 against"),
    ],
)
def test_baselines_are_not_the_subject(
    tmp_path: Path, names: tuple[str, ...], marks: dict[str, bool], line: str
) -> None:
    verdict = build_verdict(write_models(tmp_path, *names, **marks))
    assert (verdict.subject, verdict.state) == ("models", "none")
    assert all(len(text.split()) <= 25 for text in (verdict.line, *verdict.sentences))
    assert verdict.line.startswith(line)
    if names == ("x", "y", "MostPop"):  # it is better than all, which is said after the headline
        assert verdict.sentences[0].startswith(
            "y has a lower nDCG than the baseline MostPop: 0.2000"
        )


def test_the_best_model_is_better_than_the_others_and_the_baselines(tmp_path: Path) -> None:
    verdict = build_verdict(write_models(tmp_path, "Random", "MostPop", "x", "y", "z"))
    assert verdict.line == (
        "z has the highest nDCG, 0.5000, significantly better than x, y and the baselines."
    )
    assert [(tile.label, tile.note) for tile in verdict.tiles] == [("nDCG", "z")]
    assert Run(tmp_path)._repr_html_().startswith(f"<p><strong>{verdict.line}</strong></p>")


def test_groups_come_before_models(tmp_path: Path) -> None:
    row = contrast("EASE", 0.05, p_adjusted=0.001, significant=True)
    run = write_groups(tmp_path, row, contrast("ALS", 0.3), models=["EASE", "ALS"])
    values = [*to_records(run.metrics), state("EASE", 0.9), state("ALS", 0.1)]
    pair = compare("EASE", "ALS", (0.9, 0.1), 0.01, significant=True, effect_size=5.0)
    rows = [*to_records(run.significance), pair]
    metrics = [{"metric": "nDCG", "k": 10, "name": "nDCG", "direction": "higher"}]
    verdict = build_verdict(
        write_run(tmp_path, values, rows, [*metrics, *run.manifest["metrics"]])
    )
    assert verdict.subject == "groups"
    assert verdict.line.startswith(
        "nDCG is lower for gender=F (0.2000) than for gender=M (0.3000)"
    )
    assert verdict.sentences[0].startswith(
        "EASE has a higher nDCG than ALS: 0.9000 against 0.1000"
    )
    assert [tile.label for tile in verdict.tiles] == [
        "EASE: gap of nDCG by gender",
        "ALS: gap of nDCG by gender",
    ]
    assert verdict.tiles[0].value == "0.1000 [0.0500, 0.1500]"


def test_the_tile_of_a_gap_has_the_interval_of_the_gap(tmp_path: Path) -> None:
    """The interval of a pair is that of its test, and not that of ``metrics.csv`` and checks."""
    run = write_groups(tmp_path, contrast("EASE", 0.02, significant=True), models=["EASE"])
    gap = {**BY_GENDER, "metric": "nDCG(by=gender, gap=difference)"}
    gap["parameters"] = {"k": 10, "by": "gender", "gap": "difference"}
    row = state("EASE", 0.1, gap["metric"], ci_low=0.05, ci_high=0.15)
    values, tests = [*to_records(run.metrics), row], to_records(run.significance)
    (tile,) = build_verdict(write_run(tmp_path, values, tests, [BY_GENDER, gap])).tiles
    assert (tile.label, tile.value) == ("EASE: gap of nDCG by gender", "0.1000 [0.0500, 0.1500]")
    assert tile.note == "highest: gender=M, lowest: gender=F"  # the interval has no sign


def test_the_tile_of_a_named_pair_is_the_difference_that_is_tested(tmp_path: Path) -> None:
    pairs = {**BY_GENDER["parameters"], "pairs": [["F", "M"]]}
    metric = {**BY_GENDER, "parameters": pairs}
    run = write_groups(tmp_path, contrast("x", 0.3), models=["x"], metric=metric)
    (tile,) = build_verdict(run).tiles
    assert (tile.label, tile.note) == ("x: nDCG F minus M", "by gender")
    assert tile.value == "-0.1000 [-0.4000, 0.2000]"


def test_a_run_without_values_says_so(tmp_path: Path) -> None:
    verdict = build_verdict(write_run(tmp_path, [state("x", math.nan)], []))
    assert verdict.line == "nDCG is undefined for x."
    assert verdict.tiles == ()


@pytest.mark.parametrize(
    ("facts", "state", "line"),
    [
        (
            {"verdict": "holds", "p": 0.01},
            "pass",
            "The claim holds: A is higher than B, by 0.1000",
        ),
        (
            {"verdict": "not significant", "p": 0.2},
            "undecided",
            "The claim is not shown to hold: A is higher than B, by 0.1000",
        ),
        ({"verdict": "reversed", "p": 0.01}, "fail", "The claim is reversed: A is higher than B"),
        ({"verdict": "failed"}, "undecided", "The claim could not be tested: A is higher than B"),
    ],
)
def test_a_claim_comes_after_checks(
    tmp_path: Path, facts: dict[str, Any], state: str, line: str
) -> None:
    run = write_checks(tmp_path)
    claim = {"claim": "A is higher than B", "alpha": 0.05, "problem": "", "n": 10}
    claim |= {"estimate": 0.1, "ci_low": 0.05, "ci_high": 0.15}
    run.manifest["claim"] = claim | facts
    verdict = build_verdict(run)
    assert (verdict.subject, verdict.state) == ("claim", state)
    assert verdict.line.startswith(line)
    assert verdict.sentences[0].startswith("nDCG is lower for gender=F")


def test_junit_has_failures_skipped_cases_and_errors(tmp_path: Path) -> None:
    strict = UNDECIDED | {"strict": True, "failed": True}
    run = write_checks(tmp_path, CHECK, PASSED, UNDECIDED, strict, STOPPED)
    root = ET.fromstring(render_junit(run))
    (suite,) = root.findall("testsuite")
    expected = {"tests": "5", "failures": "2", "skipped": "1", "errors": "1"}
    for element in (root, suite):
        assert {name: element.get(name) for name in expected} == expected
    cases = suite.findall("testcase")
    tags = [["failure"], ["system-out"], ["skipped"], ["failure"], ["error"]]
    assert [[child.tag for child in case[1:]] for case in cases] == tags
    assert cases[0].get("name") == "nDCG gap by gender: at most 0.04 [ml-1m]"
    assert cases[0][0][0].get("value") == "nDCG(by=gender, gap=difference)@10"
    assert cases[0][1].get("message") == f"fail: {FAILED}"
    assert cases[4][1].get("message") == f"undecided: {WITHOUT_VALUE}"


def test_an_interval_has_the_digits_of_its_limit(tmp_path: Path) -> None:
    check = PASSED | {"ci_high": 0.1056712, "limit": "at most 0.10568"}
    table = build_check_table(write_checks(tmp_path, check))
    assert table is not None
    assert table.rows[0][3].text == "0.05000 to 0.10567"


def test_every_place_begins_with_the_same_verdict(tmp_path: Path) -> None:
    run = write_checks(tmp_path, PASSED, CHECK)
    verdict = build_verdict(run)
    printed = show_verdict(verdict, len(split_conclusions(run)[1]))
    shown = [verdict.line, *verdict.sentences, *verdict.small]
    listed = [f"- {text}" for text in verdict.sentences]
    assert [line.plain for line in printed] == [verdict.line, *listed, " ".join(verdict.small)]
    assert json.loads(render_json(run))["verdict"]["line"] == verdict.line
    assert ET.fromstring(render_junit(run)).get("name") == verdict.line
    (tmp_path / "manifest.json").write_text(json.dumps(run.manifest), encoding="utf-8")
    assert repr(Run(tmp_path)) == f"{verdict.line}\n{tmp_path}"
    markdown = html.unescape(render_markdown(Content(run))).replace("\\", "")
    assert all(markdown.index(line) < markdown.index("Data and settings") for line in shown)


@pytest.mark.parametrize(
    ("names", "line"),
    [
        (
            ["chat"],
            "Stating person=old changes the lists of chat more than repeating the neutral ",
        ),
        (["chat", "b"], "Stating person=old changes the lists of chat and b more than repeating "),
        (["a", "b", "c"], "Stating person=old changes the lists of a, b and c more than "),
    ],
)
def test_the_effect_of_a_stated_identity_names_every_model_that_has_it(
    tmp_path: Path, names: list[str], line: str
) -> None:
    metric: dict[str, Any] = {
        "metric": "identity_effect(label=person)",
        "k": 10,
        "name": "identity_effect",
    }
    metric |= {"direction": "zero", "parameters": {"k": 10, "label": "person"}}
    rows, effects = [], []
    for name in names:
        interval = {"ci_low": 0.2, "ci_high": 0.4}
        rows.append(state(name, 0.3, metric["metric"], group="person=old", **interval))
        effect = compare("person=old", CONTROL, (0.8, 0.5), 0.1, model=name, between="groups")
        effect |= {"metric": metric["metric"], "significant": True, "p_adjusted": 0.002}
        effects.append(effect)
    verdict = build_verdict(write_run(tmp_path, rows, effects, [metric]))
    assert verdict.line.startswith(line)
    assert verdict.line.endswith("by 0.3000 [0.2000, 0.4000].")
    assert len(verdict.line.split()) <= 25
    # 1 - 0.8 = 0.2 and 1 - 0.5 = 0.5
    assert verdict.sentences[0] == (
        f"Lists of {names[0]} for person=old have an overlap of 0.20 with the neutral list; the "
        "neutral prompt sampled again has 0.50."
    )
    tiles = [(tile.label, tile.note) for tile in verdict.tiles]
    assert tiles == [(f"{name}: identity effect", "person=old") for name in names]


def test_several_identities_are_counted_and_an_equal_effect_has_the_interval_of_its_value(
    tmp_path: Path,
) -> None:
    title = "identity_effect"
    rows = [
        compare(name, CONTROL, (effect, 0.0), 0.1, model=model, group=name, between="prompts")
        | {"metric": title, "significant": significant, "p_adjusted": 0.002}
        for model, name, effect, significant in (
            *(("chat", "person=old", 1.0, True), ("chat", "person=young", 0.6, True)),
            *(("b", "person=old", 0.4, True), ("b", "person=young", 0.1, False)),
        )
    ]
    rows[0] |= {"ci_low": math.nan, "ci_high": math.nan, "p": 0.001}
    metric = {"metric": title, "k": 10, "name": title, "direction": "zero"}
    values = [
        state("chat", 1.0, title, group="person=old", ci_low=0.7, ci_high=1.0),
        state("b", 0.4, title, group="person=old"),
    ]
    verdict = build_verdict(write_run(tmp_path, values, rows, [metric]))
    assert verdict.line == (
        "Stating each of 2 identities changes the lists of chat more than repeating the neutral "
        "prompt does, most person=old: by 1.0000 [0.7000, 1.0000]."
    )
    assert verdict.sentences[1] == "The same holds for 1 of 2 identities with b."
    assert verdict.tiles[0].value == "1.0000 [0.7000, 1.0000]"


def test_an_effect_below_the_control_keeps_its_sign(tmp_path: Path) -> None:
    effect = compare("person=old", CONTROL, (0.5, 0.8), 0.1, model="chat", between="groups")
    effect |= {"metric": "identity_effect", "significant": True, "p_adjusted": 0.002}
    metric = {"metric": "identity_effect", "k": 10, "name": "identity_effect", "direction": "zero"}
    stated = state("chat", -0.3, "identity_effect", group="person=old")
    (tile,) = build_verdict(write_run(tmp_path, [stated], [effect], [metric])).tiles
    assert (tile.value, tile.note) == ("-0.3000 [-0.4000, -0.2000]", "person=old")


def test_an_overlap_says_what_its_scale_is(tmp_path: Path) -> None:
    metric = {"metric": "list_overlap", "k": 10, "name": "list_overlap", "direction": "higher"}
    metric |= {"values": "0 to 1: 1 for identical lists, 0 for lists without a common item"}
    verdict = build_verdict(
        write_run(tmp_path, [state("chat", 0.2, "list_overlap")], [], [metric])
    )
    assert verdict.line == "List overlap is 0.2000 with chat (1 for identical lists)."
    assert verdict.tiles[0].note == "chat; 1 for identical lists"
