from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

import recbias
from recbias import api
from recbias.core.context import collect_warnings
from recbias.core.errors import Faults
from recbias.kernels import devices
from recbias.kernels.devices import (
    choose_precision,
    find_device,
    list_devices,
    resolve_device,
)
from support.commands import SMALL, invoke_recbias, write_small_spec
from support.specs import make_small_spec

BPR: dict[str, Any] = {"name": "BPR-MF", "epochs": 1, "patience": 0}
HAS_GPU = torch.cuda.is_available()
ABSENT = "mps" if HAS_GPU else "cuda"
"""A device that this machine does not have."""


@pytest.fixture
def gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the planner see two GPUs; nothing is computed."""
    monkeypatch.setattr(devices, "list_devices", lambda: ("cuda", "cuda:0", "cuda:1", "cpu"))


def list_addresses(tmp_path: Path, model: Any, **options: Any) -> dict[str, str]:
    spec = make_small_spec(models=[model], metrics=["nDCG"])
    plan, _ = api.plan(spec, out=tmp_path, **options)
    return {stage.title: stage.digest for stage in plan.stages}


@pytest.mark.usefixtures("gpus")
def test_auto_and_numbers_are_resolved() -> None:
    assert find_device("auto") == "cuda"
    assert find_device("cuda:1") == "cuda:1"
    assert [choose_precision("auto", name) for name in ("cuda:1", "mps", "cpu")] == [
        *("bfloat16", "float32", "float32")
    ]
    assert choose_precision("float32", "cuda") == "float32"


def test_the_device_of_the_spec_is_a_default_that_the_model_overrides(tmp_path: Path) -> None:
    spec = make_small_spec(models=["MostPop", BPR, {**BPR, "label": "own", "device": "auto"}])
    plan, _ = api.plan({**spec, "device": "cpu"}, out=tmp_path)
    _, default, own = plan.experiment.models
    assert (default.plugin.device, own.plugin.device) == ("cpu", "auto")
    plan, _ = api.plan({**spec, "device": ABSENT}, out=tmp_path, device="cpu")
    assert plan.experiment.models[1].plugin.device == "cpu", "the option replaces the key"


def test_a_device_that_the_machine_lacks_is_refused_by_plan(tmp_path: Path) -> None:
    path = tmp_path / "spec.yaml"
    path.write_text(
        "name: x\ndataset: demo\nsplit: {name: random, test: 0.2}\nmetrics: [nDCG]\n"
        f"models:\n  - MostPop\n  - {{name: BPR-MF, device: {ABSENT}}}\n  - NeuMF\n  - MultiVAE\n"
    )
    with pytest.raises(Faults) as caught:
        api.plan(path, out=tmp_path, device=ABSENT)
    first, second = caught.value.faults
    assert first.where.endswith("spec.yaml:7:28: models[1].device")
    assert second.where == f"--device={ABSENT}: device"
    for fault in (first, second):
        assert f"device {ABSENT}: torch" in fault.message
        assert f"finds {', '.join(list_devices())} on this machine" in fault.message
        assert fault.remedy == f"set device: auto, or {' or '.join(list_devices())}"


def test_plan_prints_the_warning_of_an_unused_device(tmp_path: Path) -> None:
    write_small_spec(tmp_path, SMALL.replace(", ItemKNN", ""))
    for device, n in (("cuda", 1), ("cpu", 0)):
        planned = invoke_recbias("plan", "small", "--device", device, folder=tmp_path)
        assert planned.code == 0
        assert planned.err.count(f"warning: device {device} has no effect") == n


@pytest.mark.usefixtures("gpus")
def test_another_device_has_another_address_but_another_gpu_has_not(tmp_path: Path) -> None:
    addresses = {name: list_addresses(tmp_path, BPR, device=name) for name in ("cpu", "cuda:1")}
    cuda = list_addresses(tmp_path, BPR)
    assert addresses["cuda:1"] == cuda
    differing = {title for title in cuda if cuda[title] != addresses["cpu"][title]}
    assert differing == {"fit BPR-MF", "recommend BPR-MF", "measure nDCG of BPR-MF"}
    without = [list_addresses(tmp_path, "MostPop", device=name) for name in ("cpu", "cuda")]
    assert without[0] == without[1], "a model without a device has the same address"


@pytest.mark.usefixtures("gpus")
def test_stages_have_the_devices_of_their_model(tmp_path: Path) -> None:
    spec = make_small_spec(models=["MostPop", {**BPR, "device": "cuda:1"}], metrics=["nDCG"])
    plan, _ = api.plan(spec, out=tmp_path)
    assert {stage.title: stage.devices for stage in plan.stages if stage.devices} == {
        "fit BPR-MF": ("cuda:1",),
        "recommend BPR-MF": ("cuda:1",),
    }


def test_the_manifest_and_the_report_name_the_devices(tmp_path: Path) -> None:
    network = {"name": "NeuMF", "epochs": 1, "patience": 0}  # without compiled loops
    spec = make_small_spec(models=["MostPop", network], report={"formats": ["md"]})
    run = recbias.run(spec, out=tmp_path, device="cpu")
    described = [(model["device"], model["precision"]) for model in run.manifest["models"]]
    assert described == [("cpu", None), ("cpu", "float32")]
    assert run.manifest["gpus"] == {}
    report = (run.folder / "report.md").read_text()
    assert "Devices: cpu: MostPop; cpu, float32: NeuMF" in report


@pytest.mark.gpu
@pytest.mark.skipif(not HAS_GPU, reason="this machine has no GPU")
def test_a_run_on_a_gpu_names_it(tmp_path: Path) -> None:
    run = recbias.run(make_small_spec(models=[BPR]), out=tmp_path, device="cuda")
    assert run.manifest["models"][0]["device"] == "cuda"
    assert run.manifest["gpus"] == {"cuda": torch.cuda.get_device_name("cuda")}


def test_memory_that_other_processes_hold_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    gib = 2**30
    held = {0: 30, 1: 1, 2: 30}  # torch asks for numbers: "cuda" has none
    shares = {0: 1.0, 1: 1.0, 2: 0.25}
    monkeypatch.setattr(
        devices, "list_devices", lambda: ("cuda", "cuda:0", "cuda:1", "cuda:2", "cpu")
    )
    for name, function in (
        ("current_device", lambda: 0),
        ("get_per_process_memory_fraction", shares.get),
        ("mem_get_info", lambda device: ((80 - 2 - held[device]) * gib, 80 * gib)),
        ("memory_reserved", lambda device: 2 * gib),
    ):
        monkeypatch.setattr(torch.cuda, name, function)
    devices._warn_about_others.cache_clear()
    with collect_warnings() as warnings:
        for name in ("cuda", "cuda:0", "cuda:1", "cuda:2", "cpu"):
            resolve_device(name)  # type: ignore[arg-type]
    assert warnings == [
        "cuda:0: other processes hold 30,020 MB of the 81,920 MB of the GPU; nvidia-smi lists them"
    ]
    devices._warn_about_others.cache_clear()
