"""Measures of a log of impressions: what was shown, and what a candidate would have shown.

Each is a ratio of totals over the rows of the log; a user adds one number to each total, so that
intervals and tests have the users as units, and a group of users has a ratio of its own.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Any, ClassVar

import numpy as np
from annotated_types import Gt

from recbias.core.context import warn
from recbias.core.dataset import AnyArray, BoolArray, FloatArray
from recbias.core.docstrings import InheritsSections
from recbias.core.errors import MissingEvidence, UnknownName
from recbias.core.evidence import Evidence, ImpressionLog, Impressions, Policy
from recbias.core.grouping import group_by
from recbias.core.measures import Direction, Measurement, UnitScores, linearize_ratio
from recbias.core.plugins import OnlyWith
from recbias.statistics.logs import (
    SLATE_ESTIMATORS,
    WEIGHTED,
    Estimator,
    Terms,
    estimate_rows,
    estimate_slates,
    lose_mass,
)

_ROUNDING = 1e-9
_PRIOR = 10.0  # impressions with the mean reward of the position, which an expected reward counts
_FEWEST = 10  # impressions by which the reward of an item in a group is estimated
_MOST_CELLS = 2**26  # of items, positions and groups


class _LogMetric(InheritsSections):
    """A ratio of totals over the rows of a log."""

    unit: ClassVar[str] = "query"
    needs: ClassVar[frozenset[str]] = frozenset({"log", "shown"})
    lists: ClassVar[bool] = False  # whether it is of whole requests

    def add_rows(self, block: Impressions) -> Terms:
        """Return what each row of a block adds to the numerator and the denominator."""
        raise NotImplementedError

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the ratio, with the values of the users."""
        policy = get_policy(evidence, "shown")
        totals = np.zeros((len(evidence.queries), 2))
        for block, queries in read_rows(evidence, policy.variant, lists=self.lists):
            totals += _add_by_query(queries, self.add_rows(block), len(totals))
        return [measure_ratio(evidence, totals)]


def get_policy(evidence: Evidence, kind: str) -> Policy:
    """Return what was shown, or what a candidate would show; MissingEvidence without it."""
    evidence.need("log")
    evidence.need(kind)
    policy: Policy = getattr(evidence, kind)
    return policy


def read_rows(
    evidence: Evidence, variant: str = "", *, lists: bool = False
) -> Iterator[tuple[Impressions, AnyArray]]:
    """Yield the blocks of the log of the users that are asked, and the query of each row.

    Args:
        evidence: The evidence.
        variant: The variant, or all.
        lists: Whether whole requests are measured; see ``ImpressionLog.read_lists``.

    Raises:
        UnknownName: The log has no such variant.
    """
    log: ImpressionLog = evidence.log  # type: ignore[assignment]  # see get_policy
    users = evidence.queries.users
    query_of = np.full(int(users.max(initial=-1)) + 2, -1, dtype=np.int64)
    query_of[users[users >= 0]] = np.flatnonzero(users >= 0)
    n_rows = 0
    for block in log.read_lists() if lists else log.read_blocks():
        queries = query_of[np.minimum(block.users, query_of.size - 1)]
        kept = queries >= 0
        if variant:
            kept &= block.variants == variant
        n_rows += int(kept.sum())
        if kept.all():
            yield block, queries
        elif kept.any():
            yield block.take(kept), queries[kept]
    if variant and not n_rows:
        raise UnknownName(f"the log has no rows of the variant {variant!r}", where="variant")


def _add_by_query(queries: AnyArray, terms: Terms, n: int) -> FloatArray:
    """Return the sums of the terms of each query, ``float64[n, 2]``, or 3 with errors."""
    parts = [part for part in terms if part is not None]
    return np.stack([np.bincount(queries, part, minlength=n) for part in parts], axis=1)


