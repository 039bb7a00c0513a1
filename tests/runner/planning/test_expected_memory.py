from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

import recbias
from recbias import api
from recbias.core.errors import Faults
from recbias.core.machine.expected import EstimatesDataset, EstimatesSizes
from recbias.core.machine.memory import VARIABLE
from recbias.formats import sizes as table_sizes
from recbias.numerics.sparse.compiled_ranking import MIN_SCORES
from recbias.registry import REGISTRIES
from recbias.runner.execution.executor import Executor, Silent
from recbias.runner.execution.model_memory import find_memory_faults
from recbias.runner.planning.expected_memory import COMPILED_SCORES, PeakPlanner
from recbias.runner.planning.preview import preview
from recbias.runner.stage_sizes import measure_sizes
from support.specs import make_small_spec

SIZES = {"users": 6_040, "items": 3_706, "interactions": 1_000_209, "training": 800_167}


def plan_peaks(tmp_path: Path, scale: int = 1, **changes: object) -> dict[str, float]:
    """Return the planned peaks of the stages of a spec in MB, by their titles."""
    plan, _ = api.plan(make_small_spec(**changes), out=tmp_path)
    sizes, planner = {name: scale * n for name, n in SIZES.items()}, PeakPlanner()
    peaks = {stage.title: planner.plan(stage, sizes) for stage in plan.stages}
    return {title: peak / 2**20 for title, peak in peaks.items() if peak is not None}


def test_the_peaks_are_those_that_movielens_1m_was_measured_with(tmp_path: Path) -> None:
    models = ["MostPop", "PureSVD", "ItemKNN", "UserKNN", "implicit/ALS", "EASE", "SLIM"]
    peaks = plan_peaks(tmp_path, models=[*models, "BPR-MF"])
    measured = {
        "load demo": 238,
        "split demo": 245,
        "ask MostPop": 346,
        "fit PureSVD": 265,
        "fit implicit/ALS": 361,
        "fit EASE": 579,
        "ask EASE": 478,
        "fit SLIM": 561,
        "measure nDCG of SLIM": 396,
        "fit BPR-MF": 684,
        "ask BPR-MF": 732,
    }
    for title, peak in measured.items():
        assert peaks[title] == pytest.approx(peak, rel=0.25), title


CORE = {"users": 5_949, "items": 2_810, "interactions": 571_531, "training": 457_225}
SMALL = {"users": 6_281, "items": 9_719, "interactions": 937_000, "times": 937_000}
GENERATED = {"users": 20_101, "items": 16_103, "interactions": 3_096_864, "times": 3_096_864}


@pytest.mark.parametrize(
    ("sizes", "measured"),
    [
        (
            CORE,  # MovieLens-1M, ratings of 4 and 5, 10-core
            {
                "ItemKNN": (345, 410),
                "UserKNN": (348, 403),
                "SLIM": (323, 387),
                "PureSVD": (224, 278),
                "EASE": (321, 326),
                "implicit/ALS": (218, 284),
                "BPR-MF": (578, 636),
                "MF": (623, 649),
                "FunkSVD": (622, 626),
                "PMF": (644, 637),
                "MF2020": (625, 659),
                "AMF": (615, 638),
                "LightGCN": (643, 639),
                "MultiVAE": (595, 621),
                "NeuMF": (645, 786),
                "DeepFM": (672, 827),
            },
        ),
        (
            SMALL | {"training": 747_136},  # growth.write_ratings, a million, 10-core
            {"PureSVD": (225, 323), "implicit/ALS": (217, 326)},
        ),
        (
            GENERATED | {"training": 2_469_450},  # growth.write_ratings, 3.2 million, 10-core
            {
                "MF": (755, 750),
                "FunkSVD": (743, 739),
                "PMF": (837, 765),
                "MF2020": (1130, 739),
                "AMF": (902, 760),
            },
        ),
    ],
)
def test_the_peaks_of_trained_models_are_those_that_were_measured(
    tmp_path: Path, sizes: dict[str, int], measured: dict[str, tuple[int, int]]
) -> None:
    for model, (fit, ask) in measured.items():
        plan, _ = api.plan(make_small_spec(models=[model]), out=tmp_path)
        planner = PeakPlanner()
        peaks = {stage.kind: planner.plan(stage, sizes) for stage in plan.stages}
        for kind, peak in (("fit", fit), ("answer", ask)):
            assert (peaks[kind] or 0) / 2**20 == pytest.approx(peak, rel=0.25), (model, kind)


