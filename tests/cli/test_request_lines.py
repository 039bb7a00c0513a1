from __future__ import annotations

from pathlib import Path

import pytest

from recbias.cli.run import show_requests
from recbias.runner.request_totals import RequestTotals
from support.commands import invoke_recbias, write_small_spec

FREE = RequestTotals("local", 10, 4, 6000, 600)
PAID = RequestTotals("paid", 5, 0, 5000, 500, money=1.5)

SPEC = """\
name: asked
dataset: {name: demo, n_users: 60, n_items: 50}
split: {name: random, test: 0.2}
k: 5
models:
  - MostPop
  - {name: WOK, llm: {model: small, max_tokens: 100, prices: {input: 0, output: 100}}}
metrics: [nDCG]
"""


@pytest.mark.parametrize(
    ("totals", "line"),
    [
        ([], "language models: 0 requests, 0 stored, 0 to send"),
        (
            [FREE],
            (
                "language models: 10 requests, 4 stored, 6 to send: "
                "at most 6,000 tokens in, 600 out, no prices given"
            ),
        ),
        (
            [FREE, PAID],
            (
                "language models: 15 requests, 4 stored, 11 to send: at most 11,000 tokens in, "
                "1,100 out, 1.50 by the prices of the spec (without local: no prices given)"
            ),
        ),
    ],
)
def test_totals_are_summed(
    totals: list[RequestTotals], line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    show_requests(totals, quiet=True)
    assert capsys.readouterr().out == f"{line}\n"


def test_each_model_has_a_row_if_there_are_several(capsys: pytest.CaptureFixture[str]) -> None:
    show_requests([FREE, PAID], quiet=False)
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["local", "10", "4", "6", "6,000", "600"] in rows
    assert ["paid", "5", "0", "5", "5,000", "500", "1.50"] in rows


def test_plan_prints_the_cost_before_anything_is_sent(tmp_path: Path) -> None:
    planned = invoke_recbias("plan", write_small_spec(tmp_path, SPEC), folder=tmp_path)
    assert planned.code == 0
    # 60 replies of at most 100 tokens at 100 for a million.
    assert "60 requests, 0 stored, 60 to send" in planned.out
    assert "6,000 out, 0.60 by the prices of the spec" in planned.out