def measure_ratio(
    evidence: Evidence, totals: FloatArray, target: str = "", *, positive: bool = False
) -> Measurement:
    """Return a ratio of totals of the queries; see ``linearize_ratio``."""
    values = linearize_ratio(totals)
    is_share = bool(np.isin(totals, (0.0, 1.0)).all() and (totals[:, 0] <= totals[:, 1]).all())
    is_share = is_share and not totals[:, 2:].any()
    ids = evidence.queries.ids.ids
    units = UnitScores(evidence.queries.unit, ids, values, is_share, totals, positive=positive)
    return Measurement.from_units(units, target=target)


@dataclass(frozen=True, kw_only=True)
class ClickThroughRate(_LogMetric):
    """The mean reward of an impression, such as the share of the impressions with a click.

        CTR = Σ r / number of impressions

    over the impressions of the log or of one variant. A user with several impressions is one unit:
    the interval is that of a ratio of totals of users.

    Range:
        any number; 0 to 1 for clicks; undefined for users without an impression.

    Source:
        Deng, Knoblich and Lu, "Applying the delta method in metric analytics", KDD 2018.
    """

    direction: ClassVar[Direction] = "higher"

    def add_rows(self, block: Impressions) -> Terms:
        """Return the rewards, and 1."""
        return Terms(block.rewards, np.ones(block.rewards.size))


