from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn.functional import conv1d, max_pool1d

from recbias.core.context import collect_warnings
from recbias.core.dataset import TrainingData
from recbias.core.errors import MissingEvidence, UnknownColumn
from recbias.models.convmf import (
    ConvLearner,
    ConvMF,
    Documents,
    IdNetwork,
    TextCNN,
    encode_documents,
    warn_about_missing_texts,
)
from recbias.models.factorization import FactorTables
from recbias.models.training import Dense
from support.worlds.attribute_worlds import make_item_data
from support.worlds.small_worlds import make_interactions

SMALL = ConvMF(
    text=("text",),
    embedding_size=8,
    epochs=30,
    batch_size=64,
    learning_rate=0.02,
    reg_user=0.5,
    reg_item=0.5,
    word_size=8,
    filters=4,
    windows=(1, 2),
    device="cpu",
)
ELLIOT = replace(SMALL, variant="elliot", embedding_size=16)


def make_colours(template: str = "{}") -> TrainingData:
    """Return users who like red or blue items. The text of an item names its colour.

    Each of the last 20 items has one user only, who likes the other colour.
    """
    rng = np.random.default_rng(3)
    pairs = [
        (u, i) for u in range(40) for i in range(40) if (u + i) % 2 == 0 and rng.random() < 0.6
    ]
    pairs += [(i - 39, i) for i in range(40, 60)]
    names = [template.format(["red", "blue"][i % 2]) for i in range(60)]
    return make_item_data(
        pairs, {"text": [f"a {name} thing {i % 7}" for i, name in enumerate(names)]}
    )


def rank_by_colour(data: TrainingData) -> float:
    """Return how often rare items of the own colour score above those of the other colour."""
    model = replace(SMALL, reg_item=20.0, epochs=40)
    fitted: Any = model.fit(data, np.random.default_rng(0))
    scores = fitted.scores(np.arange(40, dtype=np.int32))[:, 40:]
    red, blue = scores[:, 0::2], scores[:, 1::2]
    above = (red[:, :, None] > blue[:, None, :]).mean(axis=(1, 2))
    return float(np.where(np.arange(40) % 2 == 0, above, 1 - above).mean())


def test_text_predicts_who_likes_a_rare_item() -> None:
    assert rank_by_colour(make_colours()) > 0.9
    assert rank_by_colour(make_colours(template="grey")) < 0.6


def test_elliot_ranks_items_alike_for_all_users_without_text() -> None:
    data = TrainingData(
        make_interactions([(u, i) for u in range(12) for i in range(8) if i <= u % 6 + 1])
    )
    fitted: Any = replace(ELLIOT, epochs=60).fit(data, np.random.default_rng(0))
    assert (
        fitted.item_scores[:2].min() > fitted.item_scores[2:].max()
    )  # all users have items 0 and 1
    assert fitted.embeddings().users.shape == (12, 16)


def sample_doubles(*shape: int, rng: np.random.Generator) -> Any:
    return torch.tensor(rng.normal(size=shape), requires_grad=True)


def make_learner(rng: np.random.Generator) -> ConvLearner:
    """Return three users and four items, the last without text, in double precision."""
    words = sample_doubles(6, 2, rng=rng)
    with torch.no_grad():
        words[0] = 0
    shapes = [(4, 3), (3,), (3, 4), (4,), (4, 2), (2,)]
    parameters = [sample_doubles(*shape, rng=rng) for shape in shapes]
    layers = [Dense(*parameters[start : start + 2]) for start in (0, 2, 4)]
    samples = (
        np.array([0, 1, 2, 2], np.int32),
        np.array([0, 1, 2, 3], np.int32),
        np.array([1.0, 3.0, 5.0, 2.0]),
    )
    return ConvLearner(
        reg_user=0.3,
        reg_item=0.7,
        reg_network=0.2,
        dropout=0.0,
        tables=FactorTables(sample_doubles(3, 2, rng=rng), sample_doubles(4, 2, rng=rng)),
        network=TextCNN(words, (2,), layers[:1], layers[1], layers[2]),
        codes=torch.tensor([[1, 2, 3], [4, 0, 0], [5, 5, 1], [0, 0, 0]]),
        items_with_text=np.arange(3),
        sampler=lambda rng: samples,
    )


def compute_objective(learner: ConvLearner, users: Any, items: Any, values: Any) -> Any:
    """Return twice equation 6 of the paper, term by term."""
    p, q = learner.tables.users, learner.tables.items
    errors = sum((r - p[u] @ q[i]) ** 2 for u, i, r in zip(users, items, values, strict=True))
    prior = sum(
        0.7 * (q[i] - learner.network(learner.codes[i : i + 1])[0]).square().sum()
        for i in range(4)
    )
    weights = sum(tensor.square().sum() for tensor in learner.network.parameters())
    return errors + 0.3 * p.square().sum() + prior + 0.2 * weights


