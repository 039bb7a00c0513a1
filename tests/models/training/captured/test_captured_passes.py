from __future__ import annotations

from typing import Any

import pytest
import torch

from recbias.core.context import collect_facts, collect_warnings
from recbias.models import captured as passes_module
from recbias.models.captured import capture_passes

HAS_GPU = torch.cuda.is_available()
DEVICE = torch.device("cuda" if HAS_GPU else "cpu")

needs_gpu = [pytest.mark.gpu, pytest.mark.skipif(not HAS_GPU, reason="no CUDA device")]


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


class TestOnAGpu:
    pytestmark = needs_gpu

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
