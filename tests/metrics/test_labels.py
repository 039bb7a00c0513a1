"""Metrics of labels that people checked for some of the items: values, gaps, tests, checks."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import recbias
from recbias.core.context import collect_warnings
from recbias.core.dataset import Attributes
from recbias.core.errors import MissingEvidence, NothingLeft, OutOfRange, UnknownColumn
from recbias.core.evidence import Evidence
from recbias.core.measures import Measurement
from recbias.data.demo import Demo
from recbias.data.movielens import MovieLens1M
from recbias.detectors.names import Names
from recbias.metrics.labels import (
    CatalogueCounts,
    CohenKappa,
    HitBad,
    KrippendorffAlpha,
    LabelAccuracy,
    LabelledItems,
    MrrBad,
    RecST,
)
from recbias.runner.stages import LoadDataset
from recbias.runs.power import count_labels
from support.worlds.evidence_worlds import (
    make_evidence,
    make_lists,
    make_user_queries,
    make_vocabulary,
)
from support.worlds.small_worlds import make_interactions

NAN = math.nan

# item:    0    1    2    3    4    5    6
# label:   1    0    1    0    -    0    1     graded: 0.9 0.2 0.5 0 - 0.1 1
LABEL = [1.0, 0.0, 1.0, 0.0, NAN, 0.0, 1.0]
GRADE = [0.9, 0.2, 0.5, 0.0, NAN, 0.1, 1.0]


def make_catalogue(**columns: Any) -> Attributes:
    frame = pd.DataFrame({"bad": LABEL, "grade": GRADE, **columns})
    return Attributes(make_vocabulary("i", 7), frame)


def make_facts(lists: list[list[int]], **fields: Any) -> Evidence:
    return make_evidence(
        make_lists(lists, outside=["new"]), **{"n_items": 7, "items": make_catalogue(), **fields}
    )


def measure_values(metric: Any, lists: list[list[int]]) -> list[float]:
    (measurement,) = metric.measure(make_facts(lists))
    return measurement.units.values.tolist()  # type: ignore[no-any-return]


LISTS = [[0, 1, 2], [1, 3, 6], [1, 3, 5], [2, 0, 6]]


def test_hit_bad_by_hand() -> None:
    assert measure_values(HitBad(label="bad"), LISTS) == [1, 1, 0, 1]
    assert measure_values(HitBad(label="bad", k=2), LISTS) == [1, 0, 0, 1]


def test_mrr_bad_by_hand() -> None:
    # the first stereotyped item is at rank 1, 3, nowhere, 1
    assert measure_values(MrrBad(label="bad"), LISTS) == [1, 1 / 3, 0, 1]
    assert measure_values(MrrBad(label="bad", k=2), LISTS) == [1, 0, 0, 1]


def test_rec_st_by_hand() -> None:
    # weights 3, 2, 1 of 6 in all: (3 + 1) / 6, 1 / 6, 0, 6 / 6
    assert measure_values(RecST(label="bad"), LISTS) == pytest.approx([2 / 3, 1 / 6, 0, 1])
    # weights 2, 1 of 3
    assert measure_values(RecST(label="bad", k=2), LISTS) == pytest.approx([2 / 3, 0, 0, 1])


def test_grades_count_above_0_or_from_a_threshold_on() -> None:
    lists = [[3, 5, 2], [3, 0, 1]]  # grades 0, 0.1, 0.5 and 0, 0.9, 0.2
    assert measure_values(HitBad(label="grade"), lists) == [1, 1]
    assert measure_values(MrrBad(label="grade"), lists) == [1 / 2, 1 / 2]
    assert measure_values(MrrBad(label="grade", threshold=0.5), lists) == [1 / 3, 1 / 2]
    assert measure_values(HitBad(label="grade", threshold=0.7), lists) == [0, 1]
    # (2 * 0.1 + 1 * 0.5) / 6 and (2 * 0.9 + 0.2) / 6
    assert measure_values(RecST(label="grade"), lists) == pytest.approx([0.7 / 6, 2 / 6])
    assert measure_values(RecST(label="grade", threshold=0.5), lists) == pytest.approx(
        [1 / 6, 2 / 6]
    )


@pytest.mark.filterwarnings("ignore:the metric:UserWarning")
@pytest.mark.parametrize("stranger", [4, 7], ids=["missing label", "outside the catalogue"])
def test_items_without_a_label_are_left_out_and_said(stranger: int) -> None:
    lists = [[stranger, 0, 1], [1, stranger, 3], [stranger, 1, 3]]
    with collect_warnings() as warnings:
        assert measure_values(HitBad(label="bad"), lists) == [1, 0, 0]
    message = "positions of the lists hold an item without the label 'bad' and are excluded"
    assert warnings == [f"the metric: 3 {message}"]
    # ranks stay: the first stereotyped item is at rank 2
    assert measure_values(MrrBad(label="bad"), lists) == [1 / 2, 0, 0]
    # the weight of the place goes out of the denominator: 2 / (6 - 3)
    assert measure_values(RecST(label="bad"), lists) == pytest.approx([2 / 3, 0, 0])
    full = [[stranger, 0, 2], [0, 2, stranger]]
    assert measure_values(RecST(label="bad"), full) == [1, 1]


def draw_lists(n_items: int, rng: np.random.Generator, n: int = 2_000) -> list[list[int]]:
    chances = rng.random((n, n_items))
    return np.argpartition(chances, 10, axis=1)[:, :10].tolist()  # type: ignore[no-any-return]


@pytest.mark.parametrize("share", [0.1, 0.3, 0.8])
def test_random_lists_of_the_demo_world_have_the_share_that_is_planted(
    share: float, rng: np.random.Generator
) -> None:
    items = Demo(stereotyped=share).load(Path(), rng).items
    assert items is not None
    lists = make_lists(draw_lists(300, rng))
    of = make_evidence(lists, n_items=300, items=items)
    (measurement,) = RecST(label="stereotype").measure(of)
    # the spread of a list is sqrt(share (1 - share) 385 / 55²), or 0.36 sqrt(share (1 - share))
    error = 0.36 * math.sqrt(share * (1 - share) / 2_000)
    assert measurement.value == pytest.approx(share, abs=4 * error)
    assert measurement.ci_high - measurement.ci_low == pytest.approx(2 * 1.96 * error, rel=0.1)
    # a list of 10 of 300 has none with about (1 - share)^10
    (hit,) = HitBad(label="stereotype").measure(of)
    assert hit.value == pytest.approx(1 - (1 - share) ** 10, abs=0.03)


@pytest.mark.real_data
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_random_lists_of_movielens_have_the_share_of_labelled_films(
    real_data: Path, rng: np.random.Generator
) -> None:
    items = MovieLens1M(side=("cast",)).load(real_data, rng).items
    assert items is not None
    labels = Names(from_="cast").label(items, rng)["gender"]
    labelled = Attributes(items.ids, items.frame.assign(gender=labels))
    lists = make_lists(draw_lists(len(labels), rng))
    of = make_evidence(lists, n_items=len(labels), items=labelled)
    (measurement,) = RecST(label="gender").measure(of)
    assert measurement.value == pytest.approx(labels.mean(), abs=0.02)


# drama: labelled, graded, missing; comedy: graded, no; the last item has no genre
FILMS: dict[str, list[Any]] = {
    "label": [1.0, 0.4, NAN, 0.0, 1.0],
    "genres": ["Drama", "Drama|Comedy", "Drama", "Comedy", None],
}


def make_catalogue_items(**columns: list[Any]) -> Evidence:
    ids = make_vocabulary("i", len(next(iter(columns.values()))))
    items = Attributes(ids, pd.DataFrame(columns))
    return Evidence(make_user_queries(0), ids, items=items, metric="the metric", n_bootstrap=200)


def measure(of: Evidence, **settings: Any) -> dict[str, tuple[float, int, int]]:
    measurements = LabelledItems(label="label", **settings).measure(of)
    return {row.target: (row.value, row.n, row.undefined) for row in measurements}


def test_counts_by_hand() -> None:
    films = make_catalogue_items(**FILMS)
    assert measure(films) == {"": (3, 4, 1)}
    assert measure(films, threshold=0.5, attribute="genres") == {
        "": (2, 4, 1),
        "genres=Comedy": (0, 2, 0),
        "genres=Drama": (1, 2, 1),
    }


def test_shares_have_wilson_intervals() -> None:
    films = make_catalogue_items(**FILMS)
    assert measure(films, form="share", attribute="genres") == {
        "": (0.75, 4, 1),
        "genres=Comedy": (0.5, 2, 0),
        "genres=Drama": (1.0, 2, 1),
    }
    share, *_ = LabelledItems(label="label", form="share").measure(films)
    # Wilson: (3 + z²/2 ± z √(3 · 1/4 + z²/4)) / (4 + z²), with z² = 3.8415
    assert (share.ci_low, share.ci_high) == pytest.approx((0.3006, 0.9544), abs=1e-4)
    count, *_ = LabelledItems(label="label").measure(films)
    assert math.isnan(count.ci_low)


@pytest.mark.parametrize(
    ("columns", "settings", "error"),
    [
        ({"label": [2.0]}, {}, OutOfRange),
        ({"label": [NAN]}, {}, NothingLeft),
        ({"other": [1.0]}, {}, UnknownColumn),
        ({"label": [1.0]}, {"attribute": "genres"}, UnknownColumn),
    ],
)
def test_unusable_columns_are_errors(columns: Any, settings: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        LabelledItems(label="label", **settings).check(make_catalogue_items(**columns))


def make_catalogue_agreement(**columns: list[float]) -> Evidence:
    n = len(next(iter(columns.values())))
    ids = make_vocabulary("i", n)
    items = Attributes(ids, pd.DataFrame(columns))
    return Evidence(make_user_queries(0), ids, items=items, metric="the metric", n_bootstrap=200)


def measure_kappa(of: Evidence) -> Measurement:
    (measurement,) = CohenKappa(a="a", b="b").measure(of)
    return measurement


def measure_alpha(of: Evidence, **settings: Any) -> Measurement:
    names = tuple(of.items.names) if of.items else ()
    (measurement,) = KrippendorffAlpha(labels=names, **settings).measure(of)
    return measurement


# a: 1 1 0 0, b: 1 0 0 0, as in the tests of rater_agreement; the last two items lack one
A = [1.0, 1.0, 0.0, 0.0, 1.0, NAN]
B = [1.0, 0.0, 0.0, 0.0, NAN, 1.0]


def test_kappa_by_hand() -> None:
    # agreed 3/4, by chance 1/2; the standard error is 0.375
    measurement = measure_kappa(make_catalogue_agreement(a=A, b=B))
    assert measurement.value == pytest.approx(0.5)
    assert (measurement.n, measurement.undefined) == (4, 2)
    assert measurement.ci_low == pytest.approx(0.5 - 1.959964 * 0.375, abs=1e-6)
    assert measurement.ci_high == pytest.approx(0.5 + 1.959964 * 0.375, abs=1e-6)
    assert measurement.units is None


def test_accuracy_by_hand() -> None:
    (measurement,) = LabelAccuracy(a="a", b="b").measure(make_catalogue_agreement(a=A, b=B))
    assert measurement.value == 0.75
    assert (measurement.n, measurement.undefined) == (4, 2)
    # Wilson: centre (3 + 1.9207) / (4 + 3.8415), half width 1.96 sqrt(3/4 + 0.9604) / 7.8415
    assert measurement.ci_low == pytest.approx(0.3006, abs=1e-4)
    assert measurement.ci_high == pytest.approx(0.9544, abs=1e-4)


def test_accuracy_is_that_of_scikit_learn(rng: np.random.Generator) -> None:
    from sklearn.metrics import accuracy_score

    a, b = rng.integers(0, 3, (2, 200)).astype(float)
    (measurement,) = LabelAccuracy(a="a", b="b").measure(make_catalogue_agreement(a=[*a], b=[*b]))
    assert measurement.value == pytest.approx(accuracy_score(a, b))


def test_alpha_by_hand() -> None:
    # units (1, 1), (1, 0), (0, 0), (0, 0): n = 8, D_o = 2/8; three 1 and five 0:
    # D_e = 2 * 3 * 5 / 56 = 15/28; 1 - 7/15
    measurement = measure_alpha(make_catalogue_agreement(a=A, b=B))
    assert measurement.value == pytest.approx(8 / 15)
    assert (measurement.n, measurement.undefined) == (4, 2)
    assert measurement.ci_low < 8 / 15 < measurement.ci_high


def test_alpha_of_three_labels_uses_items_that_lack_one() -> None:
    # with c the fifth item has the labels 1 and 1, the sixth 1 and 0
    measurement = measure_alpha(
        make_catalogue_agreement(a=A, b=B, c=[NAN, NAN, NAN, NAN, 1.0, 0.0])
    )
    # D_o = (2 + 2) / 12; six 1 and six 0: D_e = 2 * 36 / 132 = 6/11; 1 - (1/3) (11/6) = 7/18
    assert measurement.value == pytest.approx(7 / 18)
    assert (measurement.n, measurement.undefined) == (6, 0)


def test_alpha_of_grades_counts_how_far_they_are_apart() -> None:
    near = make_catalogue_agreement(a=[0.0, 0.5, 1.0, 0.2], b=[0.1, 0.5, 0.9, 0.2])
    assert measure_alpha(near, level="interval").value > 0.95
    assert measure_alpha(near).value < 0.5


def test_the_intervals_of_a_large_catalogue_are_narrow_and_alike(rng: np.random.Generator) -> None:
    truth = rng.random(4_000) < 0.4
    a, b = (np.where(rng.random(4_000) < 0.9, truth, ~truth).astype(float) for _ in range(2))
    of = make_catalogue_agreement(a=a.tolist(), b=b.tolist())
    # two raters who err in a tenth of the items each agree in 0.82 of them; both say 1 in
    # 0.4 * 0.9 + 0.6 * 0.1 = 0.42, so chance is 0.42² + 0.58² = 0.5128: (0.82 - 0.5128) / 0.4872
    for measurement in (measure_kappa(of), measure_alpha(of)):
        assert measurement.ci_low < 0.6305 < measurement.ci_high
        assert measurement.ci_high - measurement.ci_low == pytest.approx(0.048, rel=0.2)


@pytest.mark.parametrize("same", [[1.0, 1.0], [NAN, NAN]])
def test_labels_that_are_all_the_same_are_undefined(same: list[float]) -> None:
    for measurement in (
        measure_kappa(make_catalogue_agreement(a=same, b=same)),
        measure_alpha(make_catalogue_agreement(a=same, b=same)),
    ):
        assert math.isnan(measurement.value)
        assert math.isnan(measurement.ci_low)
        assert (measurement.n, measurement.undefined) == (0, 2)


@pytest.mark.parametrize(
    ("metric", "parameter"),
    [
        (CohenKappa(a="ab", b="b"), "a"),
        (CohenKappa(a="a", b="ab"), "b"),
        (KrippendorffAlpha(labels=("a", "ab")), "labels"),
    ],
)
def test_a_label_that_is_not_there_is_found_early(metric: Any, parameter: str) -> None:
    of = make_catalogue_agreement(a=A, b=B)
    for step in (metric.check, metric.measure):
        with pytest.raises(UnknownColumn, match="no column 'ab'") as caught:
            step(of)
        assert (caught.value.where, caught.value.remedy) == (parameter, "did you mean b or a?")
        with pytest.raises(MissingEvidence, match="needs items"):
            step(Evidence(make_user_queries(0), make_vocabulary("i", 0), metric="the metric"))


def test_a_measurement_is_no_category() -> None:
    numbers = [number / 50 for number in range(30)]
    world = make_catalogue_agreement(a=[float(number % 2) for number in range(30)], b=numbers)
    with pytest.raises(OutOfRange, match="30 distinct numbers") as caught:
        CohenKappa(a="a", b="b").check(world)
    assert caught.value.where == "b"


METRIC = CatalogueCounts(attribute="categories")


def make_catalogue_counts(
    counts: list[float], categories: list[str | None], **fields: Any
) -> Evidence:
    ids = make_vocabulary("i", len(counts))
    items = Attributes(ids, pd.DataFrame({"categories": categories}))
    train = make_interactions([(0, 0)], n_users=1, n_items=len(counts))
    defaults: dict[str, Any] = {"items": items, "train": train, "item_counts": np.array(counts)}
    return Evidence(make_user_queries(0), ids, metric="the metric", **(defaults | fields))


def measure_counts(metric: CatalogueCounts, facts: Evidence) -> dict[str, float]:
    return {estimate.target: estimate.value for estimate in metric.measure(facts)}


def test_by_hand() -> None:
    facts = make_catalogue_counts([3, 5, 0, 1], ["Bars|Pubs", "Bars", "French|Thai|Halal", None])
    assert measure_counts(METRIC, facts) == {
        "items": 3,  # item 2 has no interaction
        "interactions": 9,
        "most interactions of an item": 5,
        "values of categories": 2,
        "most values of an item": 2,
    }
    assert list(measure_counts(CatalogueCounts(), facts)) == [
        *("items", "interactions", "most interactions of an item")
    ]
    assert [estimate.n for estimate in METRIC.measure(facts)] == [3] * 5


@given(st.lists(st.integers(0, 9), min_size=1, max_size=20))
def test_they_agree_with_pandas(numbers: list[int]) -> None:
    cells = ["|".join("abcdefghi"[:number]) or None for number in numbers]
    values = measure_counts(
        METRIC, make_catalogue_counts([float(number) for number in numbers], cells)
    )
    series = pd.Series(numbers)
    assert values["items"] == (series > 0).sum()
    assert values["interactions"] == series.sum()
    largest = max(numbers)
    assert values["most interactions of an item"] == largest
    assert values["values of categories"] == values["most values of an item"] == largest


LABELS_LABEL = "ngim.gender"
CORRECTED = f"REC-ST(label={LABELS_LABEL}, corrected=True)"
DEMO: dict[str, Any] = {"n_users": 200, "n_items": 150, "misleading": 0.2}


def run(folder: Path, share: float = 0.5, **keys: Any) -> Any:
    """Run with the labels of casts, of which some mislead, and the truth of some of the items."""
    dataset = LoadDataset(Demo(**DEMO), (), folder, 42)()
    truth = pd.DataFrame(
        {"item_id": dataset.items.ids.ids, "gender": dataset.items.frame["stereotype"]}
    )
    rows = truth.sample(frac=share, random_state=1)
    rows.assign(gender=rows["gender"].astype(int)).to_csv(folder / "labels.csv", index=False)
    spec = {
        "name": "audited",
        "dataset": {"name": "demo", **DEMO},
        "split": {"name": "random", "test": 0.2},
        "models": ["ItemKNN", "PureSVD"],
        "labels": [
            {"name": "ngim", "detector": "names", "from": "cast", "audited": "labels.csv"},
            {"name": "truth", "detector": "column", "from": "stereotype", "kind": "gender"},
        ],
        "metrics": [
            {"name": "REC-ST", "label": label, **by}
            for label in (LABELS_LABEL, "truth.gender")
            for by in ({}, {"by": "gender"})
        ],
        "tests": ["paired_t"],
        "report": {"formats": ["csv", "json", "md"]},
        **keys,
    }
    path = folder / "spec.yaml"
    path.write_text(json.dumps(spec), encoding="utf-8")
    return recbias.run(path, out=folder / "results", progress=False)


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> Any:
    check = {"metric": CORRECTED, "by": "gender", "gap": "difference", "at_most": 0.3}
    return run(tmp_path_factory.mktemp("audited"), checks=[check])


def select(metrics: pd.DataFrame, metric: str) -> Any:
    return metrics[metrics["metric"] == metric].set_index("model")


def test_the_corrected_value_is_nearer_to_the_truth_and_its_interval_holds_it(
    audited: Any,
) -> None:
    raw, corrected, truth = (
        select(audited.metrics, name)
        for name in (f"REC-ST(label={LABELS_LABEL})", CORRECTED, "REC-ST(label=truth.gender)")
    )
    assert ((corrected["ci_low"] < truth["value"]) & (truth["value"] < corrected["ci_high"])).all()
    error = (corrected["value"] - truth["value"]).abs()
    assert (error < (raw["value"] - truth["value"]).abs()).all()
    assert (corrected["ci_high"] - corrected["ci_low"] > raw["ci_high"] - raw["ci_low"]).all()


def test_the_spec_of_a_run_gives_the_same_run(audited: Any, tmp_path: Path) -> None:
    again = recbias.run(audited.folder / "spec.yaml", out=tmp_path, progress=False)
    pd.testing.assert_frame_equal(again.metrics, audited.metrics)


def test_few_errors_of_the_judge_are_said(tmp_path: Path) -> None:
    found = run(tmp_path, share=0.05, models=["ItemKNN"])
    text = " ".join(str(warning) for warning in found.manifest["warnings"])
    assert "with fewer than 5 the interval may be too narrow" in text


def test_groups_gap_test_and_check_are_of_the_corrected_values(audited: Any) -> None:
    by = CORRECTED.replace(")", ", by=gender")
    groups = audited.metrics[audited.metrics["metric"] == f"{by})"]
    gap = select(audited.metrics, f"{by}, gap=difference)")
    tests = audited.significance
    tests = tests[(tests["metric"] == f"{by})") & (tests["between"] == "groups")].set_index(
        "model"
    )
    (checks,) = [audited.checks.set_index("model")]
    assert set(tests["test"]) == {"prediction_powered"}
    for model, row in gap.iterrows():
        values = groups[groups["model"] == model]["value"]
        assert row["value"] == pytest.approx(np.ptp(values))
        assert row["value"] == pytest.approx(abs(tests.loc[model, "difference"]))
        assert checks.loc[model, "value"] == row["value"]
        assert checks.loc[model, "ci_high"] == row["ci_high"]
        overall = select(audited.metrics, CORRECTED).loc[model]
        sizes = groups[groups["model"] == model]["n"]
        assert overall["value"] == pytest.approx(np.average(values, weights=sizes))


def test_models_are_compared_with_the_errors_of_the_labels(audited: Any) -> None:
    tests = audited.significance.set_index("metric")
    raw, corrected = tests.loc[f"REC-ST(label={LABELS_LABEL})"], tests.loc[CORRECTED]
    values = select(audited.metrics, CORRECTED)["value"]
    assert corrected["difference"] == pytest.approx(
        values[corrected["a"]] - values[corrected["b"]]
    )
    assert corrected["ci_high"] - corrected["ci_low"] > raw["ci_high"] - raw["ci_low"]


def test_several_seeds(tmp_path: Path) -> None:
    """Each user is one user over the seeds, and the audited items are those of both."""
    metrics = [{"name": "REC-ST", "label": LABELS_LABEL}]
    dataset = {"name": "demo", **DEMO, "misleading": 0.0}
    found = run(tmp_path, seeds=[42, 43], dataset=dataset, metrics=metrics, tests=[])
    rows = found.metrics[found.metrics["metric"] == CORRECTED]
    mean = rows[rows["seed"] == "all"].set_index("model")
    single = rows[rows["seed"] != "all"].groupby("model")
    assert mean["value"].to_dict() == pytest.approx(single["value"].mean().to_dict())
    assert (mean["ci_low"] < mean["value"]).all()


def test_a_run_of_the_resolved_spec_is_the_same(audited: Any) -> None:
    again = recbias.plan(audited.folder / "spec.yaml", out=audited.folder.parents[1])
    assert again is not None
    text = (audited.folder / "spec.yaml").read_text(encoding="utf-8")
    assert "ngim.audited" in text
    assert text.count("corrected: true") == 5  # the value, the groups and their gaps


def test_too_small_a_sample_gives_no_value(tmp_path: Path) -> None:
    found = run(tmp_path, share=0.01)
    assert select(found.metrics, CORRECTED)["value"].isna().all()
    text = (found.folder / "manifest.json").read_text(encoding="utf-8")
    assert "fewer than 5: there is no corrected value" in text


def test_power_counts_the_labels_that_a_half_width_needs(audited: Any) -> None:
    """With as many labels as there are, the half width is that of the run."""

    def count(half_width: float) -> Any:
        return count_labels(audited, half_width).set_index(["metric", "model"])

    key = (CORRECTED, "ItemKNN")
    width = count(0.05)["half_width"]
    row, narrower = count(width[key]).loc[key], count(width[key] / 1.3).loc[key]
    assert row["needed"] == row["audited"] < row["items"] <= DEMO["n_items"]
    assert row["needed"] < narrower["needed"] <= row["items"]
    impossible = count_labels(audited, 0.001)
    assert impossible["needed"].isna().all()
    assert impossible["remark"].str.startswith("the users alone give").all()
    assert any("gap=difference" in metric for metric, _ in width.index)
