from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from recbias.core.errors import NothingLeft
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


@pytest.mark.parametrize("min_df", [2, 200])
def test_a_vocabulary_without_frequent_words_is_an_error(min_df: int) -> None:
    data = make_review_data(12)
    assert data.reviews is not None
    empty = replace(data.reviews, texts=make_texts(*[f"w{number}" for number in range(12)]))
    with pytest.raises(NothingLeft, match=f"no word occurs in {min_df} of the 12") as caught:
        TFIDFLR(min_df=min_df).fit(replace(data, reviews=empty), RNG)
    assert caught.value.remedy == "lower min_df"


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
