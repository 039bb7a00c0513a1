"""Counts of requests and replies: the facts and warnings of a stage that asks a language model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from recbias.core.printable import make_printable
from recbias.core.stage_context import get_context, record_fact, warn
from recbias.language.chat.requests import OUTCOMES, ChatReply
from recbias.language.chat.settings import LanguageModel

MAX_NAME_LENGTH = 80


@dataclass
class Tally:
    """What was sent, and what came back.

    Args:
        n_sent: The number of requests that were sent, repeated ones included.
        failures: The number of failed requests by cause.
        prompt_tokens: The tokens of the prompts of the replies that arrived.
        completion_tokens: The tokens of these replies.
    """

    n_sent: int = 0
    failures: Counter[str] = field(default_factory=Counter)
    prompt_tokens: int = 0
    completion_tokens: int = 0

    def add_reply(self, reply: ChatReply) -> None:
        """Count the tokens of a reply that arrived."""
        self.prompt_tokens += reply.prompt_tokens
        self.completion_tokens += reply.completion_tokens

    def record(self) -> None:
        """Add the counts to the facts of the stage."""
        _count("requests_sent", self.n_sent)
        _count("prompt_tokens", self.prompt_tokens)
        _count("completion_tokens", self.completion_tokens)
        for cause, n_failures in sorted(self.failures.items()):
            _count(f"failed_requests.{cause}", n_failures)


def report_replies(replies: Sequence[ChatReply], model: LanguageModel) -> None:
    """Record the outcomes of the replies as facts, and warn of what a reader should know."""
    _count("replies_cached", sum(reply.cached for reply in replies))
    outcomes = Counter(str(reply.outcome) for reply in replies)
    for outcome in OUTCOMES:
        if outcomes[outcome]:
            _count(f"replies.{outcome}", outcomes[outcome])
    _warn_of_outcomes(outcomes, len(replies))
    _report_served(replies, model)
    negotiated = sorted({text for reply in replies for text in reply.negotiated})
    if negotiated:
        record_fact("negotiated", ", ".join(negotiated))
        warn(f"{_show(model.model)} refuses parameters; sent with: {', '.join(negotiated)}")


def report_repeats(
    pairs: Sequence[tuple[ChatReply, ChatReply]], read: Callable[[str], Sequence[object]] | None
) -> None:
    """Record how many replies to repeated requests are the same.

    Args:
        pairs: The first and the second reply to each repeated request.
        read: Returns the titles of an answer; replies without any do not have the same titles.
    """
    _count("repeated_requests", len(pairs))
    same_text = [(a.outcome, a.text) == (b.outcome, b.text) for a, b in pairs]
    _count("repeated_same_text", sum(same_text))
    if read is not None:
        titles = [(read(a.answer), read(b.answer)) for a, b in pairs]
        _count("repeated_same_titles", sum(bool(a) and a == b for a, b in titles))


def _warn_of_outcomes(outcomes: Counter[str], n_replies: int) -> None:
    others = [name for name in OUTCOMES if name != "complete" and outcomes[name]]
    if others:
        counts = ", ".join(f"{outcomes[name]:,} {name}" for name in others)
        remedy = "; raise max_tokens" if outcomes["length"] else ""
        n_others = n_replies - outcomes["complete"]
        warn(f"{n_others:,} of {n_replies:,} replies have no text to read: {counts}{remedy}")


def _report_served(replies: Sequence[ChatReply], model: LanguageModel) -> None:
    """Record the models and configurations that the server says it used."""
    served = Counter(reply.served_model for reply in replies if reply.served_model)
    if served:
        record_fact("served_model", ", ".join(_show(name) for name in sorted(served)))
    for name, n_replies in sorted(served.items()):
        if name != model.model:
            asked = _show(model.model)
            warn(f"{n_replies:,} replies are of the model {_show(name)}, not of {asked}")
    fingerprints = {reply.fingerprint for reply in replies if reply.fingerprint}
    if fingerprints:
        record_fact("system_fingerprints", len(fingerprints))


def _show(name: str) -> str:
    return make_printable(name, MAX_NAME_LENGTH)


def _count(name: str, n: int) -> None:
    """Add to a number among the facts of the stage, which may ask a model several times."""
    facts = get_context().facts
    before = facts.get(name) if facts is not None else None
    record_fact(name, n + (before if isinstance(before, int) else 0))
