"""``devices:``, by which several devices of a machine train one model."""

from __future__ import annotations

from pathlib import Path

import pytest

from recbias import api
from recbias.core.errors import Contradiction, Faults, UserError
from recbias.kernels import devices
from recbias.kernels.devices import find_devices
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