def test_gradient_of_an_epoch_equals_that_of_the_papers_objective(
    rng: np.random.Generator,
) -> None:
    learner = make_learner(rng)
    batch = [torch.from_numpy(samples) for samples in learner.sample_epoch(rng)]
    learner.loss(*batch).backward()
    samples = learner.sampler(rng)
    for tensor in learner.parameters():
        gradient = tensor.grad.numpy()
        for index in np.ndindex(tensor.shape):
            if tensor is learner.network.words and index[0] == 0:
                continue  # the padding is always 0
            values = []
            for step in (1e-6, -1e-6):
                with torch.no_grad():
                    tensor[index] += step
                    values.append(float(compute_objective(learner, *samples)))
                    tensor[index] -= step
            assert gradient[index] == pytest.approx(
                (values[0] - values[1]) / 2e-6, rel=1e-4, abs=1e-5
            )


CPU = torch.device("cpu")


def make_network(
    rng: np.random.Generator, *, n_words: int = 9, windows: tuple[int, ...] = (2, 3)
) -> Any:
    network = TextCNN.initialize((n_words, 4, 5, 3), windows, device=CPU, rng=rng)
    for layer in network.filters:
        layer.bias.data += 0.1
    return network


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


UNLIMITED: dict[str, Any] = {"vocabulary": 1000, "max_length": 1000}


def make_texts(*texts: Any, n_strangers: int = 0, **columns: list[Any]) -> TrainingData:
    """Return data in which user 0 has all items but the last ``n_strangers``."""
    pairs = [(0, item) for item in range(len(texts) - n_strangers)]
    return make_item_data(pairs, {"text": list(texts), **columns}, n_users=1)


def encode(data: TrainingData, *text: str, **options: Any) -> Documents:
    return encode_documents(data, text or ("text",), **UNLIMITED | options)


def test_codes_are_in_text_order_and_numbered_by_frequency() -> None:
    # "sea" is in three items, "the" in two (three times), the other words in one, in order
    documents = encode(make_texts("the sea, the SEA", "a sea", "ship of the sea!"))
    #       sea the a ship of -> 1 2 3 4 5
    assert documents.codes.tolist() == [[2, 1, 2, 1], [3, 1, 0, 0], [4, 5, 2, 1]]
    assert documents.n_words == 5
    assert documents.has_text.all()


@pytest.mark.parametrize(
    ("text", "n_words"),
    [
        ("Amélie – «Le fabuleux»", 3),
        ("שלום עולם", 2),
        ("🎬 🎬🍿", 2),
        ("\u202eab\u202c c", 2),
        ("Schindler's List (1993)", 4),
        ("_ -- ... “ ”", 0),
    ],
)
def test_words_of_any_script_are_split(text: str, n_words: int) -> None:
    documents = encode(make_texts(text))
    assert documents.n_words == n_words
    assert np.count_nonzero(documents.codes) == n_words


def test_items_without_text_are_counted_in_a_warning() -> None:
    data = make_texts("a", None, "", float("nan"), "b", n_strangers=1)
    documents = encode(data)
    assert documents.has_text.tolist() == [True, False, False, False, False]
    with collect_warnings() as messages:
        warn_about_missing_texts("ConvMF", documents, data)
        warn_about_missing_texts("ConvMF", encode(make_texts("a")), make_texts("a"))
    assert messages == ["ConvMF: 3 of 4 items have no text"]


def test_missing_texts_are_refused() -> None:
    data = TrainingData(make_interactions([(0, 0)]))
    with pytest.raises(MissingEvidence, match="the dataset has no items table") as caught:
        encode(data)
    assert caught.value.where == "text"
    with pytest.raises(MissingEvidence, match="no reviews"):
        encode(make_texts("a"), "reviews")
    with pytest.raises(UnknownColumn, match="no column 'txt'") as unknown:
        encode(make_texts("a"), "txt")
    assert (unknown.value.where, unknown.value.remedy) == ("text", "did you mean text?")


CONVMF_IDS_CPU = torch.device("cpu")
WORLD = make_interactions([(0, 0), (1, 2), (2, 1), (2, 3)])


def create_network(rng: np.random.Generator, size: int = 32) -> IdNetwork:
    network = IdNetwork.initialize(WORLD, size, device=CONVMF_IDS_CPU, rng=rng)
    for parameter in network.parameters():
        noise = torch.from_numpy(rng.standard_normal(parameter.shape)).float()
        parameter.data += 0.05 * noise
    return network


def score_by_torch(network: IdNetwork, pairs: Any) -> Any:
    """Compute the scores of concatenated vectors by torch's convolutions and poolings."""
    hidden = pairs.unsqueeze(1)
    for layer in network.convolutions:
        channels = len(layer.weight) // 2
        weight = layer.weight.reshape(2, channels, 32).permute(2, 1, 0)
        hidden = max_pool1d(conv1d(hidden, weight, layer.bias, stride=2).relu(), 2)
    features = hidden.sum(2)
    for layer in network.dense:
        features = layer(features)
    return features.squeeze(1)


@pytest.mark.parametrize("size", [16, 32, 64])
def test_network_equals_torch_convolutions_and_poolings(
    size: int, rng: np.random.Generator
) -> None:
    network = create_network(rng, size)
    users, items = network.users[[0, 1, 2]], network.items[[3, 0, 2]]
    pairs = torch.cat([users, items], 1)
    scores = network.score(network.features(pairs))
    torch.testing.assert_close(scores, score_by_torch(network, pairs), rtol=1e-4, atol=1e-5)
