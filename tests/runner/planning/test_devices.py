from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch

import recbias
from recbias import api
from recbias.core.errors import Faults
from recbias.core.plugins import is_cuda, omit_device_numbers
from recbias.kernels import devices
from recbias.kernels.devices import choose_precision, find_device, list_devices, resolve_device
from recbias.language.endpoints import LanguageModel
from recbias.models.baselines import MostPop
from recbias.models.factorization import BPRMF
from recbias.runner.address import name_gpus
from recbias.runner.stage_planner import choose_devices, describe_devices
from recbias.runner.stage_planner import list_devices as used
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


def test_the_machine_has_a_cpu_and_auto_is_its_first_device() -> None:
    assert list_devices()[-1] == "cpu"
    assert find_device("auto") == list_devices()[0]
    assert find_device("cpu") == "cpu"


def test_a_build_of_torch_for_cpus_is_not_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "_find_torch_version", lambda: "2.13.0+cpu")
    monkeypatch.setitem(sys.modules, "torch", None)  # an import would fail
    assert list_devices() == ("cpu",)


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


def test_a_resolved_spec_lets_another_device_replace_that_of_the_spec(tmp_path: Path) -> None:
    own = {**BPR, "label": "own", "device": "auto"}
    plan, _ = api.plan(make_small_spec(models=[BPR, own]), out=tmp_path, device="cpu")
    spec = plan.experiment.as_spec()
    assert spec["device"] == "cpu"
    assert ["device" in model for model in spec["models"]] == [False, True]
    again, _ = api.plan(spec, out=tmp_path)
    assert [model.plugin.device for model in again.experiment.models] == ["cpu", "auto"]


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


def list_warnings(tmp_path: Path, *models: Any, device: str) -> tuple[str, ...]:
    spec = make_small_spec(models=list(models), metrics=["nDCG"])
    plan, _ = api.plan(spec, out=tmp_path, device=device)
    return api.list_warnings(plan)


@pytest.mark.usefixtures("gpus")
def test_a_device_that_no_model_uses_is_a_warning_that_names_those_that_would(
    tmp_path: Path,
) -> None:
    own = {**BPR, "device": "cpu"}
    for models in (["MostPop"], ["MostPop", own]):
        (warning,) = list_warnings(tmp_path, *models, device="cuda")
        assert warning.startswith("device cuda has no effect: no model of the spec uses it")
        assert "BPR-MF, " in warning
        assert "NeuMF, " in warning
        assert "MostPop" not in warning
    assert list_warnings(tmp_path, "MostPop", device="auto") == ()
    assert list_warnings(tmp_path, "MostPop", BPR, device="cuda") == ()


@pytest.mark.usefixtures("gpus")
def test_a_language_model_uses_the_device_unless_it_is_on_a_server(tmp_path: Path) -> None:
    local = {"provider": "transformers", "model": "tiny"}
    served = {"provider": "openai", "model": "m", "base_url": "http://localhost:1/v1"}
    counts = [
        len(list_warnings(tmp_path, {"name": "WOK", "llm": llm}, device="cuda"))
        for llm in (local, served)
    ]
    assert counts == [0, 1]


def test_plan_prints_the_warning_of_an_unused_device(tmp_path: Path) -> None:
    write_small_spec(tmp_path, SMALL.replace(", ItemKNN", ""))
    for device, n in (("cuda", 1), ("cpu", 0)):
        planned = invoke_recbias("plan", "small", "--device", device, folder=tmp_path)
        assert planned.code == 0
        assert planned.err.count(f"warning: device {device} has no effect") == n


def test_a_name_that_is_no_device_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Faults, match="must be one of auto, cpu, cuda") as caught:
        api.plan(make_small_spec(), out=tmp_path, device="gpu")
    assert str(caught.value.faults[0]).startswith("--device=gpu: device: ")


def test_auto_and_the_device_that_it_selects_share_their_results(tmp_path: Path) -> None:
    first = list_devices()[0]
    addresses = list_addresses(tmp_path, BPR)
    assert list_addresses(tmp_path, {**BPR, "device": first}) == addresses
    assert list_addresses(tmp_path, BPR, device=first) == addresses


@pytest.mark.usefixtures("gpus")
def test_another_device_has_another_address_but_another_gpu_has_not(tmp_path: Path) -> None:
    addresses = {name: list_addresses(tmp_path, BPR, device=name) for name in ("cpu", "cuda:1")}
    cuda = list_addresses(tmp_path, BPR)
    assert addresses["cuda:1"] == cuda
    differing = {title for title in cuda if cuda[title] != addresses["cpu"][title]}
    assert differing == {"fit BPR-MF", "ask BPR-MF", "measure nDCG of BPR-MF"}
    without = [list_addresses(tmp_path, "MostPop", device=name) for name in ("cpu", "cuda")]
    assert without[0] == without[1], "a model without a device has the same address"


