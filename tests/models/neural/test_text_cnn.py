from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

from recbias.models.convmf import TextCNN
from recbias.models.training import Dense

CPU = torch.device("cpu")


def make_network(
    rng: np.random.Generator, *, n_words: int = 9, windows: tuple[int, ...] = (2, 3)
) -> Any:
    network = TextCNN.initialize((n_words, 4, 5, 3), windows, device=CPU, rng=rng)
    for layer in network.filters:
        layer.bias.data += 0.1
    return network


def pad_texts(*lines: list[int], width: int = 8) -> Any:
    return torch.tensor([line + [0] * (width - len(line)) for line in lines])


def make_scalar(value: float) -> Any:
    return torch.tensor([[value]])


def test_vector_of_a_text_by_hand() -> None:
    # words 1, -2, 3; windows of two: 1 - 2 + 0.5 < 0 and -2 + 3 + 0.5 = 1.5, the maximum;
    # hidden tanh(2 · 1.5 - 1); vector tanh(3 · hidden)
    network = TextCNN(
        torch.tensor([[0.0], [1.0], [-2.0], [3.0]]),
        (2,),
        [Dense(torch.ones(2, 1), torch.tensor([0.5]))],
        Dense(make_scalar(2.0), torch.tensor([-1.0])),
        Dense(make_scalar(3.0), torch.tensor([0.0])),
    )
    vector = network(torch.tensor([[1, 2, 3, 0]]))
    assert vector.item() == pytest.approx(math.tanh(3 * math.tanh(2)), rel=1e-6)


def test_filters_equal_conv1d(rng: np.random.Generator) -> None:
    network = make_network(rng)
    codes = torch.from_numpy(rng.integers(1, 10, (6, 8)))
    words = torch.nn.functional.embedding(codes, network.words).transpose(1, 2)
    features = [
        torch.nn.functional.conv1d(words, layer.weight.T.reshape(5, 4, window), layer.bias)
        .relu()
        .amax(2)
        for window, layer in zip((2, 3), network.filters, strict=True)
    ]
    hidden = network.hidden(torch.cat(features, 1)).tanh()
    expected = network.last(hidden).tanh()
    torch.testing.assert_close(network(codes), expected, rtol=1e-5, atol=1e-6)


def test_text_shorter_than_a_window_is_padded_with_zeros(rng: np.random.Generator) -> None:
    network = make_network(rng, windows=(3,))
    word = network.words[7].detach().numpy()
    window_words = np.stack([word, np.zeros(4), np.zeros(4)], 1).ravel()
    layer = network.filters[0]
    feature = torch.from_numpy(window_words).float() @ layer.weight + layer.bias
    expected = network.last(network.hidden(feature.relu()).tanh()).tanh()
    torch.testing.assert_close(network(pad_texts([7]))[0], expected, rtol=1e-5, atol=1e-6)


def test_gradients_equal_finite_differences(rng: np.random.Generator) -> None:
    codes = pad_texts([1, 2, 3], [4], [], [2, 2, 5, 1])
    shapes = [(6, 2), (4, 3), (3,), (3, 4), (4,), (4, 2), (2,)]
    values = [torch.tensor(rng.normal(size=shape), requires_grad=True) for shape in shapes]

    def encode(words: Any, *parameters: Any) -> Any:
        table = torch.cat([torch.zeros(1, 2, dtype=words.dtype), words])  # row 0 is the padding
        layers = [Dense(*parameters[start : start + 2]) for start in (0, 2, 4)]
        return TextCNN(table, (2,), [layers[0]], layers[1], layers[2])(codes)

    words = values[0][1:].detach().clone().requires_grad_()
    assert torch.autograd.gradcheck(encode, (words, *values[1:]))
