"""The errors of a language model that does not answer, with what to do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from recbias.core.errors import BudgetSpent, MissingReplies, RequestRefused
from recbias.language.chat.failures import NO_LIKELIHOOD, QUOTA, Failure
from recbias.language.chat.settings import LanguageModel

REMEDIES = {
    QUOTA: "add credit to the account, then run again: stored replies are used",
    NO_LIKELIHOOD: (
        "run it in the process: model: instead of llm:; or use a server that repeats the prompt "
        "with log-probabilities, such as vLLM"
    ),
    "401": "check the key in the environment variable {variable}",
    "403": "check what the key in the environment variable {variable} is allowed to do",
    "404": "check model and base_url; {url}/models lists the models of many servers",
    "429": "run again later: stored replies are used",
}
"""What to do about a refusal, by its cause."""


def describe_refusal(model: LanguageModel, failure: Failure) -> RequestRefused:
    """Return the error of a server that refuses all requests."""
    remedy = REMEDIES.get(failure.cause, "correct what the server names, then run again")
    remedy = remedy.format(variable=model.key_variable, url=model.server)
    message = f"{model.server} refuses requests to {model.model}: {failure.message}"
    return RequestRefused(message, where="llm", remedy=remedy)


def describe_unanswered(
    model: LanguageModel, failures: Sequence[Failure], *, is_down: bool
) -> MissingReplies:
    """Return the error of requests that failed after all retries.

    Args:
        model: The model.
        failures: The last failure of each request.
        is_down: Whether the server answers no request.
    """
    causes = Counter(failure.cause for failure in failures)
    counts = ", ".join(f"{cause}: {n:,}" for cause, n in sorted(causes.items()))
    message = (
        f"{'' if is_down else f'{len(failures):,} '}request(s) to {model.server} have no reply "
        f"after {model.retries} retries ({counts}): {failures[-1].message}"
    )
    remedy = "check base_url, and that the server runs; then run again" if is_down else ""
    return MissingReplies(message, where="llm", remedy=remedy)


def describe_budget(
    model: LanguageModel, limit: str, *, n_missing: int, n_sent: int
) -> BudgetSpent:
    """Return the error of a budget that does not allow the next request.

    Args:
        model: The model.
        limit: The limit that it would exceed: ``tokens``.
        n_missing: The number of requests without a reply.
        n_sent: The number of requests that were sent.
    """
    allowed = getattr(model.budget, limit)
    sent = f"{n_sent:,} request(s) were sent" if n_sent else "nothing was sent"
    message = (
        f"the budget of {allowed:,} ({limit}) does not allow the next request: {sent}, "
        f"{n_missing:,} replies are missing"
    )
    remedy = f"raise budget.{limit} and run again: stored replies are used"
    return BudgetSpent(message, where="llm", remedy=remedy)
