from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch

from recbias.core.context import collect_facts, collect_warnings
from recbias.core.dataset import AnyArray
from recbias.models import captured as passes_module
from recbias.models import training
from recbias.models.captured import CapturedStep, capture_passes
from recbias.models.pair_networks import DeepFM, NeuMF
from recbias.models.training import iterate_batches
from support.models.recommending import make_random_data

CPU = torch.device("cpu")


@pytest.mark.parametrize("chunk", [1, 7, 2**20])
@pytest.mark.parametrize("batch_size", [1, 3, 20])
def test_batches_are_the_samples_in_order(chunk: int, batch_size: int) -> None:
    samples: Sequence[AnyArray] = [
        np.arange(17, dtype=np.int32),
        np.linspace(0, 1, 17, dtype=np.float32),
    ]
    batches = [*iterate_batches(samples, batch_size, CPU, chunk=chunk)]
    assert [len(codes) for codes, _ in batches[:-1]] == [batch_size] * (len(batches) - 1)
    for number, dtype in enumerate((torch.int64, torch.float32)):
        joined = torch.cat([batch[number] for batch in batches])
        assert joined.dtype == dtype
        np.testing.assert_array_equal(joined.numpy(), samples[number])


needs_gpu = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
]


class TestOnAGpu:
    pytestmark = needs_gpu

    @pytest.mark.parametrize("model", [NeuMF, DeepFM])
    @pytest.mark.parametrize("dropout", [0.0, 0.3])
    def test_captured_steps_give_the_same_training(
        self, monkeypatch: pytest.MonkeyPatch, model: Any, dropout: float
    ) -> None:
        data = make_random_data(np.random.default_rng(4), 300, 200)
        settings = {"epochs": 3, "batch_size": 256, "patience": 0, "dropout": dropout}
        states = []
        for least in (10**9, 2):
            monkeypatch.setattr(training, "MIN_CAPTURED_STEPS", least)
            with collect_warnings() as warnings:
                fitted = model(device="cuda", **settings).fit(data, np.random.default_rng(1))
            assert not warnings
            states.append(fitted.state())
        for name, array in states[0].items():  # sums of gradients are rounded in any order
            assert np.abs(states[1][name] - array).mean() < 2e-4, name
            np.testing.assert_allclose(states[1][name], array, atol=0.02)

    def test_a_step_that_waits_for_the_device_is_not_captured(self) -> None:
        device = torch.device("cuda")
        noise = torch.Generator(device).manual_seed(1)

        def step(x: Any) -> Any:
            y = x + torch.rand(3, generator=noise, device=device)
            return y.sum() if float(y[0]) > 0 else -y.sum()

        captured = CapturedStep("Model", step, lambda: None, 3, (noise,))
        x = torch.ones(3, device=device)
        with collect_warnings() as warnings:
            totals = [captured(x) for _ in range(6)]
        assert totals == [None] * 6
        (warning,) = warnings
        assert warning.startswith("Model: no CUDA graph can be captured (")
        noise.manual_seed(7)
        first = torch.rand(3, generator=noise, device=device)
        noise.manual_seed(7)
        assert torch.equal(torch.rand(3, generator=noise, device=device), first)
        assert torch.rand(3, device=device).max() < 1

    def test_a_batch_of_another_size_is_left_to_the_caller(self) -> None:
        captured = CapturedStep("Model", lambda x: x.sum(), lambda: None, 3, ())
        x = torch.ones(3, device="cuda")
        totals = [captured(size * x[:size]) for size in (3, 3, 2, 3, 3, 2, 3)]
        assert [total is None for total in totals] == [True, True, True, True, False, True, False]
        (last,) = [total for total in totals[-1:] if total is not None]
        assert float(last) == 9


HAS_GPU = torch.cuda.is_available()
DEVICE = torch.device("cuda" if HAS_GPU else "cpu")

needs_gpu_of_captured_passes = [
    pytest.mark.gpu,
    pytest.mark.skipif(not HAS_GPU, reason="no CUDA device"),
]


class Body(torch.nn.Module):
    """Two layers with dropout, of which one parameter has no gradient."""

    def __init__(self, *, waits: bool = False) -> None:
        super().__init__()
        self.first, self.second = torch.nn.Linear(8, 16), torch.nn.Linear(16, 8)
        self.unused = torch.nn.Parameter(torch.zeros(3))
        self.waits = waits

    def forward(self, x: torch.Tensor, scale: float = 1.0) -> dict[str, Any]:
        states = torch.nn.functional.dropout(self.first(x).relu(), 0.3, self.training)
        if self.waits and float(states.detach().sum()) > 1e9:
            states = states * 2
        return {"states": self.second(states) * scale, "name": "body"}


def make_network(**options: Any) -> torch.nn.ModuleDict:
    torch.manual_seed(3)
    head = torch.nn.Linear(8, 2)
    return torch.nn.ModuleDict({"body": Body(**options), "head": head}).to(DEVICE).train()


