"""Labels from a masked language model's choice among groups where a text names one (BiasMeter)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from recbias.core.protocols import ModelName
from recbias.detectors.group_detector import GroupDetector
from recbias.language.groups.group_words import GroupWords
from recbias.language.groups.masked_groups import Candidates, MaskedGroups, Neutral
from recbias.language.masked_models import MaskedModel
from recbias.language.model_folders import list_model_files


@dataclass(frozen=True, kw_only=True)
class MaskedLM(GroupDetector):
    """Label items whose text names the groups that a masked language model expects (BiasMeter).

        p(g) = softmax over the groups of ln P(g | the sentence, with the word masked)
        score of a word = p(named group) - max p(other group)
        score of a sentence = mean of its words
        label = 1 if the certainty factor of all sentences > threshold else 0

    Each occurrence of a group word is masked alone; the others stay. The model gives each group a
    probability there: that of its name, or the sum over its words. Words are found in upper and
    lower case and, with the packaged list, in the plural. Sentences without a group word are
    skipped, and negative scores (against the stereotype) lower the result. The rule for scores of
    opposite signs is 0/0 for a sentence of exactly 1 and one of exactly -1; the certainty of such
    an item is 0 here, whatever its other sentences are. Beside the label of
    each kind there is its grade, ``gender_score``: the combined score, 0 if it is negative. Words
    that the tokenizer divides have no probability at one mask: they are found in texts, but not
    summed, and counted in a warning. In a sentence longer than the model reads, the tokens around
    the mask are read.

    Args:
        model: A masked language model: a folder, an installed package, or a model of the Hugging
            Face hub.
        candidates: What stands for a group: ``names``, its name, as BiasMeter's released code
            has it, or ``words``, the sum over its words.
        neutral: Divides the probability of a group by its mean q in the neutral sentences of the
            word list: ``ratio`` by q, ``log_ratio`` by ln(1 + q) as in the released code.

    Raises:
        MissingFile: The model or the word list is not found, or the model has no head: all weights
            that are missing are named.
        Contradiction: The tokenizer has no mask token, or one token for two groups.
        OutOfRange: The tokenizer divides every candidate of a group.
    """

    model: ModelName = "bert-base-uncased"
    candidates: Candidates = "names"
    neutral: Neutral = "none"

    def model_files(self) -> Sequence[Path]:
        """Return the files of a local model; none for one of the hub."""
        return list_model_files(self.model)

    def load_scorer(self, words: GroupWords) -> MaskedGroups:
        """Return the model with the words of groups."""
        model = MaskedModel.load(self.model, self.revision, device=self.device)
        return MaskedGroups(model, words, self.candidates, self.neutral, self.tokens_per_batch)
