"""The sentences that a model is debiased on, with their terms and copies."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from recbias.core.dataset.sentences import Sentences
from recbias.core.dataset.split import TrainingData
from recbias.core.errors import MissingEvidence, NothingLeft
from recbias.core.stage_context import record_fact, warn
from recbias.language.terms.term_files import load_terms, select_category
from recbias.language.terms.term_pairs import TermPairs
from recbias.models.sentences.debiasing.debias import Debias

CATEGORY = "category"
"""The label of sentences that names the category of their terms."""


@dataclass(frozen=True)
class TrainingSentences:
    """Sentences to train on, with the terms of their category.

    Args:
        texts: The sentences, without copies.
        pairs: The terms.
    """

    texts: tuple[str, ...]
    pairs: TermPairs

    @classmethod
    def select(cls, data: TrainingData, debias: Debias, terms: str | Path) -> TrainingSentences:
        """Return the training sentences of a category, with its terms.

        Raises:
            MissingEvidence: There are no sentences.
            NothingLeft: None is for training, or of the category, or has a term that is used.
            UnknownName: The terms have no such category, or the category is not given and there
                are several.
        """
        if data.sentences is None:
            remedy = "use chbias, redditbias or sentence_tables as dataset"
            raise MissingEvidence("debias needs sentences to train on", remedy=remedy)
        sentences = data.sentences.take_part("train")
        pairs_by_category = load_terms(terms)
        category = debias.category or _find_only_category(sentences, tuple(pairs_by_category))
        pairs = select_category(pairs_by_category, category)
        frame = sentences.frame
        if CATEGORY in frame and frame[CATEGORY].notna().any():
            frame = frame[frame[CATEGORY] == pairs.category]
        texts = tuple(str(text) for text in frame["text"])
        if not texts:
            message = f"there are no training sentences of the category {pairs.category}"
            raise NothingLeft(message, where="debias", remedy="name another category or dataset")
        pairs.require_targets(texts, where="terms")
        return cls(texts, pairs)

    def augment(self, debias: Debias) -> tuple[str, ...]:
        """Return the sentences and, of CADA and CTDA, the copies; these are counted.

        Raises:
            NothingLeft: No sentence has a term with a counterpart.
        """
        if debias.has_bias_loss:
            return self.texts
        swap = self.pairs.swap_attributes if debias.method == "CADA" else self.pairs.swap_targets
        copies = [swap(text) for text in self.texts]
        changed = [copy for text, copy in zip(self.texts, copies, strict=True) if copy != text]
        n_unchanged = len(copies) - len(changed)
        kind = "an attribute" if debias.method == "CADA" else "a target"
        if not changed:
            message = f"none of the {len(copies):,} sentences has {kind} term with a counterpart"
            raise NothingLeft(message, where="terms", remedy="use other terms or another method")
        if n_unchanged:
            outcome = "a duplicate" if debias.reading == "released" else "no copy"
            warn(
                f"{debias.method}: {n_unchanged:,} of {len(copies):,} sentences have no "
                f"{kind.split()[1]} term with a counterpart and get {outcome}"
            )
        record_fact("copies", len(changed))
        record_fact("sentences_without_term", n_unchanged)
        return (*self.texts, *(copies if debias.reading == "released" else changed))


def _find_only_category(sentences: Sentences, categories: tuple[str, ...]) -> str:
    """Return the category of sentences, or of the terms, if there is one only.

    Raises:
        NothingLeft: There are several.
    """
    frame = sentences.frame
    names = sorted({str(name) for name in frame[CATEGORY].dropna()}) if CATEGORY in frame else []
    names = names or list(categories)
    if len(names) != 1:
        message = f"there are {len(names)} categories: {', '.join(names[:6])}"
        remedy = (
            f"name one: debias: {{category: {names[0]}}}" if names else "add training sentences"
        )
        raise NothingLeft(message, where="debias.category", remedy=remedy)
    return names[0]
