"""The lines that a log or a live display shows of a stage."""

from __future__ import annotations

from recbias.core.records import StageRecord


def is_notable(record: StageRecord) -> bool:
    """Return whether a stage is shown without ``--verbose``: if it was long, or failed itself."""
    if record.failure is not None:
        return not record.failure.because
    return not (record.reused or record.kind in {"measure", "queries"})


def render_title(record: StageRecord) -> str:
    """Return what a stage does, and on which data."""
    fold = f", fold {record.fold}" if record.fold and record.fold > 1 else ""
    seed = f", seed {record.seed}" if record.seed is not None and record.kind != "dataset" else ""
    return f"{record.stage} [{record.dataset}{seed}{fold}]" if record.dataset else record.stage


def render_record(record: StageRecord, messages: set[str]) -> str:
    """Return the line of a stage; a message of failure that was shown before is not repeated."""
    title = render_title(record)
    if record.failure is not None:
        message = record.failure.message
        is_repeated = message in messages
        messages.add(message)
        return f"{title}: failed in the same way" if is_repeated else f"{title}: failed: {message}"
    if record.reused:
        return f"{title}: cached"
    earlier = record.resumed_seconds
    resumed = f" ({earlier:.2f} s of it in an earlier run)" if earlier else ""
    peak = f", {record.peak_memory_mb:,.0f} MB" if record.peak_memory_mb else ""
    return f"{title}: {record.seconds:.2f} s{resumed}{peak}"


def select_new_warnings(record: StageRecord, shown: set[str]) -> list[str]:
    """Return the warnings of a stage that were not shown before, and count them as shown.

    A warning is shown once for each model; one of a metric or a group, which has no line of its
    own, once.

    >>> record = StageRecord("nDCG", "measure", "", model="a", warnings=("no label",))
    >>> shown = set[str]()
    >>> select_new_warnings(record, shown), select_new_warnings(record, shown)
    (['no label'], [])
    """
    model = "" if record.kind == "measure" else record.model
    keys = {f"{model}: {warning}": warning for warning in record.warnings}
    new = [warning for key, warning in keys.items() if key not in shown]
    shown.update(keys)
    return new