ML_1M = SIZES | {"items": 3_883, "training": 797_758}
ML_100K = {"users": 943, "items": 1_682, "interactions": 100_000, "times": 100_000}
TENTH = {"users": 1_884, "items": 5_035, "interactions": 257_132, "times": 257_132}
MILLION = {"users": 6_281, "items": 9_719, "interactions": 933_107, "times": 933_107}


@pytest.mark.parametrize(
    ("sizes", "measured"),
    [
        (
            ML_1M | {"queries": 6_040},
            {
                "MostPop": (213, 331, 224),
                "ItemKNN": (371, 329, 225),
                "UserKNN": (369, 327, 225),
                "AttributeItemKNN": (243, 334, 225),
                "AttributeUserKNN": (248, 324, 225),
                "VSM": (216, 438, 225),
                "BPR-MF": (606, 290, 228),
                "MultiVAE": (643, 373, 248),
                "ConvMF": (645, 290, 226),
                "implicit/ItemKNN": (248, 287, 224),
                "implicit/BPR": (231, 284, 227),
                "implicit/LMF": (231, 286, 225),
                "lenskit/Popular": (550, 281, 225),
                "lenskit/Bias": (492, 281, 224),
                "lenskit/EASE": (689, 336, 224),
                "lenskit/ImplicitMF": (503, 289, 226),
                "lenskit/BiasedMF": (502, 284, 226),
                "lenskit/FunkSVD": (490, 282, 225),
                "lenskit/BiasedSVD": (558, 284, 226),
                "lenskit/NMF": (558, 286, 226),
                "lenskit/FlexMFImplicit": (648, 291, 226),
                "lenskit/FlexMFExplicit": (717, 291, 227),
            },
        ),
        (
            ML_100K | {"training": 79_619, "queries": 943},
            {
                "MostPop": (173, 179, 178),
                "ItemKNN": (187, 195, 178),
                "UserKNN": (183, 189, 178),
                "PureSVD": (188, 183, 178),
                "BPR-MF": (537, 183, 179),
                "MultiVAE": (502, 203, 184),
            },
        ),
        (
            TENTH | {"training": 204_948, "queries": 1_884},  # growth.write_ratings, 300,000
            {
                "MostPop": (184, 212, 194),
                "ItemKNN": (327, 265, 194),
                "UserKNN": (200, 259, 194),
                "BPR-MF": (554, 224, 196),
                "SASRec": (798, 538, 196),
                "GRU4Rec": (792, 482, 196),
                "BERT4Rec": (799, 696, 196),
            },
        ),
        (
            MILLION | {"training": 743_956, "queries": 6_281},  # growth.write_ratings, a million
            {
                "MostPop": (229, 346, 239),
                "ItemKNN": (393, 391, 239),
                "UserKNN": (384, 359, 239),
                "PureSVD": (260, 356, 240),
                "EASE": (1435, 718, 239),
                "BPR-MF": (620, 382, 243),
                "MultiVAE": (877, 510, 275),
                "ConvMF": (658, 357, 241),
                "SASRec": (1138, 622, 243),
                "GRU4Rec": (1146, 618, 243),
                "BERT4Rec": (786, 786, 242),
            },
        ),
        (
            GENERATED | {"training": 2_469_450, "queries": 20_101},
            {
                "MostPop": (354, 470, 364),
                "ItemKNN": (577, 505, 364),
                "UserKNN": (575, 500, 364),
                "PureSVD": (423, 477, 368),
                "BPR-MF": (782, 485, 373),
                "ConvMF": (845, 479, 369),
                "implicit/ALS": (390, 485, 373),
                "implicit/ItemKNN": (436, 475, 365),
                "lenskit/Popular": (922, 516, 365),
                "lenskit/ImplicitMF": (808, 484, 371),
                "lenskit/BiasedSVD": (856, 484, 372),
                "lenskit/FlexMFImplicit": (994, 486, 373),
            },
        ),
    ],
)
def test_the_peaks_of_processes_of_their_own_are_those_that_were_measured(
    tmp_path: Path, sizes: dict[str, int], measured: dict[str, tuple[int, int, int]]
) -> None:
    spec = make_small_spec(models=[*measured], metrics=["nDCG"])
    plan, _ = api.plan(spec, out=tmp_path)
    for stage in plan.stages:
        if stage.keys.model in measured:
            peak = (PeakPlanner().plan(stage, sizes) or 0) / 2**20
            kinds = dict(
                zip(("fit", "answer", "measure"), measured[stage.keys.model], strict=True)
            )
            assert peak == pytest.approx(kinds[stage.kind], rel=0.25), stage.title


