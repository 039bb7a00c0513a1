"""A live audit of an HTTP endpoint, which stops when every effect is decided."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from recbias.audits.design import ProbeSpec, list_requests, read_probe, read_rows
from recbias.audits.effects import Ledger
from recbias.audits.endpoint import EndpointBackend
from recbias.core.context import ProgressListener, collect_warnings, stage_context
from recbias.core.errors import BudgetSpent, MissingReplies, RequestRefused
from recbias.core.files import to_local_path
from recbias.formats.manifest import Manifest
from recbias.formats.yaml import dump
from recbias.language.client import ask_until
from recbias.language.endpoints import ChatReply, ChatRequest
from recbias.language.reply_store import ReplyStore, SharedLimits
from recbias.reports.pages import describe_probe, render_probe
from recbias.reports.render import replace_undefined
from recbias.reports.run import to_records
from recbias.runner.address import describe_environment
from recbias.runner.folder import RunFolder, write_manifest
from recbias.runner.store import report_unwritable

_STATE = "probe.json"


@dataclass(frozen=True, eq=False)
class Probe:
    """A finished audit of an endpoint.

    Args:
        folder: Its folder.
        sentences: The verdict, then what it rests on.
        effects: The last look: one row for each value of an attribute, or placebo, and effect.
        looks: Every look, one after each persona.
        summary: Counts of requests, personas and failures; ``noise_floor`` is the overlap of
            identical requests.
    """

    folder: Path
    sentences: Sequence[str]
    effects: pd.DataFrame
    looks: pd.DataFrame
    summary: Mapping[str, Any] = field(default_factory=dict)

    @property
    def verdict(self) -> str:
        """The first line."""
        return self.sentences[0]

    def __str__(self) -> str:
        """Return the verdict."""
        return self.verdict

    def _repr_html_(self) -> str:
        return (self.folder / "report.html").read_text(encoding="utf-8")


def probe(
    spec: Path | Mapping[str, Any] | str,
    *,
    overrides: Sequence[str] = (),
    out: Path | str = "results",
    on_progress: ProgressListener | None = None,
) -> Probe:
    """Ask an endpoint for personas that differ in stated attributes, until it is decided.

    Each persona is asked about with the reference of every attribute and with each other value, in
    random order. After each persona, the effect of each value (the difference of two requests of
    the same persona) has a confidence sequence and an e-value, which hold however often they are
    looked at. The family of all values and effects is corrected by Bonferroni: an effect is
    decided when its e-value reaches the size of the family divided by ``alpha``.

    An interrupted audit is resumed by the same spec; no request with a reply is sent again.

    Args:
        spec: A file, the name of a packaged spec, or a mapping.
        overrides: Settings such as ``budget.requests=600``.
        out: The folder of results.
        on_progress: Receives the number of replies.

    Raises:
        UserError: The spec has a fault.
        RequestRefused: A header needs a variable that is not set, or the endpoint refuses.
        MissingEvidence: No item of the first answers has a field that is compared.
        MissingReplies: The endpoint does not answer, or not with items; stored replies are used by
            the next call.

    Example:
        recbias.probe("probe.yaml").effects
    """
    read, plain = read_probe(spec, overrides)
    results = to_local_path(out) / read.name
    work = results / "unfinished" / read.digest[:8]
    with report_unwritable(results):
        state = _open_state(work)
    rows = read_rows(read.items, "item_id") if read.items else []
    ledger = Ledger(read, {row["item_id"]: row for row in rows})
    with collect_warnings() as warnings:
        stopped = _ask(read, work, state["seed"], ledger, on_progress)
    limits = SharedLimits.of_model(_limit(read), work / "replies", read.digest)
    floor = [overlap for overlap in ledger.floor if not np.isnan(overlap)]
    summary = {
        "requests": ledger.n_replies,
        "budget": read.budget.requests,
        "sent": limits.n_sent,
        "failed": limits.n_sent - ledger.n_replies,
        "personas": ledger.n_complete,
        "decided": ledger.is_decided,
        "stopped": stopped,
        "empty": dict(ledger.empty),
        "items": ledger.n_items,
        "lacking": {name: dict(counts) for name, counts in ledger.lacking.items()},
        "noise_floor": float(np.mean(floor)) if floor else None,
        "family": len(ledger.effects),
        "alpha": read.alpha,
    }
    effects, looks = pd.DataFrame([*ledger.list_rows()]), ledger.tabulate()
    effects = effects[looks.columns]
    references = {name: next(iter(values)) for name, values in read.personas.arms.items()}
    sentences = describe_probe(to_records(effects), summary, references)
    with report_unwritable(work):
        looks.to_csv(work / "effects.csv", index=False, lineterminator="\n")
        (work / "spec.yaml").write_text(dump(plain), encoding="utf-8")
        described = {"sentences": sentences, "summary": summary, "effects": to_records(effects)}
        described = replace_undefined({**state, **described})
        text = json.dumps(described, indent=1, default=str, allow_nan=False)
        (work / _STATE).write_text(text + "\n", encoding="utf-8")
        render_probe(work, sentences, looks)
        write_manifest(work, _describe(read, state, warnings))
        folder = RunFolder(work, results, read.digest[:8]).publish()
        with suppress(OSError):  # another audit of the name may be unfinished
            work.parent.rmdir()
    return Probe(folder, sentences, effects, looks, summary)


def _open_state(work: Path) -> dict[str, Any]:
    """Return when the audit began and the seed of its order; a new one if it begins now."""
    path = work / _STATE
    with suppress(FileNotFoundError, ValueError):
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return {name: content[name] for name in ("seed", "started")}
    state = {
        "seed": secrets.randbits(62),
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    work.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(".new")
    temporary.write_text(json.dumps(state), encoding="utf-8")
    temporary.rename(path)
    return state


def _limit(spec: ProbeSpec) -> Any:
    return spec.endpoint.limit(spec.name, spec.rate, spec.budget.requests)


def _ask(
    spec: ProbeSpec, work: Path, seed: int, ledger: Ledger, on_progress: ProgressListener | None
) -> str:
    """Ask until it is decided; return ``decided``, ``in vain``, ``budget`` or ``personas``."""
    store = ReplyStore(work / "replies")
    store.refresh()
    planned = {asked.request.address: asked for asked in list_requests(spec, seed)}
    stored = [(reply, asked) for asked in planned.values() if (reply := store.find(asked.request))]
    is_over = False
    for reply, asked in sorted(stored, key=lambda pair: pair[0].time):
        is_over = ledger.add(asked, reply)
    missing = [asked.request for asked in planned.values() if store.find(asked.request) is None]

    def watch(request: ChatRequest, reply: ChatReply) -> bool:
        return ledger.add(planned[request.address], reply)

    if missing and not is_over:
        try:
            with stage_context(run_id=spec.digest, on_progress=on_progress):
                ask_until(missing, _limit(spec), EndpointBackend(spec.endpoint), store, watch)
        except BudgetSpent:
            return "budget"
        except RequestRefused as error:
            remedy = error.remedy if "headers" in error.where else "check url and headers"
            raise RequestRefused(error.message, where=error.where, remedy=remedy) from error
        except MissingReplies as error:
            remedy = "check url and items, and that the server runs; then run again: it goes on"
            raise MissingReplies(error.message, where="endpoint", remedy=remedy) from error
    if ledger.is_in_vain or (spec.stop == "decided" and ledger.is_decided):
        return "in vain" if ledger.is_in_vain else "decided"
    is_limited = spec.n_personas < min(
        spec.personas.n_available, spec.personas.count or spec.personas.n_available
    )
    return "budget" if is_limited else "personas"


def _describe(spec: ProbeSpec, state: Mapping[str, Any], warnings: Sequence[str]) -> Manifest:
    seconds = time.time() - datetime.fromisoformat(state["started"]).timestamp()
    return Manifest(
        schema_version=1,
        name=spec.name,
        spec_digest=spec.digest,
        **describe_environment(),
        started=state["started"],
        seconds=round(max(seconds, 0.0), 3),
        seeds=[state["seed"]],
        warnings=[*warnings],
    )
