from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from recbias.core.context import collect_facts
from recbias.models.lightgcn import Graph, LightGCN, normalize_adjacency
from support.models import recommending
from support.worlds.small_worlds import make_interactions

SMALL = LightGCN(
    embedding_size=8, layers=2, epochs=30, batch_size=64, learning_rate=0.02, device="cpu"
)
# User 0 has items 0 and 1, user 1 has item 1
TINY = make_interactions([(0, 0), (0, 1), (1, 1)])


def test_vectors_of_two_users_and_two_items_by_hand() -> None:
    # Degrees: users 2 and 1, items 1 and 2. Edges: (0, 0) 1 / sqrt(2), (0, 1) 1 / 2, (1, 1)
    # 1 / sqrt(2). Vectors 1, 2, 3 and 4:
    # layer 1: 3 / sqrt(2) + 4 / 2, 4 / sqrt(2), 1 / sqrt(2), 1 / 2 + 2 / sqrt(2)
    root = 2**-0.5
    first = [3 * root + 2, 4 * root, root, 0.5 + 2 * root]
    second = [
        root * first[2] + 0.5 * first[3],
        root * first[3],
        root * first[0],
        0.5 * first[0] + root * first[1],
    ]
    start = torch.tensor([[1.0], [2.0], [3.0], [4.0]], dtype=torch.float64)
    graph = Graph.from_interactions(TINY, start)
    for layers, totals in ((0, start[:, 0].numpy()), (1, first), (2, second)):
        mean = graph.propagate(start, layers)[:, 0].numpy() * (layers + 1)
        others = {0: 0, 1: start[:, 0].numpy(), 2: start[:, 0].numpy() + np.array(first)}
        np.testing.assert_allclose(mean, others[layers] + np.array(totals), rtol=1e-6)


def test_adjacency_equals_the_formula_on_a_dense_matrix(rng: np.random.Generator) -> None:
    train = recommending.make_random_data(rng).train
    pairs = train.binary.toarray()
    zeros = [np.zeros((n, n)) for n in pairs.shape]
    adjacency = np.block([[zeros[0], pairs], [pairs.T, zeros[1]]])
    degrees = np.maximum(adjacency.sum(axis=1), 1)
    expected = adjacency / np.sqrt(np.outer(degrees, degrees))
    np.testing.assert_allclose(normalize_adjacency(train.binary).toarray(), expected, rtol=1e-6)


@pytest.mark.parametrize("layers", [0, 1, 3])
def test_gradients_equal_finite_differences(layers: int, rng: np.random.Generator) -> None:
    vectors = torch.tensor(rng.normal(size=(4, 2)), requires_grad=True)
    graph = Graph.from_interactions(TINY, vectors)
    model = LightGCN(layers=layers, reg=0.3)
    batch = [torch.tensor(codes) for codes in ([0, 0, 1], [0, 1, 1], [1, 0, 0])]

    def compute_loss(values: Any) -> Any:
        return model.sum_losses(values, graph, *batch)

    assert torch.autograd.gradcheck(compute_loss, [vectors])


def test_loss_by_hand() -> None:
    # No layers: scores 2 · 3 and 2 · (-1) of user 0; squares 4 + 9 + 1
    vectors = torch.tensor([[2.0], [5.0], [3.0], [-1.0]])
    graph, batch = Graph.from_interactions(TINY, vectors), [torch.tensor([n]) for n in (0, 0, 1)]
    loss = LightGCN(layers=0, reg=0.1).sum_losses(vectors, graph, *batch)
    assert loss.item() == pytest.approx(np.log1p(np.exp(-8.0)) + 0.05 * 14, rel=1e-5)


def test_the_default_has_the_stated_number_of_triples_and_at_most_512_steps() -> None:
    auto = LightGCN()
    assert auto.batch_size == "auto"
    for n_pairs, size in ((0, 2048), (512 * 2048, 2048), (512 * 2048 + 1, 2049), (10**8, 195_313)):
        assert auto.count_triples(n_pairs) == size
        assert -(-n_pairs // size) <= 512
    assert LightGCN(batch_size=7).count_triples(10**8) == 7


def test_auto_is_the_fit_of_its_number_and_is_recorded() -> None:
    data, _ = recommending.make_checkerboard(20)  # of fewer pairs than 2048
    by_number = replace(SMALL, batch_size=2048).fit(data, np.random.default_rng(1)).state()
    with collect_facts() as facts:
        auto = replace(SMALL, batch_size="auto").fit(data, np.random.default_rng(1)).state()
    for name, array in by_number.items():
        np.testing.assert_array_equal(array, auto[name])
    assert facts == {"triples_a_step": 2048}
