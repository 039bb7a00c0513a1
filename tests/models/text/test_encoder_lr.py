from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import log_softmax

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