@dataclass(frozen=True, kw_only=True)
class ShownShare(_LogMetric):
    """The share of the exposure that items with each value of an attribute got.

        share(v) = Σ over impressions of items with v of e_p / Σ e_p

    ``e_p`` is 1, or with ``discount`` 1 / log2(p + 1) at position p. There is a row for each value
    of the attribute.

    Args:
        attribute: The column of the items: ``genre``.
        discount: Whether an impression counts less at a lower position.

    Range:
        0 to 1; undefined for users without an impression.

    Source:
        Singh and Joachims, "Fairness of exposure in rankings", KDD 2018.
    """

    direction: ClassVar[Direction] = "none"
    needs: ClassVar[frozenset[str]] = frozenset({"log", "shown", "items"})

    attribute: str
    discount: bool = False

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the share of each value."""
        policy = get_policy(evidence, "shown")
        evidence.need("items")
        if self.discount:
            require_positions(evidence, "discount")
        membership = evidence.items.categories(self.attribute)  # type: ignore[union-attr]
        members = membership.matrix.toarray()
        n = len(evidence.queries)
        shown, total = np.zeros((len(membership.values), n)), np.zeros(n)
        for block, queries in read_rows(evidence, policy.variant):
            exposure = np.ones(queries.size)
            if self.discount:
                exposure /= np.log2(block.positions + 1.0)
            total += np.bincount(queries, exposure, n)
            for code in range(len(shown)):
                has = members[block.items, code]
                shown[code] += np.bincount(queries[has], exposure[has], n)
        for value, own in zip(membership.values, shown, strict=True):
            if not own.any():
                warn(f"{evidence.metric}: no item with {self.attribute}={value} was ever shown")
        return [
            measure_ratio(evidence, np.stack([own, total], axis=1), f"{self.attribute}={value}")
            for value, own in zip(membership.values, shown, strict=True)
        ]


@dataclass(frozen=True, kw_only=True)
class ShownNDCG(_LogMetric):
    """nDCG of what was shown: whether rewarded items stood above the others of their request.

        nDCG = mean of  Σ_l r_l / log2(p_l + 1)  /  Σ_j r_(j) / log2(j + 1)

    over the requests with a reward; ``r_(j)`` are the rewards of the request, largest first. The
    log must have requests, and one item at each position of a request. Users click more at the
    positions that they see first, so that position bias raises it.

    Range:
        0 to 1; undefined for users without a reward.

    Source:
        Järvelin and Kekäläinen, "Cumulated gain-based evaluation of IR techniques", TOIS 2002.
    """

    direction: ClassVar[Direction] = "higher"
    lists: ClassVar[bool] = True

    def add_rows(self, block: Impressions) -> Terms:
        """Return nDCG at the first row of each request with a reward."""
        is_first = np.diff(block.requests, prepend=block.requests[:1] - 1) != 0
        starts = np.flatnonzero(is_first)
        lengths = np.diff(starts, append=is_first.size)
        ordered = np.lexsort((-block.rewards, block.requests))
        ranks = np.arange(is_first.size) - np.repeat(starts, lengths) + 1
        gains = np.add.reduceat(block.rewards / np.log2(block.positions + 1.0), starts)
        ideal = np.add.reduceat(block.rewards[ordered] / np.log2(ranks + 1.0), starts)
        terms = np.zeros((2, is_first.size))
        has_reward = ideal > 0
        terms[0, starts[has_reward]] = gains[has_reward] / ideal[has_reward]
        terms[1, starts[has_reward]] = 1.0
        return Terms(*terms)


def require_positions(evidence: Evidence, what: str) -> None:
    """Raise MissingEvidence if there is no log, or one without positions."""
    evidence.need("log")
    if not evidence.log.has_positions:  # type: ignore[union-attr]
        message = f"{what} needs positions, which the log does not have"
        raise MissingEvidence(message, remedy="give the log a column position")


class _Survey:
    """The impressions and rewards of each item at each position, of parts of the users.

    A part is a half of the users of a stratum: ``2 * stratum + user % 2``.
    """

    def __init__(self, evidence: Evidence, strata: AnyArray | None = None) -> None:
        self._strata = strata
        n_items = len(evidence.item_ids)
        n_parts = 2 if strata is None else 2 * (int(strata.max(initial=0)) + 1)
        self.n = np.zeros((n_parts, n_items, 1))
        self.rewards = np.zeros((n_parts, n_items, 1))
        self.range = (math.inf, -math.inf)
        for block, queries in read_rows(evidence):
            if (more := int(block.positions.max(initial=0)) + 1 - self.n.shape[2]) > 0:
                pad = ((0, 0), (0, 0), (0, more))
                self.n, self.rewards = np.pad(self.n, pad), np.pad(self.rewards, pad)
            parts = self.find_parts(block, queries)
            cells = np.ravel_multi_index((parts, block.items, block.positions), self.n.shape)
            size, shape = self.n.size, self.n.shape
            self.n += np.bincount(cells, minlength=size).reshape(shape)
            self.rewards += np.bincount(cells, block.rewards, minlength=size).reshape(shape)
            ends = float(block.rewards.min()), float(block.rewards.max())
            self.range = min(self.range[0], ends[0]), max(self.range[1], ends[1])

    def find_parts(self, block: Impressions, queries: AnyArray) -> AnyArray:
        """Return the part of the user of each row."""
        halves = np.asarray(block.users % 2)
        return halves if self._strata is None else halves + 2 * self._strata[queries]

    @property
    def positions(self) -> AnyArray:
        """The positions at which something was shown."""
        return np.flatnonzero(self.n.sum(axis=(0, 1)) > 0)

    @cached_property
    def is_shown(self) -> BoolArray:
        """Which item was shown at which position, ``bool[n_items, n_positions]``."""
        return np.asarray(self.n.sum(axis=0) > 0)

    @cached_property
    def by_stratum(self) -> FloatArray:
        """The impressions of each stratum, ``float64[s, n_items, n_positions]``."""
        return np.asarray(self.n[0::2] + self.n[1::2])

    def expect(self, *, cross: bool) -> FloatArray:
        """Return the expected reward of an item at a position, for each part of the users.

        Either the mean reward in the stratum, or in all where it has fewer than 10 impressions; or
        that of the other half of the users, drawn towards the mean of the position, and with
        several strata that of the other half of the stratum, drawn towards the former:

            q = ( Σ r + 10 m ) / ( n + 10 ),    m: the mean reward at the position
        """
        if not cross:
            n, rewards = (cells.sum(axis=0) for cells in (self.n, self.rewards))
            q = rewards / np.maximum(n, 1.0)
            if self._strata is not None:
                own = (self.rewards[0::2] + self.rewards[1::2]) / np.maximum(self.by_stratum, 1.0)
                q = np.repeat(np.where(self.by_stratum < _FEWEST, q, own), 2, axis=0)
            return np.broadcast_to(q, self.n.shape)
        shape = (-1, 2, *self.n.shape[1:])
        n, rewards = (cells.reshape(shape)[:, ::-1] for cells in (self.n, self.rewards))
        shown, total = n.sum(axis=0), rewards.sum(axis=0)
        mean = total.sum(axis=1, keepdims=True) / np.maximum(shown.sum(axis=1, keepdims=True), 1.0)
        q = (total + _PRIOR * mean) / (shown + _PRIOR)
        if self._strata is not None:
            q = ((rewards + _PRIOR * q) / (n + _PRIOR)).reshape(self.n.shape)
        return np.asarray(q)


class _Candidate:
    """The probabilities of a policy, by group of users and position: its contexts."""

    def __init__(self, policy: Policy, survey: _Survey) -> None:
        n_positions = survey.n.shape[2]
        positions = policy.positions
        parts: list[AnyArray] = [policy.items, policy.groups, policy.probabilities]
        if not positions.size:
            at: AnyArray = survey.positions
            positions = np.repeat(at, policy.items.size)
            parts = [np.tile(part, at.size) for part in parts]
        known = (positions < n_positions) & (parts[1] >= 0)
        self.positions: AnyArray = positions[known]
        self.items: AnyArray = parts[0][known].astype(np.int64)
        self.probabilities: FloatArray = parts[2][known].astype(np.float64)
        groups = parts[1][known].astype(np.int64)
        self._group_of, self._n_positions = policy.group_of, n_positions
        keys = groups * n_positions + self.positions
        self._contexts, self.context_of = np.unique(keys, return_inverse=True)
        self._n_items = len(survey.is_shown) + 1
        keys = self.context_of * self._n_items + self.items + 1
        self._order = np.argsort(keys, kind="stable")
        self._keys = keys[self._order]

    def find_contexts(self, block: Impressions) -> AnyArray:
        """Return the context of each row; -1 if the policy is not known there."""
        groups = self._group_of[block.users].astype(np.int64)
        keys = groups * self._n_positions + block.positions
        at = np.minimum(np.searchsorted(self._contexts, keys), self._contexts.size - 1)
        return np.where((groups >= 0) & (self._contexts[at] == keys), at, -1)

    def find(self, block: Impressions, contexts: AnyArray) -> FloatArray:
        """Return the probability of the item of each row."""
        keys = contexts * self._n_items + block.items + 1
        at = np.minimum(np.searchsorted(self._keys, keys), self._keys.size - 1)
        found = (self._keys[at] == keys) & (contexts >= 0)
        return np.where(found, self.probabilities[self._order[at]], 0.0)

    def sum_contexts(self, values: FloatArray) -> FloatArray:
        """Return the sum over the items of each context, and 0 at the end, ``float64[c + 1]``."""
        return np.bincount(self.context_of, values, self._contexts.size + 1).astype(np.float64)


class Weights:
    """The importance weights of a candidate on a log.

    Those of ``direct`` are the share of an item at a position under the candidate divided by that
    in the log, so that they need no propensities.
    """

    def __init__(
        self,
        evidence: Evidence,
        clip: float | None,
        *,
        is_direct: bool = False,
        lists: bool = False,
        strata: AnyArray | None = None,
    ) -> None:
        if not (is_direct or evidence.log.has_propensities):  # type: ignore[union-attr]
            message = "the log has no propensities, by which a candidate could be valued"
            remedy = "give the log a column propensity, or choose estimator: direct"
            raise MissingEvidence(message, remedy=remedy)
        policy: Policy = evidence.policy  # type: ignore[assignment]
        self._evidence, self._clip, self._lists = evidence, clip, lists
        self.survey = _Survey(evidence, strata)
        self.candidate = _Candidate(policy, self.survey)
        self._covered = np.isin(np.arange(self.survey.n.shape[2]), self.candidate.positions)
        if left := [at for at in self.survey.positions.tolist() if not self._covered[at]]:
            warn(f"{evidence.metric}: the candidate has nothing at position {left[0]}: left out")
        self.n_clipped = self.n_rows = 0
        self._certain = np.zeros((2, 0), dtype=np.int64)  # contexts and items of propensity 1
        self._shares = self._divide_shares() if is_direct else None

    def _divide_shares(self) -> FloatArray:
        """Return the weight of each item at each position by shares, ``float64[s, items, p]``."""
        candidate, shown = self.candidate, self.survey.by_stratum
        size = candidate.sum_contexts(candidate.probabilities).size
        counts = np.zeros(len(shown) * size)
        for block, queries in self._read_covered():
            contexts = candidate.find_contexts(block) % size
            contexts += self.survey.find_parts(block, queries) // 2 * size
            counts += np.bincount(contexts, None, counts.size)
        inside = candidate.items >= 0
        cells = candidate.items[inside], candidate.positions[inside]
        wanted = np.zeros(shown.shape)
        for own, n in zip(wanted, counts.reshape(-1, size), strict=True):
            np.add.at(own, cells, (candidate.probabilities * n[candidate.context_of])[inside])
        if len(shown) > 1 and (few := float(wanted[shown < _FEWEST].sum())):
            message = f"{few / wanted.sum():.1%} of what the candidate shows was shown to a group"
            reason = f"fewer than {_FEWEST} times: there, its rewards are those of all users"
            warn(f"{self._evidence.metric}: {message} {reason}")
        return np.asarray(wanted / np.maximum(shown, 1.0))

    def _read_covered(self) -> Iterator[tuple[Impressions, AnyArray]]:
        """Yield the rows at the positions that the candidate fills."""
        for block, queries in read_rows(self._evidence, lists=self._lists):
            kept = self._covered[block.positions]
            yield block.take(kept), queries[kept]

    def find_support(self) -> tuple[FloatArray, FloatArray]:
        """Return the probabilities of what the log shows, and the mass of the rest by context."""
        items, positions = self.candidate.items, self.candidate.positions
        supported = (items >= 0) & self.survey.is_shown[items, positions]
        probabilities = self.candidate.probabilities * supported
        missing = 1.0 - self.candidate.sum_contexts(probabilities)
        missing[missing < _ROUNDING] = 0.0
        return probabilities, missing

    def read(self) -> Iterator[tuple[Impressions, AnyArray, AnyArray, FloatArray]]:
        """Yield blocks with the query, the context and the weight of each row."""
        for block, queries in self._read_covered():
            yield block, queries, *self.weigh(block, queries)

    def weigh(self, block: Impressions, queries: AnyArray) -> tuple[AnyArray, FloatArray]:
        """Return the context and the weight of each row; 0 where the candidate has nothing."""
        contexts = self.candidate.find_contexts(block)
        if self._shares is not None:
            strata = self.survey.find_parts(block, queries) // 2
            weights = self._shares[strata, block.items, block.positions]
        else:
            weights = self.candidate.find(block, contexts) / block.propensities
            certain = np.flatnonzero(block.propensities == 1)
            pairs = np.stack([contexts[certain], block.items[certain]])
            self._certain = np.unique(np.hstack([self._certain, pairs]), axis=1)
        if np.isnan(weights).any():
            message = "some rows of the log have no propensity"
            raise MissingEvidence(message, remedy="give each row its propensity")
        if self._clip is not None:
            self.n_clipped += int((weights > self._clip).sum())
            weights = np.minimum(weights, self._clip)
        self.n_rows += weights.size
        return contexts, weights

    def lacks_support(self, block: Impressions, contexts: AnyArray) -> bool:
        """Return whether the candidate shows there what the log never shows."""
        _, missing = self._support
        return bool((missing[contexts] * self._covered[block.positions]).any())

    @cached_property
    def _support(self) -> tuple[FloatArray, FloatArray]:
        return self.find_support()

    def warn(self) -> None:
        """Say how many weights were cut, and which propensities cannot be."""
        sizes = np.unique(self._certain[0], return_counts=True)[1]
        if (n := int(sizes.max(initial=0))) > 1:
            warn(
                f"{self._evidence.metric}: {n:,} items have propensity 1 at one position, but "
                "only one can be certain, unless it depends on the user: check the propensities"
            )
        if self.n_clipped:
            share, metric = self.n_clipped / self.n_rows, self._evidence.metric
            warn(f"{metric}: {share:.2%} of the weights were above {self._clip:g} and cut")


def _find_strata(evidence: Evidence, label: str) -> AnyArray | None:
    """Return the group of each query, 0 if it has none; None where there are too many."""
    strata = group_by(evidence.queries.labels, label).codes + 1
    if (int(strata.max()) + 1) * len(evidence.item_ids) > _MOST_CELLS:
        warn(f"{evidence.metric}: {label} has too many groups: rewards are those of all users")
        return None
    return strata


@dataclass(frozen=True, kw_only=True)
class PolicyValue(InheritsSections):
    """The mean reward that a candidate would have had, from a log of another policy.

        ips     Σ w r / n            snips   Σ w r / Σ w            w = π(a | x) / p
        direct  Σ q_π / n            dr      Σ ( q_π + w (r - q) ) / n

    ``p`` is the logged propensity, ``q`` the mean reward of the item at the position, and
    ``q_π = Σ_a π(a | x) q(x, a)``. For ``dr``, ``q`` is that of the other half of the users, drawn
    towards the mean of the position. ``direct`` needs no propensities, and is right only if users
    who were shown an item at a position do not differ from the others. With ``rewards_by`` each
    group of users has a ``q`` of its own, so that groups may react differently, and users need not
    differ within a group only; the value is the mean over all users. Values by group (``by:``)
    have it by that label. An item that a group was shown fewer than 10 times at a position has
    there the ``q`` of all users (``direct``), or is drawn towards it (``dr``).

    These are of an impression. ``iips``, ``rips``, ``sips`` and ``slate_pi`` are of the sum over a
    request: by position, by the items above too (reward interaction), by the whole list, and by
    the pseudo-inverse, for lists whose positions were filled independently of each other.

    Of the model ``shown`` it is the mean reward itself. Where the candidate shows items that the
    log never shows at a position, no estimate is unbiased: the value is undefined, and there is a
    row with the lowest and one with the highest reward of the log in their place (``bound``).

    Args:
        estimator: The estimator.
        clip: The largest weight; larger ones are cut, which is said, and lowers the value.
        rewards_by: The label of the users by whose groups rewards are estimated; by default that
            of ``by:``.

    Range:
        any number; undefined without support.

    Source:
        Swaminathan and Joachims, NeurIPS 2015 (snips); Dudík, Langford and Li, ICML 2011 (dr);
        McInerney et al., KDD 2020 (rips); Swaminathan et al., NeurIPS 2017 (slate_pi).
    """

    unit: ClassVar[str] = "query"
    direction: ClassVar[Direction] = "higher"
    needs: ClassVar[frozenset[str]] = frozenset({"log", "policy"})

    estimator: Estimator = "snips"
    clip: Annotated[Annotated[float, Gt(0)] | None, OnlyWith("estimator", *WEIGHTED)] = None
    rewards_by: Annotated[str | None, OnlyWith("estimator", "direct", "dr")] = None

    def fit_by(self, label: str) -> Mapping[str, Any]:
        """Return the settings for values by a label: rewards are estimated by group."""
        is_fitted = self.estimator in {"direct", "dr"} and self.rewards_by is None
        return {"rewards_by": label} if is_fitted else {}

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the value, or its bounds."""
        policy = get_policy(evidence, "policy")
        is_direct = self.estimator == "direct"
        totals = np.zeros((len(evidence.queries), 3 if is_direct else 2))
        lists = self.estimator in SLATE_ESTIMATORS
        if policy.is_shown:
            for block, queries in read_rows(evidence, policy.variant, lists=lists):
                terms = self._find_terms(
                    block, np.ones(queries.size), block.rewards, block.rewards
                )
                totals += _add_by_query(queries, terms, len(totals))
            return [measure_ratio(evidence, totals)]
        strata = None if self.rewards_by is None else _find_strata(evidence, self.rewards_by)
        weights = Weights(evidence, self.clip, is_direct=is_direct, lists=lists, strata=strata)
        candidate, survey = weights.candidate, weights.survey
        reward = survey.expect(cross=not is_direct)
        probabilities, missing = weights.find_support()
        expected = np.stack(
            [
                candidate.sum_contexts(probabilities * part[candidate.items, candidate.positions])
                for part in reward
            ]
        )
        lost, n_rows = np.zeros_like(totals), 0
        for block, queries, contexts, weight in weights.read():
            parts = survey.find_parts(block, queries)
            shown = reward[parts, block.items, block.positions]
            terms = self._find_terms(block, weight, expected[parts, contexts], shown)
            mass = lose_mass(self.estimator, missing[contexts], block.requests)
            if self.estimator == "slate_pi":
                terms = terms._replace(numerators=terms.numerators * (1.0 - mass))
            totals += _add_by_query(queries, terms, len(totals))
            lost[:, :2] += _add_by_query(queries, Terms(mass, mass), len(totals))
            n_rows += mass.size
        weights.warn()
        if not lost.any():
            is_positive = self.estimator in {"dr", "direct"} and survey.range[0] >= 0
            return [measure_ratio(evidence, totals, positive=is_positive)]
        message = f"{lost[:, 0].sum() / n_rows:.1%} of what the candidate shows was never shown"
        warn(f"{evidence.metric}: {message} there, so its value has bounds")
        return self._bound(evidence, totals, lost, survey.range)

    def _find_terms(
        self, block: Impressions, weights: FloatArray, expected: FloatArray, shown: FloatArray
    ) -> Terms:
        if self.estimator in SLATE_ESTIMATORS:
            return estimate_slates(self.estimator, weights, block.rewards, block.requests)
        return estimate_rows(self.estimator, weights, block.rewards, expected, shown)

    def _bound(
        self, evidence: Evidence, totals: FloatArray, lost: FloatArray, ends: tuple[float, float]
    ) -> list[Measurement]:
        """Return an undefined value, and its bounds."""
        scale = np.array([[end, float(self.estimator == "snips"), 0.0] for end in ends])
        low, high = (
            measure_ratio(evidence, totals + lost * end[: totals.shape[1]], f"bound={name}")
            for name, end in zip(("lowest", "highest"), scale, strict=True)
        )
        units: UnitScores = low.units  # type: ignore[assignment]
        undefined = replace(units, values=np.full(units.values.size, np.nan), totals=None)
        return [Measurement.from_units(undefined), low, high]


