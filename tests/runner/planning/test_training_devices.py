"""``devices:``, by which several devices of a machine train one model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from recbias import api
from recbias.core.context import collect_warnings
from recbias.core.errors import Contradiction, Faults, OutOfRange, UnknownKey, UserError
from recbias.kernels import devices
from recbias.kernels.devices import find_devices, resolve_device
from recbias.models.lmrec import LMRec
from recbias.runner.stage_planner import describe_devices
from support.models.small_encoder import write_small_encoder


@pytest.fixture
def gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the planner see two GPUs and three cores; nothing is computed."""
    monkeypatch.setattr(devices, "list_devices", lambda: ("cuda", "cuda:0", "cuda:1", "cpu"))
    monkeypatch.setattr(devices, "count_cores", lambda: 3)


def plan_model(tmp_path: Path, model: str) -> None:
    write_small_encoder(tmp_path)
    path = tmp_path / "spec.yaml"
    path.write_text(
        "name: x\ndataset: {name: demo, reviews: true}\nsplit: {name: random, test: 0.2}\n"
        f"metrics: [nDCG]\nmodels:\n  - MostPop\n  - {model}\n"
    )
    api.plan(path, out=tmp_path)


def find_fault(tmp_path: Path, model: str) -> UserError:
    with pytest.raises(UserError) as caught:
        plan_model(tmp_path, model)
    error = caught.value
    return error.faults[0] if isinstance(error, Faults) else error


@pytest.mark.usefixtures("gpus")
def test_processes_have_the_first_gpus_or_the_cpu() -> None:
    assert find_devices("cuda", 2) == ("cuda:0", "cuda:1")
    assert find_devices("cpu", 3) == ("cpu", "cpu", "cpu")
    assert find_devices("cuda:1", 1) == ("cuda:1",)
    with pytest.raises(Contradiction, match="devices: 2, but device cuda:1 is one"):
        find_devices("cuda:1", 2)
    with pytest.raises(Contradiction, match="device mps is one"):
        find_devices("mps", 2)


@pytest.mark.usefixtures("gpus")
@pytest.mark.parametrize(
    ("device", "message"),
    [("cpu", "has 3 cores"), ("cuda", "has 2 GPUs"), ("cuda:0", "device cuda:0 is one")],
)
def test_more_devices_than_the_machine_has_are_refused_at_the_key(
    tmp_path: Path, device: str, message: str
) -> None:
    fault = find_fault(tmp_path, f"{{name: LMRec, encoder: ., device: {device}, devices: 4}}")
    assert "models[1].devices" in fault.where
    assert message in fault.message
    assert fault.remedy


@pytest.mark.parametrize("model", ["ItemKNN", "EASE", "BPR-MF"])
def test_a_model_that_one_device_trains_has_no_such_setting(tmp_path: Path, model: str) -> None:
    fault = find_fault(tmp_path, f"{{name: {model}, devices: 2}}")
    assert isinstance(fault, UnknownKey)
    assert "spec.yaml:7:" in fault.where
    assert "devices" in fault.where + fault.message


@pytest.mark.usefixtures("gpus")
def test_the_manifest_says_how_many_devices_train() -> None:
    settings: dict[str, Any] = {"encoder": ".", "device": "cuda", "precision": "bfloat16"}
    assert describe_devices(LMRec(**settings)) == {"device": "cuda", "precision": "bfloat16"}
    assert describe_devices(LMRec(**settings, devices=2))["devices"] == 2


def test_zero_devices_are_refused(tmp_path: Path) -> None:
    fault = find_fault(tmp_path, "{name: LMRec, encoder: ., devices: 0}")
    assert isinstance(fault, OutOfRange)


@pytest.mark.usefixtures("gpus")
def test_memory_that_other_processes_hold_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

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
