"""What ``recbias plan`` says about the requests to language models."""

from __future__ import annotations

from collections.abc import Sequence

from recbias.cli.grids import print_rows
from recbias.cli.printing import print_line
from recbias.runner.execution.request_totals import RequestTotals

COLUMNS = ("requests", "stored", "to send", "tokens in", "tokens out", "money")


def show_requests(totals: Sequence[RequestTotals], *, quiet: bool) -> None:
    """Print the requests of each model, and the most that those without a stored reply cost."""
    known = [entry for entry in totals if not entry.problem]
    if len(known) > 1 and not quiet:
        rows = [(entry.model, f"{entry.n_requests:,}", *_describe(entry)) for entry in known]
        columns = ("model", *COLUMNS)
        print_rows(columns, rows, title="requests to language models", numeric=COLUMNS)
    n_requests = sum(entry.n_requests for entry in known)
    n_stored = sum(entry.n_stored for entry in known)
    counts = f"{n_requests:,} requests, {n_stored:,} stored, {n_requests - n_stored:,} to send"
    if n_requests:
        counts += f": at most {_sum_tokens(known)}{_sum_money(known)}"
    print_line(f"language models: {counts}")
    for entry in totals:
        if entry.problem:
            print_line(f"the requests of {entry.model} are not known: {entry.problem}")


def _describe(entry: RequestTotals) -> tuple[str, ...]:
    numbers = (entry.n_stored, entry.n_requests - entry.n_stored)
    tokens = (entry.prompt_tokens, entry.completion_tokens)
    money = "" if entry.money is None else f"{entry.money:,.2f}"
    return (*(f"{number:,}" for number in (*numbers, *tokens)), money)


def _sum_tokens(known: Sequence[RequestTotals]) -> str:
    n_in = sum(entry.prompt_tokens for entry in known)
    n_out = sum(entry.completion_tokens for entry in known)
    return f"{n_in:,} tokens in, {n_out:,} out"


def _sum_money(known: Sequence[RequestTotals]) -> str:
    """Return the money of the models with prices, and which models have none."""
    prices = [entry.money for entry in known if entry.money is not None]
    if not prices:
        return ", no prices given"
    unpriced = [entry.model for entry in known if entry.money is None]
    excluded = f" (without {', '.join(unpriced)}: no prices given)" if unpriced else ""
    return f", {sum(prices):,.2f} by the prices of the spec{excluded}"