@dataclass(frozen=True, kw_only=True)
class EffectiveSampleSize(InheritsSections):
    """How many impressions of its own a candidate's value is worth, by its importance weights.

        n_eff = ( Σ w )² / Σ w²

    Of the model ``shown`` it is the number of impressions. There is no interval.

    Args:
        label: A label of the users, of whose values each gets a row: ``gender``.
        clip: The largest weight.

    Range:
        0 or more.

    Source:
        Kong, "A note on importance sampling using standardized weights", 1992.
    """

    unit: ClassVar[str] = ""
    direction: ClassVar[Direction] = "higher"
    needs: ClassVar[frozenset[str]] = frozenset({"log", "policy"})

    label: str | None = None
    clip: Annotated[float, Gt(0)] | None = None

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the size, of all users and of each group."""
        policy = get_policy(evidence, "policy")
        n = len(evidence.queries)
        totals = np.zeros((n, 2))
        if policy.is_shown:
            for _, queries in read_rows(evidence, policy.variant):
                totals += _add_by_query(queries, Terms(*np.ones((2, queries.size))), n)
        else:
            weights = Weights(evidence, self.clip)
            for _, queries, _, weight in weights.read():
                totals += _add_by_query(queries, Terms(weight, weight**2), n)
            weights.warn()
        rows = [self._count("", totals)]
        if self.label is not None:
            groups = group_by(evidence.queries.labels, self.label, split_cells=True)
            rows += [
                self._count(name, totals[groups.find_rows(code)])
                for code, name in enumerate(groups.names)
            ]
        return rows

    def _count(self, group: str, totals: FloatArray) -> Measurement:
        first, second = totals.sum(axis=0)
        size = float(first**2 / second) if second else 0.0
        n_units = int((totals[:, 1] > 0).sum())
        return Measurement(value=size, n=n_units, undefined=len(totals) - n_units, group=group)
