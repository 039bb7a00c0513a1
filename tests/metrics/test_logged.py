"""Measures of impression logs: values worked by hand, of obp, and of worlds with a known truth."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from recbias.core.dataset import Dataset, Interactions, TrainingData, freeze
from recbias.core.errors import MissingEvidence
from recbias.core.evidence import Evidence
from recbias.core.measures import Measurement
from recbias.core.queries import Queries
from recbias.data.impressions import ImpressionTable
from recbias.metrics.logged import (
    ClickThroughRate,
    EffectiveSampleSize,
    PolicyValue,
    ShownNDCG,
    ShownShare,
)
from recbias.models.policies import GivenPolicy, Shown


def _load(log: Path | pd.DataFrame, folder: Path, **settings: Any) -> Evidence:
    """Return the evidence of a log: a file, or a table that is written to one."""
    if isinstance(log, pd.DataFrame):
        path = folder / "log.csv"
        log.to_csv(path, index=False)
        log = path
    source = ImpressionTable(path=log, **settings)
    dataset = source.load(folder, np.random.default_rng(0))
    labels = dataset.users
    frame = pd.DataFrame(index=range(len(dataset.user_ids))) if labels is None else labels.frame
    from recbias.core.dataset import Attributes

    ids = dataset.user_ids
    users = np.arange(len(ids), dtype=np.int32)
    queries = Queries(ids, Attributes(ids, frame, "query"), users)
    return Evidence(
        queries, dataset.item_ids, items=dataset.items, log=source.open_log(dataset),
        users=labels, metric="m", train=dataset.interactions,
    )


def _measure(metric: Any, evidence: Evidence, model: Any) -> list[Measurement]:
    from dataclasses import replace

    data = TrainingData(evidence.train, users=evidence.users)
    policy = model.fit(data, np.random.default_rng(0)).policy(evidence.queries)
    shown = policy if policy.is_shown else None
    return list(metric.measure(replace(evidence, policy=policy, shown=shown)))


# python studies/off_policy/obp_values.py ../shared/data/open-bandit
_OBP = {
    "men": {
        "ips": 0.0056562667,
        "ips clip 2": 0.0034937928,
        "snips": 0.0057398647,
        "direct": 0.0056818586,
        "dr": 0.0055931431,
        "sips": 0.0381166399,
        "iips": 0.0171634071,
        "rips": 0.0270607743,
    },
    "women": {
        "ips": 0.0058056918,
        "ips clip 2": 0.0045310124,
        "snips": 0.0058330361,
        "direct": 0.0059234657,
        "dr": 0.0058607853,
        "sips": 0.0258113595,
        "iips": 0.0171397919,
        "rips": 0.0127181393,
    },
}


@pytest.mark.parametrize("campaign", _OBP)
def test_estimators_equal_those_of_obp_on_open_bandit(
    real_data: Path, tmp_path: Path, stage_warnings: list[str], campaign: str
) -> None:
    folder = real_data / "open-bandit"
    path = folder / "random" / campaign / f"{campaign}.csv.gz"
    rows = pd.read_csv(folder / "bts" / campaign / f"{campaign}.csv.gz")
    share = rows.groupby("position")["item_id"].value_counts(normalize=True)
    share.rename("probability").reset_index().to_csv(tmp_path / "bts.csv", index=False)
    log = pd.read_csv(path)
    log = log.assign(request_id=log.groupby("position").cumcount())
    log = log.rename(columns={"click": "reward", "propensity_score": "propensity"})
    names = ["request_id", "item_id", "position", "reward", "propensity"]
    slates = log[log.groupby("request_id")["item_id"].transform("size") == 3]
    by_row = _load(path, tmp_path, layout="open_bandit")
    by_slate = _load(slates[names].sort_values(["request_id", "position"]), tmp_path)
    candidate = GivenPolicy(path=tmp_path / "bts.csv")
    for name, value in _OBP[campaign].items():
        estimator, _, clip = name.partition(" clip ")
        metric = PolicyValue(estimator=estimator, clip=float(clip) if clip else None)
        evidence = by_slate if estimator in {"sips", "iips", "rips"} else by_row
        rows = _measure(metric, evidence, candidate)
        print(name, value, [(r.target, r.value) for r in rows])
