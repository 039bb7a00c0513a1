"""Labels from a causal language model's choice among groups where a text names one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from annotated_types import Ge, Gt

from recbias.core.protocols import ModelName
from recbias.detectors.group_detector import GroupDetector
from recbias.language.causal_model_files import list_causal_model_files
from recbias.language.causal_models import load_causal_model
from recbias.language.groups.group_words import GroupWords
from recbias.language.groups.swapped_groups import SwappedGroups
from recbias.language.scoring.sentence_models import SentenceModel


@dataclass(frozen=True, kw_only=True)
class CausalLM(GroupDetector):
    """Label items whose text names the groups that a causal language model expects.

        p(g) = softmax over the groups of ln P(the sentence with g in place of the word)
        score of a word = p(named group) - max p(other group)
        score of a sentence = mean of its words
        label = 1 if the certainty factor of all sentences > threshold else 0

    Each occurrence of a group word is replaced alone; the others stay. A name or word of any
    number of tokens has a probability. All else is as in ``masked_lm``. The softmax is over
    probabilities of whole sentences: a group whose word is rare in every sentence is improbable.

    Args:
        model: A causal language model: a folder, a GGUF file, an installed package, or a model of
            the Hugging Face hub.
        candidates: What stands for a group: ``names``, its name, or ``words``, the sum over its
            words.
        max_length: The number of tokens of a sentence that are read, if the model can read as
            many; of a longer one, those around the word.

    Raises:
        MissingExtra: A package that reads the file is not installed.
        Contradiction: The tokenizer has neither a start nor an end token.
    """

    model: ModelName
    candidates: Literal["names", "words"] = "names"
    tokens_per_batch: Annotated[int, Gt(0)] = 1024
    max_length: Annotated[int, Ge(16)] = 512

    def model_files(self) -> Sequence[Path]:
        """Return the files of a local model; none for one of the hub."""
        return list_causal_model_files(self.model)

    def load_scorer(self, words: GroupWords) -> SwappedGroups:
        """Return the model with the words of groups."""

        def load() -> SentenceModel:
            causal = load_causal_model(self.model, self.revision, device=self.device)
            return SentenceModel("causal", causal.tokenizer, causal.network)

        uses_all_words = self.candidates == "words"
        return SwappedGroups(load, words, uses_all_words, self.tokens_per_batch, self.max_length)