def train(network: Any, *, n_parts: int = 1, autocast: bool = False) -> list[float]:
    """Train for 24 steps on batches of three shapes; return the losses."""
    optimizer = torch.optim.AdamW(network.parameters(), lr=0.01)
    generator = torch.Generator().manual_seed(9)
    losses = []
    for step in range(24):
        torch.manual_seed(step)
        optimizer.zero_grad(set_to_none=True)
        total = 0.0
        for _ in range(n_parts):
            x = torch.randn(4 + 4 * (step % 3), 8, generator=generator).to(DEVICE)
            with torch.autocast(DEVICE.type, dtype=torch.bfloat16, enabled=autocast):
                states = network["body"](x=x)["states"]
            loss = (network["head"](states.float()) - x[:, :2]).square().mean()
            loss.backward()
            total += float(loss.detach())
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        losses.append(total)
    return losses


def test_nothing_is_captured_on_a_cpu() -> None:
    body = Body()
    with capture_passes(body, "model"), collect_facts() as facts:
        assert "forward" not in vars(body)
    assert not facts


class TestOnAGpuCapturedPasses:
    pytestmark = needs_gpu_of_captured_passes

    @pytest.mark.parametrize(("n_parts", "autocast"), [(1, False), (1, True), (3, False)])
    def test_captured_passes_give_the_same_training(self, n_parts: int, autocast: bool) -> None:
        plain, captured = make_network(), make_network()
        expected = train(plain, n_parts=n_parts, autocast=autocast)
        with collect_facts() as facts, capture_passes(captured["body"], "model"):
            losses = train(captured, n_parts=n_parts, autocast=autocast)
        assert facts["cuda_graphs"] == 3
        assert losses == pytest.approx(expected, rel=1e-5)
        for ours, theirs in zip(captured.parameters(), plain.parameters(), strict=True):
            torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-6)
        assert captured["body"].unused.grad is None
        assert "forward" not in vars(captured["body"])

    def test_the_gradients_of_two_passes_before_a_backward_pass_are_right(self) -> None:
        network = make_network().eval()
        body: Any = network["body"]
        x = torch.randn(4, 8, device=DEVICE)
        (body(x=x)["states"].sum() + 3 * body(x=2 * x)["states"].square().sum()).backward()
        expected = [p.grad.clone() for p in body.parameters() if p.grad is not None]
        with capture_passes(body, "model"):
            for _ in range(4):
                body.zero_grad(set_to_none=True)
                first, second = body(x=x)["states"], body(x=2 * x)["states"]
                (first.sum() + 3 * second.square().sum()).backward()
        found = [p.grad for p in body.parameters() if p.grad is not None]
        torch.testing.assert_close(found, expected)

    def test_a_pass_whose_gradients_are_never_asked_for_does_not_block_others(self) -> None:
        body: Any = make_network()["body"]
        x = torch.randn(4, 8, device=DEVICE)
        with collect_facts() as facts, capture_passes(body, "model"):
            for _ in range(3):
                body(x=x)
            body(x=x[:2])
            body(x=x[:2])
        assert facts["cuda_graphs"] == 2

    def test_gradients_that_were_there_are_added_to(self) -> None:
        body: Any = make_network().eval()["body"]
        x = torch.randn(4, 8, device=DEVICE)
        with capture_passes(body, "model"):
            for _ in range(3):
                body.zero_grad(set_to_none=True)
                body(x=x)["states"].sum().backward()
            alone = body.first.weight.grad.clone()
            body.first.weight.grad = torch.ones_like(alone)
            body(x=x)["states"].sum().backward()
        torch.testing.assert_close(body.first.weight.grad, alone + 1)

    def test_passes_without_gradients_are_not_captured(self) -> None:
        body: Any = make_network()["body"]
        with collect_facts() as facts, capture_passes(body, "model"), torch.no_grad():
            for _ in range(3):
                body(x=torch.randn(4, 8, device=DEVICE))
        assert facts["cuda_graphs"] == 0

    def test_a_module_that_waits_for_the_device_is_trained_without_graphs(self) -> None:
        plain, captured = make_network(waits=True), make_network(waits=True)
        expected = train(plain)
        with (
            collect_warnings() as warnings,
            collect_facts() as facts,
            capture_passes(captured["body"], "LMRec"),
        ):
            losses = train(captured)
        assert facts["cuda_graphs"] == 0
        assert losses == pytest.approx(expected, rel=1e-5)
        (warning,) = warnings
        assert str(warning).startswith("LMRec: no CUDA graph can be captured")

    def test_there_are_no_more_graphs_than_a_limit(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(passes_module, "MAX_GRAPHS", 1)
        plain, captured = make_network(), make_network()
        expected = train(plain)
        with collect_facts() as facts, capture_passes(captured["body"], "model"):
            losses = train(captured)
        assert facts["cuda_graphs"] == 1
        assert losses == pytest.approx(expected, rel=1e-5)
