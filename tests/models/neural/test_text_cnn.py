from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

from recbias.models.neural.text_cnn import TextCNN
from recbias.models.training.layers import Dense

CPU = torch.device("cpu")


def drawn(rng: np.random.Generator, *, n_words: int = 9, windows: tuple[int, ...] = (2, 3)) -> Any:
    found = TextCNN.drawn((n_words, 4, 5, 3), windows, device=CPU, rng=rng)
    for each in found.filters:
        each.bias.data += 0.1
    return found


def texts(*lines: list[int], width: int = 8) -> Any:
    return torch.tensor([line + [0] * (width - len(line)) for line in lines])


def one(value: float) -> Any:
    return torch.tensor([[value]])


def test_a_text_by_hand() -> None:
    # words 1, -2, 3; windows of two: 1 - 2 + 0.5 < 0 and -2 + 3 + 0.5 = 1.5, the larger;
    # hidden tanh(2 · 1.5 - 1); vector tanh(3 · that)
    network = TextCNN(
        torch.tensor([[0.0], [1.0], [-2.0], [3.0]]),
        (2,),
        [Dense(torch.ones(2, 1), torch.tensor([0.5]))],
        Dense(one(2.0), torch.tensor([-1.0])),
        Dense(one(3.0), torch.tensor([0.0])),
    )
    found = network(torch.tensor([[1, 2, 3, 0]]))
    assert found.item() == pytest.approx(math.tanh(3 * math.tanh(2)), rel=1e-6)


def test_the_filters_are_those_of_conv1d(rng: np.random.Generator) -> None:
    network = drawn(rng)
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


def test_a_text_is_read_as_by_a_plain_loop(rng: np.random.Generator) -> None:
    network, line = drawn(rng), [3, 1, 4, 1, 5]
    words = network.words.detach().numpy()[line]
    features = []
    for window, layer in zip((2, 3), network.filters, strict=True):
        weight, bias = layer.weight.detach().numpy(), layer.bias.detach().numpy()
        best = np.zeros(5)
        for start in range(len(line) - window + 1):
            seen = words[start : start + window].T.ravel()
            best = np.maximum(best, seen @ weight + bias)
        features.append(best)
    found = network(texts(line, [1, 2, 3, 4, 5, 6, 7, 8]))[0].detach().numpy()
    hidden = np.tanh(np.concatenate(features) @ network.hidden.weight.detach().numpy())
    expected = np.tanh(hidden @ network.last.weight.detach().numpy())
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)


def test_a_text_reads_the_same_whoever_stands_beside_it(rng: np.random.Generator) -> None:
    network = drawn(rng)
    lines = ([1], [2, 3], [4, 5, 6, 7, 8, 9], [9, 9, 9])
    together = network(texts(*lines, width=20))
    for place, line in enumerate(lines):
        alone = network(texts(line, width=max(3, len(line))))[0]
        torch.testing.assert_close(together[place], alone, rtol=1e-5, atol=1e-6)


def test_a_text_shorter_than_a_window_goes_on_with_zeros(rng: np.random.Generator) -> None:
    network = drawn(rng, windows=(3,))
    word = network.words[7].detach().numpy()
    seen = np.stack([word, np.zeros(4), np.zeros(4)], 1).ravel()
    layer = network.filters[0]
    feature = torch.from_numpy(seen).float() @ layer.weight + layer.bias
    expected = network.last(network.hidden(feature.relu()).tanh()).tanh()
    torch.testing.assert_close(network(texts([7]))[0], expected, rtol=1e-5, atol=1e-6)


def test_no_words_is_the_vector_0_and_teaches_nothing(rng: np.random.Generator) -> None:
    network = drawn(rng)
    found = network(texts([], []))
    assert found.tolist() == [[0.0] * 3] * 2
    found.sum().backward()
    assert all(not each.grad.any() for each in network.parameters())


def test_gradients_are_finite_differences(rng: np.random.Generator) -> None:
    codes = texts([1, 2, 3], [4], [], [2, 2, 5, 1])
    shapes = [(6, 2), (4, 3), (3,), (3, 4), (4,), (4, 2), (2,)]
    values = [torch.tensor(rng.normal(size=each), requires_grad=True) for each in shapes]

    def vectors(words: Any, *rest: Any) -> Any:
        layers = [Dense(*rest[place : place + 2]) for place in (0, 2, 4)]
        return TextCNN(words, (2,), [layers[0]], layers[1], layers[2])(codes)

    with torch.no_grad():
        values[0][0] = 0  # the word that is none
    words = values[0]

    def of_known(known: Any, *rest: Any) -> Any:
        return vectors(torch.cat([words[:1].detach(), known]), *rest)

    known = words[1:].detach().clone().requires_grad_()
    assert torch.autograd.gradcheck(of_known, (known, *values[1:]))


def test_dropout_is_drawn_by_its_generator(rng: np.random.Generator) -> None:
    network, codes = drawn(rng), texts([1, 2, 3])
    first, again, other = (
        network(codes, dropout=0.5, generator=torch.Generator().manual_seed(seed))
        for seed in (1, 1, 2)
    )
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert torch.equal(network(codes), network(codes))
