"""Mitigated variants of models, and the plain models that they are compared with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from recbias.reports.views.run_tables import RunTables

_MITIGATION = "mitigation"

_SENDING = {
    *("concurrency", "retries", "timeout_s", "requests_per_minute", "tokens_per_minute"),
    *("prices", "budget", "api_key_env"),
}
"""Settings of a language model that decide how requests are sent, not what they ask."""


def pair_variants(run: RunTables) -> list[tuple[str, str]]:
    """Return the plain model and the mitigated variant of each pair, by label.

    A variant has a ``mitigation`` in the spec. Its plain model has the same name and the same
    other settings, whatever the labels; how requests are sent may differ.
    """
    models = [model for model in run.manifest.get("models", []) if "label" in model]
    plain = {
        _identify(model): model["label"] for model in reversed(models) if not _mitigates(model)
    }
    return [
        (plain[identity], model["label"])
        for model in models
        if _mitigates(model) and (identity := _identify(model)) in plain
    ]


def _mitigates(model: Mapping[str, Any]) -> bool:
    return (model.get("parameters") or {}).get(_MITIGATION) is not None


def _identify(model: Mapping[str, Any]) -> str:
    """Return the name and the settings of a model without its mitigation, as text."""
    settings = {**(model.get("parameters") or {}), _MITIGATION: None}
    if isinstance(llm := settings.get("llm"), Mapping):
        settings["llm"] = {key: value for key, value in llm.items() if key not in _SENDING}
    return repr((model.get("name"), _sort(settings)))


def _sort(settings: Mapping[str, Any]) -> list[tuple[str, Any]]:
    return [
        (key, _sort(value) if isinstance(value, Mapping) else value)
        for key, value in sorted(settings.items())
    ]
