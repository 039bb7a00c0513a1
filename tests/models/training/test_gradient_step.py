"""Captured steps, and batches that are copied in chunks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch

from recbias.core.context import collect_warnings
from recbias.core.dataset import AnyArray
from recbias.models import training
from recbias.models.captured import CapturedStep
from recbias.models.deepfm import DeepFM
from recbias.models.neumf import NeuMF
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