PLUGIN = """\
from recbias.plugin import *
from recbias.models.baselines import MostPop


@dataclass(frozen=True)
class Mine(MostPop):
    device: Literal["auto", "cpu", "cuda"] = "cpu"
{method}
"""
METHOD = """
    def choose_device(self, default):
        return {"device": "cuda"}
"""


def test_a_plugin_of_the_user_has_the_device_of_the_spec_and_reports_the_one_it_uses(
    tmp_path: Path,
) -> None:
    path = tmp_path / "mine.py"
    spec = make_small_spec(models=[f"{path}:Mine"], metrics=["nDCG"])
    described = []
    for method, device in (("", None), ("", "auto"), (METHOD, None)):
        path.write_text(PLUGIN.format(method=method))
        plan, _ = api.plan(spec, out=tmp_path, device=device)
        (model,) = plan.experiment.models
        described.append((model.plugin.device, describe_devices(plan.model_plans[0].model.plugin)))
    assert described == [
        ("cpu", {"device": "cpu", "precision": None}),
        ("auto", {"device": None, "precision": None}),
        ("cpu", {"device": "cuda", "precision": "float32"}),
    ]


@pytest.mark.usefixtures("gpus")
def test_stages_have_the_devices_of_their_model(tmp_path: Path) -> None:
    spec = make_small_spec(models=["MostPop", {**BPR, "device": "cuda:1"}], metrics=["nDCG"])
    plan, _ = api.plan(spec, out=tmp_path)
    assert {stage.title: stage.devices for stage in plan.stages if stage.devices} == {
        "fit BPR-MF": ("cuda:1",),
        "ask BPR-MF": ("cuda:1",),
    }


@pytest.mark.usefixtures("gpus")
def test_parts_of_a_model_have_devices_of_their_own(tmp_path: Path) -> None:
    llm = {"provider": "transformers", "model": "tiny"}
    rerank = {"name": "LMRerank", "llm": llm, "candidates": {**BPR, "device": "cpu"}}
    plan, _ = api.plan(
        make_small_spec(models=[rerank], dataset={"name": "demo"}), out=tmp_path, device="cuda:1"
    )
    (model,) = choose_devices(plan.experiment).models
    assert model.plugin.llm.device == "cuda:1"
    assert model.plugin.candidates.model.device == "cpu"
    assert used(model.plugin) == ("cpu", "cuda:1")
    assert describe_devices(model.plugin) == {"device": "cpu, cuda:1", "precision": "float32"}
    (written,) = plan.experiment.models
    assert written.plugin.llm.device is None, "the spec stays as it was written"


def test_a_server_has_no_device() -> None:
    served = LanguageModel(model="m", base_url="http://user:secret@localhost:1/v1")
    assert served.choose_device("cuda") == {}
    request = served.build_request([])
    assert request.revision == ""


def test_replies_of_a_model_on_a_gpu_have_addresses_of_their_own() -> None:
    settings: Mapping[str, Any] = {"provider": "transformers", "model": "m", "revision": "r"}
    revisions = [
        LanguageModel(**settings, device=device).build_request([]).revision
        for device in (None, "cpu", "cuda", "cuda:1")
    ]
    assert revisions == ["r", "r", "r on cuda", "r on cuda"]


def test_models_without_a_device_compute_on_the_cpu() -> None:
    assert describe_devices(MostPop()) == {"device": "cpu", "precision": None}
    assert describe_devices(BPRMF(device="cpu")) == {"device": "cpu", "precision": "float32"}
    assert used(MostPop()) == ()


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
@pytest.mark.parametrize("name", ["auto", "cuda", "cuda:0"])
def test_every_name_of_a_gpu_is_a_device(name: Any) -> None:
    assert resolve_device(name).type == "cuda"


@pytest.mark.gpu
@pytest.mark.skipif(not HAS_GPU, reason="this machine has no GPU")
def test_a_run_on_a_gpu_names_it(tmp_path: Path) -> None:
    run = recbias.run(make_small_spec(models=[BPR]), out=tmp_path, device="cuda")
    assert run.manifest["models"][0]["device"] == "cuda"
    assert run.manifest["gpus"] == {"cuda": torch.cuda.get_device_name("cuda")}


def test_only_cuda_has_numbers_and_names() -> None:
    assert [is_cuda(name) for name in ("cuda", "cuda:3", "cpu", "mps")] == [
        True,
        True,
        False,
        False,
    ]
    assert omit_device_numbers([{"device": "cuda:1"}]) == [{"device": "cuda:1"}]
    assert name_gpus(["cpu", "mps"]) == {}
