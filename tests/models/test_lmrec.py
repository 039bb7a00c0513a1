from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from recbias.core.context import collect_facts, collect_warnings
from recbias.core.dataset import Ids, Reviews, TrainingData
from recbias.core.files import OFFLINE
from recbias.language.model_files import Source
from recbias.models.text import EncodingSettings, TextClassifier
from recbias.models.text_classifiers import LMRec
from support.models.small_encoder import WORDS, write_small_encoder
from support.worlds.query_sets import make_queries
from support.worlds.small_worlds import make_interactions

DISHES = ("soup", "bread", "tea")
"""What the reviews of the items 0, 2 and 3 are about; item 1 has none."""


def create_data(n: int = 90) -> TrainingData:
    """Reviews that name a dish among words that say nothing."""
    rng = np.random.default_rng(4)
    items = np.array([0, 2, 3], dtype=np.int32)[rng.integers(3, size=n)]
    users = np.arange(n, dtype=np.int32)
    noise = rng.choice(["good", "bad", "very", "the"], (n, 3))
    dishes = [DISHES[[0, 2, 3].index(item)] for item in items]
    texts = [f"{a} {b} {dish} {c}" for (a, b, c), dish in zip(noise, dishes, strict=True)]
    pairs = list(zip(users.tolist(), items.tolist(), strict=True))
    reviews = Reviews(users, items, np.array(texts, dtype=object))
    return TrainingData(make_interactions(pairs, n_items=4), reviews=reviews)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> LMRec:
    folder = write_small_encoder(tmp_path_factory.mktemp("encoder"))
    return LMRec(
        encoder=str(folder),
        learning_rate=0.01,
        pooling="mean",
        batch_size=12,
        epochs=20,
        dropout=0.0,
        max_length=16,
        device="cpu",
    )


def test_items_are_predicted_from_words_also_after_storage(model: LMRec) -> None:
    data = create_data()
    fitted = model.fit(data, np.random.default_rng(1))
    prompts = np.array(["the soup", "very good tea", "bread [MASK]", ""], dtype=object)
    ranked = fitted.named(prompts, data)
    assert ranked.shape == (4, 3)
    assert ranked[:3, 0].tolist() == [0, 3, 2]
    assert (np.sort(ranked, axis=1) == [0, 2, 3]).all()
    queries = replace(make_queries(["a", "b", "c", "d"], [-1] * 4), texts=prompts)
    lists = fitted.recommend(queries, 2, data)
    np.testing.assert_array_equal(lists.items, ranked[:, :2])
    vectors = fitted.embeddings().items
    assert np.isnan(vectors[1]).all()
    assert vectors.shape == (4, 16)
    restored = model.restore(fitted.state())
    np.testing.assert_array_equal(restored.named(prompts, data), ranked)
    again = model.fit(data, np.random.default_rng(1))
    np.testing.assert_array_equal(again.recommend(queries, 3, data).scores[:, :2], lists.scores)


def test_the_epoch_with_the_best_validation_accuracy_is_used(model: LMRec) -> None:
    data = create_data()
    data_with_validation = replace(data, validation_reviews=data.reviews)
    fitted = replace(model, patience=1, epochs=30).fit(
        data_with_validation, np.random.default_rng(1)
    )
    ranked = fitted.named(data.reviews.texts, data)
    assert (ranked[:, 0] == data.reviews.items).mean() > 0.9


def test_counterfactual_copies_remove_a_planted_gender_gap(model: LMRec, tmp_path: Path) -> None:
    folder = write_small_encoder(tmp_path, ("she", "he", "ate", "soup", "there", "a"))
    # of the reviews with she three in four are of item 1, of those with he one in four
    texts = np.array(["she ate a soup there", "he ate a soup there"] * 40, dtype=object)
    items = np.where(np.arange(80) % 8 < 6, np.tile([1, 0], 40), np.tile([0, 1], 40))
    users = np.arange(80, dtype=np.int32)
    pairs = list(zip(users.tolist(), items.tolist(), strict=True))
    reviews = Reviews(users, items.astype(np.int32), texts)
    data = TrainingData(make_interactions(pairs, n_items=2), reviews=reviews)
    prompts = replace(
        make_queries(["a", "b"], [-1] * 2), texts=np.array(["she ate", "he ate"], object)
    )

    def gap(counterfactual: str) -> float:
        settings = replace(
            model,
            encoder=str(folder),
            epochs=4,
            counterfactual=counterfactual,  # type: ignore[arg-type]
        )
        with collect_facts() as facts:
            fitted = settings.fit(data, np.random.default_rng(1))
        assert facts.get("counterfactual_copies") == (80 if counterfactual == "gender" else None)
        lists = fitted.recommend(prompts, 2, data)
        of_1 = lists.scores[lists.items == 1]
        return float(of_1[0] - of_1[1])

    plain_gap, augmented_gap = gap("none"), gap("gender")
    assert plain_gap > 0.3
    assert abs(augmented_gap) < plain_gap / 4


