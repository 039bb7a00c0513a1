"""Values of obp 0.5.7 on the Open Bandit files, for tests/metrics/test_logged.py.

In an environment of its own:

    pip install --ignore-requires-python --no-deps obp==0.5.7
    pip install numpy scipy scikit-learn pandas pyyaml tqdm matplotlib seaborn
    python studies/off_policy/obp_values.py FOLDER/open-bandit

The candidate is the ``bts`` policy of the same campaign, as its share of each item at each
position; the requests of three items are the k-th rows of the positions 1, 2 and 3 of the log.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd
from obp.ope import (
    DirectMethod,
    DoublyRobust,
    InverseProbabilityWeighting,
    SelfNormalizedInverseProbabilityWeighting,
    SlateIndependentIPS,
    SlateRewardInteractionIPS,
    SlateStandardIPS,
)


def read(folder: Path, policy: str, campaign: str) -> pd.DataFrame:
    """Return a log of the release."""
    return pd.read_csv(folder / policy / campaign / f"{campaign}.csv.gz", index_col=0)


def average_rewards(log: pd.DataFrame, n_items: int) -> np.ndarray:
    """Return the mean reward of each item and position, for each row."""
    n, clicks = np.zeros((n_items, 3)), np.zeros((n_items, 3))
    np.add.at(n, (log["item_id"], log["position"] - 1), 1)
    np.add.at(clicks, (log["item_id"], log["position"] - 1), log["click"])
    return np.broadcast_to(clicks / np.maximum(n, 1), (len(log), n_items, 3))


def estimate_rewards(log: pd.DataFrame, n_items: int) -> np.ndarray:
    """Return q of each row, item and position, from the other half of the rows."""
    halves = np.arange(len(log)) % 2
    q = np.zeros((2, n_items, 3))
    for half in (0, 1):
        other = log[halves != half]
        for position in (1, 2, 3):
            rows = other[other["position"] == position]
            mean = rows["click"].mean()
            n = np.bincount(rows["item_id"], minlength=n_items)
            clicks = np.bincount(rows["item_id"], rows["click"], minlength=n_items)
            q[half, :, position - 1] = (clicks + 10 * mean) / (n + 10)
    return q[halves]


def main(folder: Path) -> None:
    """Print the values of each campaign."""
    for campaign in ("men", "women"):
        log, bts = read(folder, "random", campaign), read(folder, "bts", campaign)
        n_items = int(max(log["item_id"].max(), bts["item_id"].max())) + 1
        share = np.zeros((n_items, 3))
        for position in (1, 2, 3):
            rows = bts[bts["position"] == position]
            share[:, position - 1] = np.bincount(rows["item_id"], minlength=n_items) / len(rows)
        rows = {
            "reward": log["click"].to_numpy(),
            "action": log["item_id"].to_numpy(),
            "pscore": log["propensity_score"].to_numpy(),
            "position": log["position"].to_numpy() - 1,
            "action_dist": np.broadcast_to(share, (len(log), n_items, 3)),
        }
        q = estimate_rewards(log, n_items)
        values = {
            "ips": InverseProbabilityWeighting().estimate_policy_value(**rows),
            "ips clip 2": InverseProbabilityWeighting(lambda_=2.0).estimate_policy_value(**rows),
            "snips": SelfNormalizedInverseProbabilityWeighting().estimate_policy_value(**rows),
            "direct": DirectMethod().estimate_policy_value(
                **rows, estimated_rewards_by_reg_model=average_rewards(log, n_items)
            ),
            "dr": DoublyRobust().estimate_policy_value(**rows, estimated_rewards_by_reg_model=q),
        }
        ranks = log.groupby("position").cumcount()
        slates = log.assign(slate=ranks).sort_values(["slate", "position"])
        slates = slates[slates.groupby("slate")["item_id"].transform("size") == 3]
        p = slates["propensity_score"].to_numpy()
        e = share[slates["item_id"], slates["position"] - 1]
        slate = {
            "slate_id": slates["slate"].to_numpy(),
            "reward": slates["click"].to_numpy(),
            "position": slates["position"].to_numpy() - 1,
        }
        whole = [np.repeat(column.reshape(-1, 3).prod(axis=1), 3) for column in (p, e)]
        cascade = [np.cumprod(column.reshape(-1, 3), axis=1).ravel() for column in (p, e)]
        values |= {
            "sips": SlateStandardIPS(len_list=3).estimate_policy_value(
                **slate, pscore=whole[0], evaluation_policy_pscore=whole[1]
            ),
            "iips": SlateIndependentIPS(len_list=3).estimate_policy_value(
                **slate, pscore_item_position=p, evaluation_policy_pscore_item_position=e
            ),
            "rips": SlateRewardInteractionIPS(len_list=3).estimate_policy_value(
                **slate, pscore_cascade=cascade[0], evaluation_policy_pscore_cascade=cascade[1]
            ),
        }
        print(campaign, {name: round(float(value), 10) for name, value in values.items()})


if __name__ == "__main__":
    main(Path(sys.argv[1]))
