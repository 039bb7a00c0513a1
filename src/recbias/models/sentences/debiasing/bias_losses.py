"""Bias losses of language models as functions of tensors, as in the paper and as released."""

from __future__ import annotations

from recbias.models.ranking.tensors import Tensor

MIN_VARIANCE = 0.5
"""The share of the variance of pair differences that a bias subspace explains at least."""

_ROUNDING = 1e-6


def compute_log_ratio_loss(first: Tensor, second: Tensor, n_pairs: int) -> Tensor:
    """Return the loss of LMD: how much the probabilities of the terms of a pair differ.

        (1/|P_t|) Σ_i |ln y_i(t1) - ln y_i(t2)|

    over the places i at which a target term occurs, with t1 and t2 the pair of that term and y_i
    the distribution that the model predicts there. Logits serve as log-probabilities, since the
    normalisation cancels out. A term of several tokens has the mean of theirs. It is a sum over
    the places of a batch; the training divides it by the number of sentences.

    Args:
        first: The logit of t1 at each place, ``(m,)``.
        second: The logit of t2.
        n_pairs: The number of target pairs, |P_t|.

    Source:
        Zhao et al., "CHBias", ACL 2023, section 5; Qian, Muaz, Zhang and Hyun, "Reducing gender
        bias in word-level language models with a gender-equalizing loss function", ACL 2019.

    >>> import torch
    >>> float(compute_log_ratio_loss(torch.tensor([1.0, 0.0]), torch.tensor([0.0, 2.0]), 3))
    1.0
    """
    return (first - second).abs().sum() / n_pairs


def compute_released_log_ratio_loss(
    states: Tensor, is_token: Tensor, occurs: Tensor, differences: Tensor
) -> Tensor:
    """Return the loss of LMD as in the released code.

        (1/|P_t|) Σ_s Σ_(pairs whose first term is in s) (1/n_s) Σ_i |h_si · (e1 - e2)|

    over all n_s positions of a sentence s, also those at which the model predicts another word.
    The sum over sentences is not divided by their number.

    Args:
        states: The last hidden states h, ``(b, w, d)``.
        is_token: Which positions are not padding, ``bool (b, w)``.
        occurs: Whether the first term of a pair is in a sentence, ``bool (b, p)``.
        differences: e1 - e2, the difference of the output embeddings, ``(p, d)``; constants.
    """
    ratios = (states @ differences.T).abs() * is_token.unsqueeze(-1)
    means = ratios.sum(1) / is_token.sum(1, keepdim=True).clamp(min=1)
    return (means * occurs).sum() / len(differences)


def compute_cosine_gap_loss(attributes: Tensor, first: Tensor, second: Tensor) -> Tensor:
    """Return the loss of ADD: how much closer attribute terms are to one term of a pair.

        Σ_a Σ_(t1,t2) |cos(t1, a) - cos(t2, a)|

    It is a sum over the occurrences of a batch; the training divides it by the number of
    sentences, unless it is that of the released code.

    Args:
        attributes: The vector of each occurrence of an attribute term, ``(m, d)``: its input
            embedding; in the released code the last hidden state of its tokens.
        first: The vectors of t1, ``(p, d)``.
        second: The vectors of t2.

    Source:
        Zhao et al., "CHBias", ACL 2023, section 5; Lauscher, Glavaš, Ponzetto and Vulić, "A
        general framework for implicit and explicit debiasing of distributional word vector
        spaces", AAAI 2020.

    >>> import torch
    >>> axes = torch.eye(2)
    >>> float(compute_cosine_gap_loss(torch.tensor([[3.0, 0.0]]), axes[:1], axes[1:]))
    1.0
    """
    from torch.nn.functional import normalize

    cosines = [normalize(attributes) @ normalize(terms).T for terms in (first, second)]
    return (cosines[0] - cosines[1]).abs().sum()


def find_bias_subspace(first: Tensor, second: Tensor) -> Tensor:
    """Return an orthonormal basis of the bias subspace, ``(k, d)``: the columns b_j as rows.

    A principal component analysis of the differences of pairs, which are not centred, as each pair
    counts in both orders. k is the smallest number of components that explain at least half of
    the variance.

    Args:
        first: The vectors of t1, ``(p, d)``.
        second: The vectors of t2.

    Source:
        Bolukbasi, Chang, Zou, Saligrama and Kalai, "Man is to computer programmer as woman is to
        homemaker?", NeurIPS 2016, section 5.

    >>> import torch
    >>> find_bias_subspace(torch.tensor([[2.0, 0.0], [0.0, 1.0]]), torch.zeros(2, 2)).abs()
    tensor([[1., 0.]])
    """
    import torch

    _, values, vectors = torch.linalg.svd((first - second).double() / 2, full_matrices=False)
    shares = values.square().cumsum(0) / values.square().sum()
    k = int((shares < MIN_VARIANCE - _ROUNDING).sum()) + 1
    return vectors[:k].to(first.dtype)


def compute_projection_loss(attributes: Tensor, basis: Tensor) -> Tensor:
    """Return the loss of HD: the length of attribute terms within the bias subspace.

        Σ_a Σ_j |b_j ⟨a, b_j⟩|

    It is a sum over the occurrences of a batch; the training divides it by the number of
    sentences.

    Args:
        attributes: The input embedding of each occurrence of an attribute term, ``(m, d)``.
        basis: The basis of the bias subspace, ``(k, d)``; constants.

    Source:
        Zhao et al., "CHBias", ACL 2023, section 5; Barikeri, Lauscher, Vulić and Glavaš,
        "RedditBias", ACL 2021.

    >>> import torch
    >>> float(compute_projection_loss(torch.tensor([[3.0, 4.0]]), torch.tensor([[0.0, 1.0]])))
    4.0
    """
    return ((attributes @ basis.T).abs() * basis.norm(dim=1)).sum()


def compute_released_projection_loss(states: Tensor, basis: Tensor) -> Tensor:
    """Return the loss of HD as in the released code: of a running total of projections.

        Σ_m ‖ Σ_(l ≤ m) Σ_j ⟨h_l, b_j⟩ b_j ‖_1

    The total is not reset between the occurrences of a batch, so an occurrence counts in all later
    ones, too, and may cancel out. The sum is not divided by the number of sentences.

    Args:
        states: The last hidden state of each occurrence, in the order of the batch, ``(m, d)``.
        basis: The basis of the bias subspace, ``(k, d)``; constants.
    """
    return ((states @ basis.T) @ basis).cumsum(0).abs().sum()
