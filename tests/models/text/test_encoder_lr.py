from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.special import log_softmax

from recbias.core.errors import MissingEvidence, MissingFile
from recbias.models.text import Pooling, tokenize_texts
from recbias.models.text_probes import EncoderLR
from recbias.testing import check_recommender
from support.models.small_encoder import write_small_encoder
from support.worlds.dishes import make_prompts, make_review_data, make_texts

RNG = np.random.default_rng(0)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> EncoderLR:
    folder = write_small_encoder(tmp_path_factory.mktemp("encoder"))
    return EncoderLR(encoder=str(folder), C=10.0, max_length=16, device="cpu")


def test_items_are_predicted_from_words_also_after_storage(model: EncoderLR) -> None:
    data = make_review_data()
    fitted = model.fit(data, RNG)
    queries = make_prompts("the soup", "very good tea", "bread [MASK]", "")
    assert queries.texts is not None
    assert data.reviews is not None
    is_correct = fitted.named(data.reviews.texts, data)[:, 0] == data.reviews.items
    assert is_correct.mean() > 0.9
    lists = fitted.recommend(queries, 2, data)
    np.testing.assert_array_equal(lists.items, fitted.named(queries.texts, data)[:, :2])
    state = {name: np.array(array) for name, array in fitted.state().items()}
    again = model.restore(state).recommend(queries, 2, data)
    np.testing.assert_array_equal(again.items, lists.items)
    np.testing.assert_array_equal(again.scores, lists.scores)


def test_encoder_weights_do_not_change(model: EncoderLR) -> None:
    weights = model.fit(make_review_data(), RNG).weights
    pretrained = model.create_network(3).weights()
    for name, array in pretrained.items():
        if name.startswith("encoder."):
            np.testing.assert_array_equal(weights[name], array)


@pytest.mark.parametrize("pooling", ["first", "mean"])
def test_log_probabilities_equal_a_regression_on_standardized_states(
    model: EncoderLR, pooling: Pooling
) -> None:
    # by the definition: states of the training reviews, z-scores, scikit-learn's regression
    from sklearn.linear_model import LogisticRegression

    data = make_review_data()
    assert data.reviews is not None
    chosen = replace(model, pooling=pooling, C=0.5, iterations=1000)
    network = chosen.create_network(3)
    texts = make_texts(*data.reviews.texts, "soup and tea", "")
    with tokenize_texts(texts, network.tokenizer, 16) as tokens:
        encoded = network.states(tokens, np.arange(len(texts))).detach().numpy()
    states = encoded.astype(np.float64)
    train = states[:-2]
    peer = LogisticRegression(C=0.5, max_iter=1000)
    peer.fit((train - train.mean(0)) / train.std(0), data.reviews.items)
    level = (states[-2:] - train.mean(0)) / train.std(0) @ peer.coef_.T + peer.intercept_
    expected = -np.sort(-log_softmax(level, axis=1), axis=1)
    lists = chosen.fit(data, RNG).recommend(make_prompts(*texts[-2:]), 3, data)
    np.testing.assert_allclose(lists.scores, expected, atol=5e-3)


def test_it_fulfils_the_contract_of_recommenders(model: EncoderLR) -> None:
    check_recommender(model, data=make_review_data(12))


def test_unusual_texts_are_encoded(model: EncoderLR) -> None:
    data = make_review_data(12)
    assert data.reviews is not None
    odd = data.reviews.texts.copy()
    odd[:4] = ["", "soup " * 10_000, "שלום עולם 🍜🍜", "\x00\n\t"]
    changed = replace(data, reviews=replace(data.reviews, texts=odd))
    assert model.fit(changed, RNG).named(odd, changed).shape == (12, 3)


def test_missing_reviews_and_a_missing_encoder_are_errors(
    model: EncoderLR, tmp_path: Path
) -> None:
    with pytest.raises(MissingEvidence, match="no reviews"):
        model.fit(replace(make_review_data(), reviews=None), RNG)
    with pytest.raises(MissingFile, match="does not exist"):
        replace(model, encoder=str(tmp_path / "none")).fit(make_review_data(), RNG)
