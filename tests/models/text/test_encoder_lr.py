from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.special import log_softmax

from recbias.core.errors import MissingEvidence, MissingFile
from recbias.models.text.encoder_lr import EncoderLR
from recbias.models.text.share_reranking import Rerank
from recbias.models.text.text_classifier import Pooling
from recbias.models.text.token_files import tokenised
from recbias.testing import check_recommender
from support.dishes import make_prompts, make_review_data, make_texts
from support.small_encoder import write_small_encoder

RNG = np.random.default_rng(0)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> EncoderLR:
    folder = write_small_encoder(tmp_path_factory.mktemp("encoder"))
    return EncoderLR(encoder=str(folder), C=10.0, max_length=16, device="cpu")


def test_it_learns_what_the_words_say_and_is_stored(model: EncoderLR) -> None:
    data = make_review_data()
    fitted = model.fit(data, RNG)
    asked = make_prompts("the soup", "very good tea", "bread [MASK]", "")
    assert asked.texts is not None
    assert data.reviews is not None
    right = fitted.named(data.reviews.texts, data)[:, 0] == data.reviews.items
    assert right.mean() > 0.9
    lists = fitted.recommend(asked, 2, data)
    np.testing.assert_array_equal(lists.items, fitted.named(asked.texts, data)[:, :2])
    state = {name: np.array(each) for name, each in fitted.state().items()}
    again = model.restore(state).recommend(asked, 2, data)
    np.testing.assert_array_equal(again.items, lists.items)
    np.testing.assert_array_equal(again.scores, lists.scores)


def test_the_encoder_is_left_as_it_is(model: EncoderLR) -> None:
    weights = model.fit(make_review_data(), RNG).weights
    untouched = model.network(3).weights()
    for name, each in untouched.items():
        if name.startswith("encoder."):
            np.testing.assert_array_equal(weights[name], each)


@pytest.mark.parametrize("pooling", ["first", "mean"])
def test_chances_are_of_standardised_states(model: EncoderLR, pooling: Pooling) -> None:
    # by the definition: states of the training reviews, z-scores, scikit-learn's regression
    from sklearn.linear_model import LogisticRegression

    data = make_review_data()
    assert data.reviews is not None
    chosen = replace(model, pooling=pooling, C=0.5, iterations=1000)
    network = chosen.network(3)
    some = make_texts(*data.reviews.texts, "soup and tea", "")
    with tokenised(some, network.tokenizer, 16) as tokens:
        found = network.states(tokens, np.arange(len(some))).detach().numpy()
    states = found.astype(np.float64)
    train = states[:-2]
    peer = LogisticRegression(C=0.5, max_iter=1000)
    peer.fit((train - train.mean(0)) / train.std(0), data.reviews.items)
    level = (states[-2:] - train.mean(0)) / train.std(0) @ peer.coef_.T + peer.intercept_
    expected = -np.sort(-log_softmax(level, axis=1), axis=1)
    lists = chosen.fit(data, RNG).recommend(make_prompts(*some[-2:]), 3, data)
    np.testing.assert_allclose(lists.scores, expected, atol=5e-3)


def test_it_keeps_the_contract(model: EncoderLR) -> None:
    check_recommender(model, data=make_review_data(12))


def test_lists_to_shares_of_prices(model: EncoderLR) -> None:
    data = make_review_data()
    asked = make_prompts("bread and soup", "tea", "soup")
    rerank = Rerank(attribute="price_level", target={"1": 0.5, "3": 0.5})
    changed = replace(model, rerank=rerank)
    lists = changed.fit(data, RNG).recommend(asked, 2, data)
    assert [sorted((row == 3).tolist()) for row in lists.items] == [[False, True]] * 3
    assert changed.needs_now() == {"train", "reviews", "items"}


def test_odd_texts_are_read(model: EncoderLR) -> None:
    data = make_review_data(12)
    assert data.reviews is not None
    odd = data.reviews.texts.copy()
    odd[:4] = ["", "soup " * 10_000, "שלום עולם 🍜🍜", "\x00\n\t"]
    changed = replace(data, reviews=replace(data.reviews, texts=odd))
    assert model.fit(changed, RNG).named(odd, changed).shape == (12, 3)


def test_what_is_not_there(model: EncoderLR, tmp_path: Path) -> None:
    with pytest.raises(MissingEvidence, match="no reviews"):
        model.fit(replace(make_review_data(), reviews=None), RNG)
    with pytest.raises(MissingFile, match="is not there"):
        replace(model, encoder=str(tmp_path / "none")).fit(make_review_data(), RNG)