RERANKERS = [
    ({"name": "MMR", "attribute": "genres"}, 298, None),
    ({"name": "calibration", "attribute": "genres"}, 471, None),
    ({"name": "xQuAD"}, 262, 474),
    ({"name": "calibrated_popularity"}, 290, 599),
    ({"name": "CPFair"}, 265, 500),
]
"""Re-rankers of 100 candidates of each user, and their measured peaks: on MovieLens-1M, and on 3.2
million generated ratings, whose films have all one genre."""


@pytest.mark.parametrize(("rerank", "small", "large"), RERANKERS)
def test_the_peaks_of_rerankers_are_those_that_were_measured(
    tmp_path: Path, rerank: dict[str, str], small: int, large: int | None
) -> None:
    spec = make_small_spec(models=[{"name": "MostPop", "rerank": rerank}])
    plan, _ = api.plan(spec, out=tmp_path)
    (stage,) = (stage for stage in plan.stages if stage.title.startswith("re-rank"))
    sizes = ML_1M | {"queries": 6_040}, GENERATED | {"training": 2_469_450, "queries": 20_101}
    for size, measured in zip(sizes, (small, large), strict=True):
        if measured is not None:
            peak = (PeakPlanner().plan(stage, size) or 0) / 2**20
            assert peak == pytest.approx(measured, rel=0.25)


def test_the_plan_knows_when_loops_are_compiled(tmp_path: Path) -> None:
    assert COMPILED_SCORES == MIN_SCORES
    plan, _ = api.plan(make_small_spec(models=["PureSVD"]), out=tmp_path)
    ask = next(stage for stage in plan.stages if stage.kind == "answer")
    for n_queries in (10_000, 20_000):
        planner = PeakPlanner()
        planner.plan(ask, SIZES | {"queries": n_queries})
        assert ("numba" in planner.libraries) == (n_queries * SIZES["items"] >= MIN_SCORES)


def test_metrics_of_stored_answers_have_no_model(tmp_path: Path) -> None:
    plan, _ = api.plan(make_small_spec(models=["EASE"]), out=tmp_path)
    fit, ask = (next(s for s in plan.stages if s.kind == kind) for kind in ("fit", "answer"))
    metric = next(stage for stage in plan.stages if stage.kind == "measure")
    planner, alone = PeakPlanner(), PeakPlanner().plan(metric, SIZES) or 0
    for stage in (fit, ask):
        planner.plan(stage, SIZES)
    in_order = planner.plan(metric, SIZES) or 0
    assert in_order - alone == pytest.approx(4 * SIZES["items"] ** 2)


def test_dense_models_grow_with_the_square_of_the_items(tmp_path: Path) -> None:
    small, large = (plan_peaks(tmp_path, scale, models=["EASE"]) for scale in (10, 20))
    assert 3.5 < large["fit EASE"] / small["fit EASE"] < 4


