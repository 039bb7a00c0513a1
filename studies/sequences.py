"""How often audits that are looked at after every persona raise a false alarm, and when they stop.

    python studies/sequences.py [--audits 2000] [--personas 1000]

An audit is a series of personas, each with one reply for another value of an attribute and two
equal neutral replies. Without an effect, an alarm at any look is false. With one, the personas
that a sequence needs are compared with those of paired t-tests with a fixed number that find the
effect with a stated power, and with what no sequence can beat: Wald's test, which knows size and
standard deviation of the effect, and the number at which the most powerful test of the level finds
it in half of all audits (Neyman and Pearson).
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Mapping

import numpy as np

from recbias.core.dataset import FloatArray
from recbias.statistics.confidence_sequences import Bets, Betting, Exchangeable

ALPHA = 0.05
ARMS = 3
Draw = Callable[[np.random.Generator, int], FloatArray]


def compare(replies: FloatArray) -> FloatArray:
    """Return the first of the replies of each persona less each of the others."""
    return replies[:, :1] - replies[:, 1:]


NULLS: Mapping[str, tuple[Bets, Draw]] = {
    "log prices, normal": (
        Exchangeable(),
        lambda rng, n: compare(rng.normal(0, 0.05, (n, ARMS))),
    ),
    "log prices, lognormal": (
        Exchangeable(),
        lambda rng, n: compare(np.exp(rng.normal(0, 1, (n, ARMS)))),
    ),
    "log prices, t with 3 df, no placebo": (
        Exchangeable(),
        lambda rng, n: compare(rng.standard_t(3, (n, 2)) * 0.05),
    ),
    "log prices, one of ten differs": (
        Exchangeable(),
        lambda rng, n: compare(rng.normal(0, 0.05, (n, ARMS)) * (rng.random((n, ARMS)) < 0.1)),
    ),
    "overlaps": (Betting(-1.0), lambda rng, n: rng.beta(8, 4, n) - rng.beta(8, 4, n)),
    "shares of ten items": (
        Betting(-1.0),
        lambda rng, n: compare(rng.binomial(10, 0.2, (n, ARMS)) / 10).mean(axis=1),
    ),
    "shares of ten items, rare": (
        Betting(-1.0),
        lambda rng, n: compare(rng.binomial(10, 0.01, (n, ARMS)) / 10).mean(axis=1),
    ),
}


def count_alarms(bets: Bets, draw: Draw, n_audits: int, n_personas: int) -> float:
    """Return the share of audits with an alarm at any look."""
    alarms = 0
    for seed in range(n_audits):
        values = draw(np.random.default_rng(seed), n_personas)
        alarms += bool((bets.log_e(values, 0.0) >= np.log(1 / ALPHA)).any())
    return alarms / n_audits


def draw_prices(rng: np.random.Generator, n: int, effect: float) -> FloatArray:
    """Return differences of normal log prices: each has the standard deviation 1."""
    replies = rng.normal(0, math.sqrt(0.5), (n, ARMS))
    replies[:, 0] += effect
    return compare(replies)


def draw_shares(rng: np.random.Generator, n: int, effect: float) -> FloatArray:
    """Return differences of shares of ten items, of which 20 % without the effect."""
    odds = 0.2 + effect * math.sqrt(2 * 0.2 * 0.8 / 10)
    replies = rng.binomial(10, [odds, *[0.2] * (ARMS - 1)], (n, ARMS)) / 10
    return compare(replies).mean(axis=1)


def find_stops(bets: Bets, draw: Callable[..., FloatArray], effect: float, n: int) -> FloatArray:
    """Return the number of personas after which each of ``n`` audits is decided."""
    longest, stops = int(100 / effect**2), []
    for seed in range(n):
        log_e = bets.log_e(draw(np.random.default_rng(seed), longest, effect), 0.0)
        decided = np.flatnonzero(log_e >= math.log(1 / ALPHA))
        stops.append(decided[0] + 1 if decided.size else math.inf)
    return np.array(stops)


def find_fixed(effect: float, power: float) -> int:
    """Return the personas of a paired t-test, for an effect in standard deviations."""
    from scipy.stats import nct, t

    n = 3
    while nct.sf(t.isf(ALPHA / 2, n - 1), n - 1, effect * math.sqrt(n)) < power:
        n += 1
    return n


def find_wald(effect: float, n: int) -> float:
    """Return the median stop of Wald's test of an effect of this size or of its negative."""
    longest, stops = int(100 / effect**2), []
    for seed in range(n):
        sums = np.random.default_rng(seed).normal(effect, 1, longest).cumsum()
        t = np.arange(1, longest + 1)
        log_e = np.logaddexp(effect * sums, -effect * sums) - math.log(2) - effect**2 * t / 2
        stops.append(np.argmax(log_e >= math.log(1 / ALPHA)) + 1)
    return float(np.median(stops))


def write_stops(n_audits: int) -> None:
    """Print when sequences stop, beside tests with a fixed number of personas."""
    from scipy.stats import norm

    powers = (0.8, 0.9, 0.95, 0.99)
    head = ["median", *(f"fixed, {power:.0%}" for power in powers), "both controls, 80%"]
    print(f"\n| effects | effect / sd | {' | '.join(head)} | Wald | bound |")
    print(f"|---|{'--:|' * (len(head) + 3)}")
    for effect in (1.0, 0.65, 0.5, 0.25):
        both = effect / math.sqrt(0.75)  # of the reply less the mean of both neutral ones
        wald, bound = find_wald(both, n_audits), (norm.isf(ALPHA / 2) / both) ** 2
        fixed = [find_fixed(effect, power) for power in powers]
        for name, bets, draw in (
            ("log prices", Exchangeable(), draw_prices),
            ("shares of ten items", Betting(-1.0), draw_shares),
        ):
            median = float(np.median(find_stops(bets, draw, effect, n_audits)))
            cells = [f"{n} ({median / n:.0%})" for n in (*fixed, find_fixed(both, 0.8))]
            print(f"| {name} | {effect} | {median:.0f} | {' | '.join(cells)} ", end="")
            print(f"| {wald:.0f} | {math.ceil(bound)} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--audits", type=int, default=2000)
    parser.add_argument("--personas", type=int, default=1000)
    options = parser.parse_args()
    print("| effects on personas | false alarms |\n|---|--:|")
    for name, (bets, draw) in NULLS.items():
        share = count_alarms(bets, draw, options.audits, options.personas)
        print(f"| {name} | {share:.1%} |", flush=True)
    write_stops(options.audits)


if __name__ == "__main__":
    main()