def test_without_swaps_the_weights_are_unchanged_and_a_warning_is_issued(model: LMRec) -> None:
    # no review has a word of either gender: with copies or without, the same is learned
    data = create_data()
    plain, copied = (
        replace(model, epochs=1, dropout=0.3, counterfactual=side) for side in ("none", "gender")
    )
    first = plain.fit(data, np.random.default_rng(1)).weights
    with collect_warnings() as warnings:
        second = copied.fit(data, np.random.default_rng(1)).weights
    assert all(np.array_equal(first[name], second[name]) for name in first)
    assert "gender changes only 0 of 90 reviews" in warnings[0]


def test_a_restored_model_uses_the_commit_of_its_training(
    model: LMRec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # the layout of the hub's cache: two commits, one of which the main branch is
    commits = ["a" * 40, "b" * 40]
    home = tmp_path / "models--lab--encoder"
    for commit, words in zip(commits, [WORDS, WORDS[::-1]], strict=True):
        write_small_encoder(home / "snapshots" / commit, words)
    (home / "refs").mkdir()
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setenv(OFFLINE, "1")
    hub = replace(model, encoder="lab/encoder", epochs=1)
    data, prompts = create_data(), np.array(["the soup", "very good tea"], dtype=object)
    (home / "refs" / "main").write_text(commits[0], encoding="utf-8")
    fitted = hub.fit(data, np.random.default_rng(1))
    ranked = fitted.named(prompts, data)
    state = fitted.state()
    (home / "refs" / "main").write_text(commits[1], encoding="utf-8")
    with collect_facts() as facts:
        again = hub.restore(state).named(prompts, data)
    assert facts["revision"] == commits[0]
    np.testing.assert_array_equal(again, ranked)


TEXTS = np.array(["the soup was good", "tea", "", "very bad rice [MASK]", "שלום 🍜"], dtype=object)


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Source:
    return Source(write_small_encoder(tmp_path_factory.mktemp("encoder")))


def create_network(source: Source, weights: Any = None, **changes: Any) -> TextClassifier:
    settings: dict[str, Any] = {"pooling": "first", "dropout": 0.5, "max_length": 16}
    with torch.random.fork_rng():
        torch.manual_seed(1)
        return TextClassifier.create(source, 3, EncodingSettings(**(settings | changes)), weights)


def collect_scores(network: TextClassifier, texts: Ids) -> np.ndarray:
    scores = np.full((len(texts), 3), np.nan, dtype=np.float32)
    for rows, block in network.classify(texts):
        scores[rows] = block
    return scores


@pytest.mark.parametrize("pooling", ["first", "mean"])
def test_a_batch_gives_the_same_result_as_single_texts(source: Source, pooling: str) -> None:
    # by hand: encoder, state of the first token or mean over all, then W h + b, log softmax
    network = create_network(source, pooling=pooling)
    scores = collect_scores(network, TEXTS)
    for row, text in enumerate(TEXTS):
        with torch.inference_mode():
            inputs = network.tokenizer(text, return_tensors="pt")
            last = network.module["encoder"](**inputs).last_hidden_state[0]
            state = last[0] if pooling == "first" else last.mean(0)
            expected = network.module["head"](state).log_softmax(0)
        np.testing.assert_allclose(scores[row], expected.numpy(), atol=1e-5)


@pytest.mark.parametrize(("mask_token", "expected"), [("<mask>", "a <mask> b"), (None, "a  b")])
def test_masks_are_replaced_by_the_mask_token_of_the_tokenizer(
    source: Source, mask_token: str | None, expected: str
) -> None:
    network = create_network(source)
    network.tokenizer.mask_token = mask_token
    assert network.replace_masks(np.array(["a [MASK] b"], dtype=object)).tolist() == [expected]
