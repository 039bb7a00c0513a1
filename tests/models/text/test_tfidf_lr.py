from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from recbias.core.context import collect_warnings
from recbias.core.dataset import Reviews
from recbias.core.errors import MissingEvidence, NothingLeft
from recbias.models import text_probes
from recbias.models.text_probes import TFIDFLR
from recbias.testing import check_recommender
from support.worlds.dishes import make_prompts, make_review_data, make_texts

RNG = np.random.default_rng(0)


def test_items_are_predicted_from_words_also_after_storage() -> None:
    data = make_review_data()
    model = TFIDFLR(min_df=1)
    fitted = model.fit(data, RNG)
    queries = make_prompts("the soup", "very good tea", "bread [MASK]", "")
    assert queries.texts is not None
    ranked = fitted.named(queries.texts, data)
    assert ranked[:3, 0].tolist() == [0, 3, 2]
    assert (np.sort(ranked, axis=1) == [0, 2, 3]).all()
    lists = fitted.recommend(queries, 2, data)
    np.testing.assert_array_equal(lists.items, ranked[:, :2])
    restored = model.restore({name: np.array(array) for name, array in fitted.state().items()})
    again = restored.recommend(queries, 2, data)
    np.testing.assert_array_equal(again.items, lists.items)
    np.testing.assert_array_equal(again.scores, lists.scores)


def test_log_probabilities_equal_those_of_a_scikit_learn_pipeline() -> None:
    data = make_review_data()
    assert data.reviews is not None
    pipeline = make_pipeline(
        TfidfVectorizer(ngram_range=(1, 2), min_df=2, sublinear_tf=True),
        LogisticRegression(C=10.0, max_iter=1000),
    )
    pipeline.fit(data.reviews.texts, data.reviews.items)
    texts = make_texts("tea and soup", "good bread", "unheard", "")
    lists = TFIDFLR(iterations=1000).fit(data, RNG).recommend(make_prompts(*texts), 3, data)
    expected = pipeline.predict_log_proba(texts)
    order = np.argsort(-expected, axis=1)
    assert (pipeline.classes_[order][:2] == lists.items[:2]).all()
    np.testing.assert_allclose(lists.scores, np.take_along_axis(expected, order, 1), atol=5e-3)


def test_it_fulfils_the_contract_of_recommenders() -> None:
    check_recommender(TFIDFLR(min_df=1), data=make_review_data(12))


def test_block_size_does_not_change_the_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    data = make_review_data()
    assert data.reviews is not None
    fitted = TFIDFLR().fit(data, RNG)
    whole = fitted.recommend(make_prompts(*data.reviews.texts), 3, data)
    monkeypatch.setattr(text_probes, "MAX_BLOCK_SCORES", 21)
    parts = fitted.recommend(make_prompts(*data.reviews.texts), 3, data)
    np.testing.assert_array_equal(parts.items, whole.items)
    np.testing.assert_array_equal(parts.scores, whole.scores)


def test_masks_are_ignored() -> None:
    data = make_review_data()
    fitted = TFIDFLR().fit(data, RNG)
    lists = fitted.recommend(make_prompts("the [MASK] tea", "the tea", "the  tea"), 3, data)
    assert "mask" not in fitted.terms
    np.testing.assert_array_equal(lists.scores[0], lists.scores[1])


def test_unusual_texts_are_vectorized() -> None:
    data = make_review_data(12)
    assert data.reviews is not None
    odd = data.reviews.texts.copy()
    odd[:5] = ["", "soup " * 10_000, "שלום עולם 🍜🍜", "\x00\n\t\r\x85", "x" * 30_000]
    changed = replace(data, reviews=replace(data.reviews, texts=odd))
    model = TFIDFLR(min_df=1)
    fitted = model.fit(changed, RNG)
    assert "שלום עולם" in fitted.terms
    ranked = fitted.named(odd, changed)
    state = fitted.state()
    assert sum(array.nbytes for array in state.values()) < 10**6
    np.testing.assert_array_equal(model.restore(state).named(odd, changed), ranked)


def test_an_item_without_reviews_is_ranked_last_and_not_recommended() -> None:
    data = make_review_data()
    assert data.reviews is not None
    rows = np.flatnonzero(data.reviews.items != 3)
    parts = (data.reviews.users[rows], data.reviews.items[rows], data.reviews.texts[rows])
    fewer = replace(data, reviews=Reviews(*parts))
    with collect_warnings() as warnings:
        fitted = TFIDFLR().fit(fewer, RNG)
    assert warnings == ["1 items with training interactions have no training review"]
    assert fitted.named(make_texts("tea"), fewer)[0, -1] == 3
    assert fitted.recommend(make_prompts("tea"), 3, fewer).items[0, -1] == -1


@pytest.mark.parametrize("min_df", [2, 200])
def test_a_vocabulary_without_frequent_words_is_an_error(min_df: int) -> None:
    data = make_review_data(12)
    assert data.reviews is not None
    empty = replace(data.reviews, texts=make_texts(*[f"w{number}" for number in range(12)]))
    with pytest.raises(NothingLeft, match=f"no word occurs in {min_df} of the 12") as caught:
        TFIDFLR(min_df=min_df).fit(replace(data, reviews=empty), RNG)
    assert caught.value.remedy == "lower min_df"


def test_missing_reviews_are_an_error() -> None:
    with pytest.raises(MissingEvidence, match="no reviews"):
        TFIDFLR().fit(replace(make_review_data(), reviews=None), RNG)


@pytest.mark.real_data
@pytest.mark.usefixtures("stage_warnings")
def test_restaurants_are_predicted_from_unmasked_reviews(real_data: Path) -> None:
    # unmasked reviews name the restaurant: an accuracy of 0.39 over 100 of them
    from recbias.core.dataset import select_reviews
    from recbias.data.books_yelp import Yelp
    from recbias.data.splits import RandomHoldout

    rng = np.random.default_rng(42)
    dataset = Yelp(folder="yelp-layout").load(real_data, rng)
    split = RandomHoldout(per="item", test=0.1).split(dataset, 0, rng)
    data = split.training_data(items=dataset.items, reviews=dataset.reviews)
    test_reviews = select_reviews(dataset.reviews, split.test)
    assert test_reviews is not None
    # single words and few steps: the least that a test can wait for
    fitted = TFIDFLR(ngrams=1, max_features=3000, iterations=20).fit(data, rng)
    ranked = fitted.named(test_reviews.texts, data)
    assert (ranked[:, 0] == test_reviews.items).mean() > 0.3
