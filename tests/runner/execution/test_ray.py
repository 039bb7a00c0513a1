from __future__ import annotations

import importlib.util
from pathlib import Path

import pandas as pd
import pytest

import recbias
from recbias import api
from recbias.core.context import StageRecord
from recbias.core.errors import Contradiction, MissingExtra
from recbias.kernels import devices
from recbias.runner import workers
from recbias.runner.execute import Executor
from recbias.runner.plan import Observer, Plan
from recbias.runner.store import Store
from recbias.runner.workers import RayTasks
from support.specs import make_small_spec

HAS_RAY = importlib.util.find_spec("ray") is not None


@pytest.mark.skipif(HAS_RAY, reason="ray is installed")
def test_missing_ray_is_reported_with_the_install_command() -> None:
    with pytest.raises(MissingExtra, match="needs the package 'ray'") as caught:
        RayTasks(1)
    assert caught.value.remedy == "in the clone: pip install '.[ray]'"


@pytest.mark.slow
@pytest.mark.skipif(not HAS_RAY, reason="ray is not installed")
@pytest.mark.filterwarnings("ignore")
def test_tasks_give_the_same_metrics(tmp_path: Path) -> None:
    space = {"neighbors": {"int": [1, 40]}}
    tune = {"metric": "nDCG", "trials": 3, "parallel": 2, "space": space}
    split = {"name": "random", "test": 0.2, "validation": 0.2}
    spec = make_small_spec(models=["MostPop", {"name": "ItemKNN", "tune": tune}], split=split)
    sequential = recbias.run(spec, out=tmp_path / "one")
    parallel = recbias.run(spec, out=tmp_path / "two", workers=2, executor="ray")
    expected, actual = [
        (run.folder / "metrics.csv").read_bytes() for run in (sequential, parallel)
    ]
    assert expected == actual
    first, second = [
        pd.read_csv(run.folder / "trials.csv").drop(columns="seconds")
        for run in (sequential, parallel)
    ]
    assert first.equals(second)


def plan_on_gpus(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, device: str
) -> tuple[Plan, Store]:
    """Return a plan of a machine with two GPUs, which this one may not have."""
    monkeypatch.setattr(devices, "list_devices", lambda: ("cuda", "cuda:0", "cuda:1", "cpu"))
    model = {"name": "BPR-MF", "epochs": 1, "patience": 0}
    spec = make_small_spec(models=["MostPop", model])
    plan, store = api.plan(spec, out=tmp_path, device=device)
    return plan, store


@pytest.mark.skipif(not HAS_RAY, reason="ray is not installed")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.slow
def test_a_task_on_cuda_has_a_gpu_of_ray(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import ray

    requested: list[dict[str, float]] = []

    def run_task(*facts: object) -> list[StageRecord]:
        return [make_record_of_resources(ray.get_runtime_context().get_assigned_resources())]

    def make_record_of_resources(resources: dict[str, float]) -> StageRecord:
        digest = str(int(resources.get("GPU", 0))) * 64
        return StageRecord("fit", "measure", digest, facts=resources)

    class Resources(Observer):
        def finished(self, record: StageRecord) -> None:
            requested.append(dict(record.facts))

    plan, store = plan_on_gpus(tmp_path, monkeypatch, "cuda")
    monkeypatch.setattr(workers, "_run_task", run_task)
    ray.init(num_cpus=2, num_gpus=1, include_dashboard=False, log_to_driver=False)
    try:
        executor = Executor(store, Resources())
        with RayTasks(2).prepare(plan):
            assert len([*RayTasks(2)(plan, executor)]) == 2
    finally:
        ray.shutdown()
    gpus = sorted(resources.get("GPU", 0.0) for resources in requested)
    assert gpus == [0.0, 1.0]
    assert {resources["CPU"] for resources in requested} == {1.0}


@pytest.mark.skipif(not HAS_RAY, reason="ray is not installed")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.slow
def test_tasks_that_would_never_start_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import ray

    ray.init(num_cpus=1, num_gpus=0, include_dashboard=False, log_to_driver=False)
    try:
        for device, message in (
            ("cuda", "no node of Ray has a GPU"),
            ("cuda:1", "Ray selects the GPU of each task"),
        ):
            plan, store = plan_on_gpus(tmp_path, monkeypatch, device)
            tasks = RayTasks(1)
            with pytest.raises(Contradiction, match=message), tasks.prepare(plan):
                list(tasks(plan, Executor(store, Observer())))
    finally:
        ray.shutdown()