def test_a_plan_has_the_memory_of_each_stage(tmp_path: Path) -> None:
    rerank = {"name": "FA*IR", "attribute": "genres", "protected": "Drama"}
    spec = make_small_spec(models=["MostPop", {"name": "EASE", "rerank": rerank}])
    plan, store = api.plan(spec, out=tmp_path)
    steps, _ = api.preview_run(plan, store, fresh=False)
    unknown = {step.stage.title for step in steps.steps if step.memory_mb is None}
    assert not unknown
    assert steps.n_without_memory == len(unknown)
    assert steps.memory_mb == max(step.memory_mb or 0 for step in steps.steps)
    assert preview(plan, store).memory_mb == 0  # nothing is known of the generated data


def test_a_stage_that_does_not_fit_is_refused_with_the_data_that_would(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = {"name": "demo", "n_users": 200, "n_items": 3_000}
    spec = make_small_spec(dataset=dataset, models=["MostPop", "EASE"])
    monkeypatch.setenv(VARIABLE, "250")
    plan, store = api.plan(spec, out=tmp_path)
    with pytest.raises(Faults) as refused:
        api.preview_run(plan, store, fresh=False)
    (fault,) = refused.value.faults  # not the lists and metrics of EASE too
    assert fault.message.startswith("fit EASE needs about 2")
    assert "there are 250 MB" in fault.message
    assert "models[1]" in fault.where
    assert "users" in fault.remedy
    assert VARIABLE in fault.remedy
    with pytest.raises(Faults):
        recbias.run(spec, out=tmp_path)
    monkeypatch.setenv(VARIABLE, "20000")
    assert api.preview_run(plan, store, fresh=False)[0].memory_mb > 250


def test_a_file_that_is_large_by_itself_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "lists.csv"
    rows = "".join(f"{user},{item},{item}\n" for user in range(20_000) for item in range(1, 51))
    path.write_text("user_id,item_id,rank\n" + rows, encoding="utf-8")
    spec = make_small_spec(models=["MostPop", {"name": "lists", "path": str(path)}])
    plan, store = api.plan(spec, out=tmp_path)
    recbias.run(make_small_spec(), out=tmp_path)  # now the sizes of the data are known
    for limit, n_faults in (("150", 1), ("220", 1), ("2000", 0)):
        monkeypatch.setenv(VARIABLE, limit)
        faults = [*find_memory_faults(plan, Executor(store, Silent()))]
        assert len(faults) == n_faults
        for fault in faults:
            assert fault.message.startswith("ask lists needs about ")
            assert "give a smaller file" in fault.remedy
            assert "models[1]" in fault.where


def test_what_reads_a_refused_stage_is_not_refused_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_clicks(tmp_path / "a.csv", 300_000)
    dataset = {"name": "tables", "interactions": str(path)}
    spec = make_small_spec(dataset=dataset, models=["MostPop", "ItemKNN"])
    monkeypatch.setenv(VARIABLE, "182")
    plan, store = api.plan(spec, out=tmp_path)
    faults = [*find_memory_faults(plan, Executor(store, Silent()))]
    assert [fault.message.partition(" needs ")[0] for fault in faults] == ["load tables"]


def test_sizes_of_movielens_are_estimated_from_the_files(tmp_path: Path) -> None:
    folder = tmp_path / "ml-32m"
    folder.mkdir()
    rng = np.random.default_rng(1)
    rows = [f"{user},{rng.integers(1, 9999)},4.5,999\n" for user in range(1, 301)] * 2
    rows.sort(key=lambda row: int(row.partition(",")[0]))
    folder.joinpath("ratings.csv").write_text("userId,movieId,rating,timestamp\n" + "".join(rows))
    folder.joinpath("movies.csv").write_text("movieId,title,genres\n" + "1,a,b\n" * 99)
    source = REGISTRIES["datasets"].load("ml-32m")()
    assert isinstance(source, EstimatesDataset)
    sizes = source.estimate_dataset(tmp_path)
    assert sizes["users"] == 300
    assert sizes["items"] == pytest.approx(99, abs=1)
    assert sizes["interactions"] == pytest.approx(600, rel=0.02)
    for filters in ([], [{"name": "k_core", "k": 2}]):
        spec = make_small_spec(dataset={"name": "ml-32m", "filters": filters}, models=["MostPop"])
        steps = preview(*api.plan(spec, out=tmp_path, data=tmp_path)).steps
        assert steps[0].memory_mb is not None
        unknown = [step for step in steps if step.memory_mb is None]
        assert len(unknown) == (len(steps) - 1 if filters else 0)  # what it leaves is not known


def write_clicks(path: Path, n: int) -> Path:
    rng = np.random.default_rng(1)
    users, items = np.sort(rng.integers(0, n // 20, n)), rng.integers(0, 900, n)
    rows = {"user_id": users, "item_id": items, "rating": rng.random(n)}
    table = pa.table(rows)
    if path.suffix == ".parquet":
        parquet.write_table(table, path)
    else:
        with path.open("wb") if path.suffix != ".gz" else gzip.open(path, "wb") as file:
            csv.write_csv(table, file)
    return path


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.parquet"])
def test_sizes_of_tables_are_estimated_from_samples(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(table_sizes, "CHUNK_SIZE", 2**14)
    path = write_clicks(tmp_path / name, 60_000)
    source = REGISTRIES["datasets"].load("tables")(interactions=path)
    sizes = source.estimate_dataset(tmp_path)
    tolerance = 0.3 if path.suffix == ".gz" else 0.03  # the file is read ahead
    assert sizes["interactions"] == pytest.approx(60_000, rel=tolerance)
    assert sizes["users"] == pytest.approx(3_000, rel=max(tolerance, 0.2))
    assert sizes["items"] == pytest.approx(900, rel=0.02)


def test_a_file_that_is_read_whole_is_counted(tmp_path: Path) -> None:
    path = write_clicks(tmp_path / "a.csv", 2_000)
    source = REGISTRIES["datasets"].load("tables")(interactions=path)
    loaded = source.load(tmp_path, np.random.default_rng(1))
    assert source.estimate_dataset(tmp_path) == measure_sizes([loaded])


def test_tables_without_known_columns_have_no_estimate(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("user,item\n1,2\n")
    tables = REGISTRIES["datasets"].load("tables")
    assert tables(interactions=path).estimate_dataset(tmp_path) == {}
    assert tables(users=path).estimate_dataset(tmp_path) == {}


def test_a_file_that_does_not_fit_is_refused_before_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_clicks(tmp_path / "a.csv", 300_000)
    dataset = {"name": "tables", "interactions": str(path)}
    filters = [{"name": "k_core", "k": 2}]
    spec = make_small_spec(dataset=dataset | {"filters": filters}, models=["MostPop"])
    monkeypatch.setenv(VARIABLE, "182")

    def load(*_: object) -> None:
        pytest.fail("the file was read")

    monkeypatch.setattr(REGISTRIES["datasets"].load("tables"), "load", load)
    with pytest.raises(Faults, match="load tables needs about 1") as refused:
        recbias.run(spec, out=tmp_path / "out")
    assert "a file with fewer rows" in refused.value.faults[0].remedy


@pytest.mark.parametrize(
    ("kind", "name", "settings", "expected"),
    [
        ("splits", "random", {"test": 0.2, "validation": 0.1}, {"training": 700}),
        ("splits", "leave_one_out", {"n": 2}, {"training": 900}),
        ("queries", "users", {}, {"queries": 50}),
        ("queries", "users", {"sample": 5, "folds": 2}, {"queries": 10}),
        ("filters", "sample_users", {"n": 10}, {"users": 10, "interactions": 200}),
    ],
)
def test_plug_ins_say_what_they_leave(
    kind: str, name: str, settings: dict[str, object], expected: dict[str, int]
) -> None:
    plugin = REGISTRIES[kind].load(name)(**settings)
    assert isinstance(plugin, EstimatesSizes)
    assert plugin.estimate_sizes({"users": 50, "items": 9, "interactions": 1000}) == expected
