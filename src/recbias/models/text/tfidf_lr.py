"""TFIDF-LR: which item a text is about, by the words in it and no language model."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, ClassVar

import numpy as np
from annotated_types import Gt

from recbias.core.arrays import AnyArray, Codes, Ids
from recbias.core.dataset.split import TrainingData
from recbias.core.errors import NothingLeft
from recbias.core.outputs.ranked_lists import RankedLists
from recbias.core.outputs.sentences import MASK
from recbias.core.protocols import Output, State
from recbias.core.queries.queries import Queries
from recbias.core.stage_context import report_progress
from recbias.models.text.share_reranking import Rerank, chooser
from recbias.models.text.softmax_regression import SoftmaxRegression
from recbias.models.text.text_ranking import Blocks, ItemClasses, reviews_to_learn

SCORES_AT_ONCE = 2**22
"""Log-chances that are worked out at once: 16 MB."""


@dataclass(frozen=True, kw_only=True)
class TFIDFLR:
    """Name the item that a text is about by its words: logistic regression on TF-IDF.

        p(item | text) = softmax(x W + b)
        x_t = (1 + ln n_t) (1 + ln((1 + N) / (1 + N_t))),    |x| = 1

    ``n_t`` is how often the term t stands in the text, ``N_t`` in how many of the N training
    reviews it does; without ``sublinear`` the first factor is ``n_t``. W and b have the least
    ``|W|² / 2 + C Σ -log p`` over the training reviews. Words are of two letters or more, in lower
    case. A baseline of LMRec: what is learned from the same reviews without a language model.
    ``[MASK]`` is not read. A query without a text (a user) has an empty list; an item without a
    training review is in no list.

    Memory: L-BFGS holds about 25 arrays of the size of W, terms x items, of 8 bytes each.

    Args:
        ngrams: The longest run of words that is a term; 1 takes single words only.
        min_df: The fewest reviews a term stands in.
        max_features: How many terms are known: those that stand most often; null for all.
        sublinear: Whether repeats of a term count by their logarithm.
        C: How much the reviews weigh beside the size of W.
        iterations: Steps of L-BFGS, at most.
        rerank: ``{attribute, target}`` makes lists in which each value of an item attribute has a
            share of the places; the ranking of all items for a review is left as it is.

    Raises:
        MissingEvidence: The dataset has no reviews.
        NothingLeft: No review, or no term, is left to learn from.

    Source:
        Salton and Buckley, "Term-weighting approaches in automatic text retrieval", Information
        Processing & Management 24(5), 1988; scikit-learn's TfidfVectorizer and LogisticRegression
        (Pedregosa et al., JMLR 2011). For ``rerank``: Geyik, Ambler and Kenthapadi, KDD 2019.
    """

    provides: ClassVar[frozenset[Output]] = frozenset({"lists", "predictions"})
    needs: ClassVar[frozenset[str]] = frozenset({"train", "reviews"})
    libraries: ClassVar[tuple[str, ...]] = ("scikit-learn", "scipy")
    after_fit: ClassVar[frozenset[str]] = frozenset({"rerank"})

    ngrams: Annotated[int, Gt(0)] = 2
    min_df: Annotated[int, Gt(0)] = 2
    max_features: Annotated[int, Gt(0)] | None = 50_000
    sublinear: bool = True
    C: Annotated[float, Gt(0)] = 10.0
    iterations: Annotated[int, Gt(0)] = 100
    rerank: Rerank | None = None

    def needs_now(self) -> frozenset[str]:
        """Return what it reads: the items where lists are made to shares of their values."""
        return self.needs if self.rerank is None else self.needs | {"items"}

    def check_data(self, data: TrainingData) -> None:
        """Refuse shares that cannot be met."""
        chooser(self.rerank, ItemClasses.of(data), data)

    def fit(self, data: TrainingData, rng: np.random.Generator) -> FittedTFIDFLR:
        """Learn the words of each item; ``rng`` is unused, there is no chance in it."""
        self.check_data(data)
        classes, reviews = ItemClasses.of(data), reviews_to_learn(data)
        vectorizer = self.vectorizer()
        try:
            features = vectorizer.fit_transform(_read(reviews.texts))
        except ValueError as error:
            found = f"no word stands in {self.min_df} of the {len(reviews):,} training reviews"
            raise NothingLeft(found, where="min_df", remedy="lower min_df") from error
        learned = SoftmaxRegression.learned(
            features,
            classes.of_items(reviews.items),
            len(classes),
            strength=self.C,
            iterations=self.iterations,
        )
        terms = vectorizer.get_feature_names_out()
        return FittedTFIDFLR(self, classes, terms, vectorizer.idf_, learned)

    def restore(self, state: State) -> FittedTFIDFLR:
        """Return the fitted recommender of a stored state."""
        terms = np.array(state["terms"].tobytes().decode().split("\n"), dtype=object)
        learned = SoftmaxRegression.restored(state)
        return FittedTFIDFLR(self, ItemClasses.restored(state), terms, state["idf"], learned)

    def vectorizer(self, terms: Ids | None = None) -> Any:
        """Return what counts terms: those given, or those that it will find."""
        from sklearn.feature_extraction.text import TfidfVectorizer

        return TfidfVectorizer(
            ngram_range=(1, self.ngrams),
            min_df=self.min_df,
            max_features=self.max_features,
            sublinear_tf=self.sublinear,
            vocabulary=terms,
            dtype=np.float32,
        )


@dataclass(frozen=True, eq=False)
class FittedTFIDFLR:
    """What TFIDF-LR learned.

    Args:
        settings: The model.
        classes: The items that it tells apart.
        terms: The terms, ``str[t]``.
        idf: How rare each term is, ``float32[t]``.
        learned: The classifier.
    """

    settings: TFIDFLR
    classes: ItemClasses
    terms: Ids
    idf: AnyArray
    learned: SoftmaxRegression

    def state(self) -> State:
        """Return the arrays; the terms as the bytes of lines of text, since some are long."""
        terms = np.frombuffer("\n".join(self.terms).encode(), dtype=np.uint8)
        return {**self.classes.state(), **self.learned.state(), "terms": terms, "idf": self.idf}

    def recommend(self, queries: Queries, k: int, data: TrainingData) -> RankedLists:
        """Return the items that each query's text is likeliest about."""
        choose = chooser(self.settings.rerank, self.classes, data)
        return self.classes.lists(self._blocks, queries, k, choose=choose)

    def named(self, texts: Ids, data: TrainingData) -> Codes:
        """Return all items for each text, the likeliest first."""
        return self.classes.ranked(self._blocks, texts)

    def _blocks(self, texts: Ids) -> Blocks:
        width = max(1, SCORES_AT_ONCE // len(self.classes))
        for start in range(0, len(texts), width):
            rows = np.arange(start, min(start + width, len(texts)))
            yield rows, self.learned.log_chances(self._vectorizer.transform(_read(texts[rows])))
            report_progress("texts read", int(rows[-1]) + 1, len(texts))

    @cached_property
    def _vectorizer(self) -> Any:
        vectorizer = self.settings.vectorizer(self.terms)
        vectorizer.idf_ = self.idf
        return vectorizer


def _read(texts: Ids) -> list[str]:
    """Return texts without their masks."""
    return [each.replace(MASK, " ") for each in texts]
