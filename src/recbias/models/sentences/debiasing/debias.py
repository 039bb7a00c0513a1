"""The settings of debiasing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from annotated_types import Ge, Gt

from recbias.core.errors import Contradiction

LOSSES = frozenset({"LMD", "ADD", "HD"})
"""The methods that add a bias loss; the others add training sentences."""

DEFAULT_WEIGHT = 10.0
RELEASED_LM_WEIGHT = 0.001


@dataclass(frozen=True, kw_only=True)
class Debias:
    """Debiasing by fine-tuning on the training sentences.

        LMD, ADD, HD:   loss = LM + weight · bias
        CADA, CTDA:     loss = LM, over the sentences and copies of them

    LM is the mean cross-entropy of the scored tokens of a batch. The bias loss is the mean over
    its sentences of: ``LMD`` (1/|P_t|) Σ_i |ln y_i(t1)/y_i(t2)| over the places of target terms;
    ``ADD`` Σ_a Σ_(t1,t2) |cos(t1, a) - cos(t2, a)| over the places of attribute terms a of the
    first group, with input embeddings; ``HD`` Σ_a Σ_j |b_j ⟨a, b_j⟩| with the bias subspace of
    the pretrained embeddings, the smallest that explains half of the variance of pair
    differences. A term of several tokens has their mean.

    ``CADA`` adds a copy of each sentence with attribute terms replaced by their counterparts,
    ``CTDA`` one with target terms replaced by those of the second group. A sentence without such
    a term has no copy.

    Args:
        method: The method.
        weight: The weight of the bias loss, 10 by default. 0 is fine-tuning alone, a control.
        category: The category of the terms, such as ``gender``, and of the sentences to train on
            if they have a label ``category``. By default the only one of the sentences or terms.
        reading: ``paper``; or ``released``, the losses of the authors' code. These use last hidden
            states in place of input embeddings and of predictions at the places of target terms,
            constant output embeddings, and sums over the batch: see docs/papers/chbias.md. Their
            total is lm_weight · LM + weight · bias, and LM alone in a batch without terms. Copies
            without a term are duplicates.
        lm_weight: The weight of LM in ``released``: 0.001 by default, or 0.01.

    Raises:
        Contradiction: CADA and CTDA have no weight, and ``paper`` has no ``lm_weight``.

    Source:
        Zhao et al., "CHBias", ACL 2023, section 5, and its released code.
    """

    method: Literal["LMD", "ADD", "HD", "CADA", "CTDA"]
    weight: Annotated[float, Ge(0)] | None = None
    category: str | None = None
    reading: Literal["paper", "released"] = "paper"
    lm_weight: Annotated[float, Gt(0)] | None = None

    def __post_init__(self) -> None:
        """Refuse weights that have no effect."""
        if self.method not in LOSSES and self.weight is not None:
            message = f"{self.method} has no bias loss to be weighted"
            raise Contradiction(message, where="weight", remedy="remove weight")
        if self.lm_weight is not None and (self.reading == "paper" or self.method not in LOSSES):
            message = "the language-model loss has the weight 1"
            remedy = "remove lm_weight, or add reading: released to LMD, ADD or HD"
            raise Contradiction(message, where="lm_weight", remedy=remedy)

    @property
    def has_bias_loss(self) -> bool:
        """Whether the method adds a loss."""
        return self.method in LOSSES

    @property
    def weights(self) -> tuple[float, float]:
        """The weights of the language-model loss and of the bias loss."""
        bias = DEFAULT_WEIGHT if self.weight is None else self.weight
        if self.reading == "paper":
            return 1.0, bias
        return RELEASED_LM_WEIGHT if self.lm_weight is None else self.lm_weight, bias
