from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from recbias.core.dataset import TrainingData
from recbias.core.errors import MalformedLine, UnknownColumn
from recbias.core.evidence import SentenceScores
from recbias.models.given import GivenSentences
from support.worlds.query_sets import make_queries
from support.worlds.small_worlds import make_interactions

HEADER = "sentence_id,pair_id,group,"


def read_table(folder: Path, text: str, name: str = "scores.csv") -> SentenceScores:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    fitted = GivenSentences(path=path).fit(
        TrainingData(make_interactions([(0, 0)])), np.random.default_rng(0)
    )
    return fitted.sentence_scores(make_queries(["u0"]))


def test_perplexities_are_read_with_their_labels(tmp_path: Path) -> None:
    text = HEADER + "perplexity,category\ns1,p1,T1,12.5,age\ns2,p1,T2,8,age\ns3,,T1,,\n"
    sentences = read_table(tmp_path, text)
    assert sentences.ids.tolist() == ["s1", "s2", "s3"]
    assert sentences.pairs.tolist() == ["p1", "p1", None]
    assert sentences.groups.tolist() == ["T1", "T2", "T1"]
    assert sentences.perplexity.tolist() == pytest.approx([12.5, 8.0, math.nan], nan_ok=True)
    assert sentences.labels.to_dict("list") == {"category": ["age", "age", None]}


# ln 1/2 = -0.6931 and ln 1/8 = -2.0794, so the perplexity is exp(1.3863) = 4; ln 1/3 = -1.0986
CELLS = HEADER + (
    "log_probabilities,kind\ns1,p1,T1,-0.69314718 -2.07944154,x\ns2,p1,T2, -1.09861229  ,y\n"
    "s3,p2,T1,,z\n"
)


def test_log_probabilities_of_tokens_make_perplexities(tmp_path: Path) -> None:
    sentences = read_table(tmp_path, CELLS)
    assert sentences.ids.tolist() == ["s1", "s2", "s3"]
    assert sentences.groups.tolist() == ["T1", "T2", "T1"]
    assert sentences.perplexity.tolist() == pytest.approx([4.0, 3.0, math.nan], nan_ok=True)
    assert sentences.labels.to_dict("list") == {"kind": ["x", "y", "z"]}


def test_parquet_holds_lists_of_numbers(tmp_path: Path) -> None:
    path = tmp_path / "scores.parquet"
    logs = [[math.log(0.5)], [math.log(0.25), math.log(0.25)]]
    columns = {"sentence_id": ["1", "2"], "pair_id": ["1", "1"], "group": ["a", "b"]}
    pd.DataFrame({**columns, "log_probabilities": logs}).to_parquet(path)
    fitted = GivenSentences(path=path).fit(
        TrainingData(make_interactions([(0, 0)])), np.random.default_rng(0)
    )
    assert fitted.sentence_scores(make_queries(["u0"])).perplexity.tolist() == pytest.approx(
        [2.0, 4.0]
    )


@pytest.mark.parametrize(
    ("text", "message", "line"),
    [
        ("perplexity\ns1,p1,T1,3\ns2,p1,T2,much\n", "the perplexity 'much' is not a number", ":3"),
        ("perplexity\ns1,p1,T1,0\n", "a perplexity of 0", ":2"),
        ("perplexity\ns1,p1,T1,0.93\n", "a perplexity of 0.93", ":2"),
        ("perplexity\ns1,p1,T1,inf\n", "not finite", ":2"),
        (
            "perplexity\ns1,p1,T1,3\ns2,p1,T1,4\n",
            "pair 'p1' already has a row of group 'T1'",
            ":3",
        ),
        (
            "perplexity\ns1,p1,T1,3\ns1,p2,T1,4\n",
            "sentence 's1' already has a row of group 'T1'",
            ":3",
        ),
        ("perplexity\n,p1,T1,3\n", "sentence_id is empty", ":2"),
        ("perplexity\n", "no rows", ""),
        ("log_probabilities\ns1,p1,T1,-1\ns2,p1,T2,-1 0.5\n", "log-probability of 0.5", ":3"),
        ("log_probabilities\ns1,p1,T1,-1\ns2,p1,T2,-1;-2\n", "'-1;-2' is not a number", ":3"),
        ("log_probabilities\ns1,p1,T1,-9999\n", "not finite", ":2"),
    ],
)
def test_bad_rows_are_named(tmp_path: Path, text: str, message: str, line: str) -> None:
    with pytest.raises(MalformedLine, match=message) as caught:
        read_table(tmp_path, HEADER + text)
    assert caught.value.where == f"{tmp_path / 'scores.csv'}{line}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sentence_id,group,perplexity\ns1,T1,3\n", "no column 'pair_id'"),
        (HEADER + "score\ns1,p1,T1,3\n", "there is no perplexity"),
        (HEADER + "perplexity,log_probabilities\ns1,p1,T1,3,-1\n", "both give the score"),
    ],
)
def test_absent_columns_are_named(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(UnknownColumn, match=message):
        read_table(tmp_path, text)
