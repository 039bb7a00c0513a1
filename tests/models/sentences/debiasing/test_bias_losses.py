from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch

from recbias.core.context import collect_warnings
from recbias.core.dataset import FloatArray
from recbias.language.local_models import LocalModel, ScoringSettings, tokenize_sentences
from recbias.language.terms import TermPairs
from recbias.models.debias import (
    Debias,
    SentenceTraining,
    create_bias_loss,
    find_bias_subspace,
)
from support.models.small_causal import make_network, make_tokenizer


def draw(*shape: int, seed: int = 0) -> Any:
    """Return random numbers whose gradients are checked."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64).requires_grad_()


def test_the_subspace_explains_half_of_the_variance_with_the_fewest_directions() -> None:
    # squared lengths of half the differences: 4, 3 and 2 of 9 - two directions are needed
    differences = torch.diag(torch.tensor([4.0, 2 * 3**0.5, 2 * 2**0.5]))
    basis = find_bias_subspace(differences, torch.zeros(3, 3))
    assert torch.allclose(basis.abs(), torch.eye(3)[:2], atol=1e-6)
    assert (
        len(find_bias_subspace(torch.diag(torch.tensor([2.0, 1.0, 1.0])), torch.zeros(3, 3))) == 1
    )


PAIRS = TermPairs(
    "gender",
    ("female", "male"),
    (("aunt", "uncle"), ("sister", "brother"), ("niece", "uncle"), ("grandaunt", "granduncle")),
    (("timid", "bold"), ("quiet", None)),
)
TEXTS = (
    "one quiet aunt met her grandaunt and an uncle",  # the longest term counts at a place
    "a timid, quiet brother",
    "aunt of a timid sister",  # nothing predicts a term at the start
    "rain on boats",
    "the niece is quiet and timid and quiet again",
)


@dataclass(frozen=True)
class Reading:
    """What the network says of a sentence: ``logits[w, v]`` and last hidden states ``[w, d]``."""

    text: str
    logits: FloatArray
    states: FloatArray

    def find(self, terms: list[str]) -> Iterator[tuple[int, str]]:
        """Yield the place and the name of terms, from the left, the longest first."""
        at = 0
        while at < len(self.text):
            found = [term for term in terms if self.text.startswith(term, at)]
            if found:
                yield at, max(found, key=len)
            at += len(max(found, key=len)) if found else 1


@pytest.fixture(scope="module")
def model() -> LocalModel:
    network = make_network("gpt2", tie_word_embeddings=False).double()
    return LocalModel("causal", make_tokenizer(), network)


@pytest.fixture(scope="module")
def readings(model: LocalModel) -> list[Reading]:
    made = []
    for text in TEXTS:
        ids = torch.tensor([tokenize(model, text)])
        with torch.no_grad():
            output = model.network(ids, output_hidden_states=True)
        made.append(Reading(text, output.logits[0].numpy(), output.hidden_states[-1][0].numpy()))
    return made


def tokenize(model: LocalModel, text: str) -> list[int]:
    tokens: list[int] = model.tokenizer(text, add_special_tokens=False).input_ids
    assert len(tokens) == len(text)  # a token a character, so places in both are the same
    return tokens


def embed(model: LocalModel, term: str, *, is_input: bool) -> FloatArray:
    network: Any = model.network
    layer = network.get_input_embeddings() if is_input else network.get_output_embeddings()
    return np.mean(layer.weight.detach().numpy()[tokenize(model, term)], axis=0)  # type: ignore[no-any-return]


def cosine(first: FloatArray, second: FloatArray) -> float:
    return float(first @ second / np.sqrt((first @ first) * (second @ second)))


def find_basis(model: LocalModel, *, is_input: bool) -> FloatArray:
    """Return the components of pair differences that explain half, by their covariance."""
    halves = np.array(
        [
            (embed(model, a, is_input=is_input) - embed(model, b, is_input=is_input)) / 2
            for a, b in PAIRS.targets
        ]
    )
    values, vectors = np.linalg.eigh(halves.T @ halves)
    order = np.argsort(values)[::-1]
    k = int(np.argmax(np.cumsum(values[order]) >= values.sum() / 2)) + 1
    return vectors[:, order[:k]].T


ATTRIBUTES = [first for first, _ in PAIRS.attributes]


def compute_lmd(model: LocalModel, readings: list[Reading]) -> float:
    pair_of = {second: pair for pair in reversed(PAIRS.targets) for second in (pair[1],)}
    pair_of |= {pair[0]: pair for pair in PAIRS.targets}
    total = 0.0
    for reading in readings:
        for at, term in reading.find(list(pair_of)):
            if at:
                row = reading.logits[at - 1] - np.log(np.exp(reading.logits[at - 1]).sum())
                logs = [row[tokenize(model, side)].mean() for side in pair_of[term]]
                total += abs(logs[0] - logs[1]) / len(PAIRS.targets)
    return total / len(readings)


def compute_add(model: LocalModel, readings: list[Reading]) -> float:
    total = 0.0
    for reading in readings:
        for _, term in reading.find(ATTRIBUTES):
            a = embed(model, term, is_input=True)
            for pair in PAIRS.targets:
                first, second = (cosine(embed(model, t, is_input=True), a) for t in pair)
                total += abs(first - second)
    return total / len(readings)


def compute_hd(model: LocalModel, readings: list[Reading]) -> float:
    basis, total = find_basis(model, is_input=True), 0.0
    for reading in readings:
        for _, term in reading.find(ATTRIBUTES):
            a = embed(model, term, is_input=True)
            total += sum(float(np.linalg.norm(b * (a @ b))) for b in basis)
    return total / len(readings)


def compute_released_lmd(model: LocalModel, readings: list[Reading]) -> float:
    total = 0.0
    for reading in readings:
        for first, second in PAIRS.targets:
            if first in reading.text:
                e1, e2 = (embed(model, term, is_input=False) for term in (first, second))
                ratios = np.exp(reading.states @ e1) / np.exp(reading.states @ e2)
                total += float(np.abs(np.log(ratios)).sum()) / len(reading.text)
    return total / len(PAIRS.targets)


def compute_released_add(model: LocalModel, readings: list[Reading]) -> float:
    total = 0.0
    for reading in readings:
        for at, term in reading.find(ATTRIBUTES):
            h = reading.states[at : at + len(term)].mean(axis=0)
            for pair in PAIRS.targets:
                first, second = (cosine(embed(model, t, is_input=False), h) for t in pair)
                total += abs(first - second)
    return total


def compute_released_hd(model: LocalModel, readings: list[Reading]) -> float:
    basis = find_basis(model, is_input=False)
    running, total = np.zeros(basis.shape[1]), 0.0
    for reading in readings:
        for at, term in reading.find(ATTRIBUTES):
            h = reading.states[at : at + len(term)].mean(axis=0)
            running = running + sum((h @ b) * b for b in basis)
            total += float(np.abs(running).sum())
    return total


FORMULAS = {
    ("LMD", "paper"): compute_lmd,
    ("ADD", "paper"): compute_add,
    ("HD", "paper"): compute_hd,
    ("LMD", "released"): compute_released_lmd,
    ("ADD", "released"): compute_released_add,
    ("HD", "released"): compute_released_hd,
}


def make_task(model: LocalModel, debias: Debias) -> SentenceTraining:
    settings = ScoringSettings().complete(model)
    tokens = tokenize_sentences(model, TEXTS, settings)
    with collect_warnings():  # of sentences without a term
        bias = create_bias_loss(debias, model, TEXTS, tokens, settings, PAIRS)
    return SentenceTraining(model, tokens, settings, bias, debias)


def read_bias(task: SentenceTraining, rows: list[int]) -> tuple[float, float]:
    """Return the loss of a batch and its bias, not multiplied by the number of sentences."""
    with torch.no_grad():
        total = task.loss(np.array(rows))
    return float(total) / len(rows), float(task.read_parts()["bias"]) / len(rows)


@pytest.mark.parametrize(("method", "reading"), FORMULAS)
def test_the_loss_of_a_batch_is_that_of_the_formula(
    model: LocalModel, readings: list[Reading], method: Any, reading: Any
) -> None:
    task = make_task(model, Debias(method=method, reading=reading, weight=50))
    for rows in ([0, 1, 2, 3, 4], [4, 0], [2]):
        expected = FORMULAS[method, reading](model, [readings[row] for row in rows])
        total, bias = read_bias(task, rows)
        assert expected > 0.01
        assert bias == pytest.approx(expected, rel=1e-9)
        logs = [
            row.logits[at] - np.log(np.exp(row.logits[at]).sum())
            for row in (readings[number] for number in rows)
            for at in range(len(row.text) - 1)
        ]
        words = [token for number in rows for token in tokenize(model, TEXTS[number])[1:]]
        cross_entropy = -np.mean([log[word] for log, word in zip(logs, words, strict=True)])
        lm_weight = 1.0 if reading == "paper" else 0.001
        # the cross-entropy has single precision, as the logits of most networks have
        assert total == pytest.approx(lm_weight * cross_entropy + 50 * expected, rel=1e-6)


@pytest.mark.parametrize("method", ["LMD", "ADD", "HD"])
def test_a_batch_without_terms_has_the_plain_loss_of_the_release(
    model: LocalModel, method: Any
) -> None:
    ours, control = (
        read_bias(make_task(model, debias), [3])
        for debias in (
            Debias(method=method, reading="released", weight=50),
            Debias(method=method, weight=0),
        )
    )
    assert ours == pytest.approx(control)
    assert ours[1] == 0
