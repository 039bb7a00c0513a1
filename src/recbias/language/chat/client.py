"""Replies to requests: from the reply store, else from the model; each is paid for once."""

from __future__ import annotations

import os
import tempfile
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import count
from pathlib import Path

from recbias.core.errors import MissingReplies
from recbias.core.models.planned_requests import PlannedRequest
from recbias.core.network import is_network_forbidden
from recbias.core.stage_context import get_context, report_progress
from recbias.language.chat.backends.backend import ChatBackend, open_backend
from recbias.language.chat.budget import estimate_spending
from recbias.language.chat.dispatching.dispatcher import Dispatcher
from recbias.language.chat.dispatching.shared_limits import SharedLimits
from recbias.language.chat.reply_store import ReplyStore
from recbias.language.chat.requests import ChatReply, ChatRequest, select_repeats
from recbias.language.chat.settings import LanguageModel
from recbias.language.chat.tally import report_repeats, report_replies


def complete(
    requests: Sequence[ChatRequest],
    model: LanguageModel,
    *,
    folder: Path | None = None,
    backend: ChatBackend | None = None,
    read: Callable[[str], Sequence[object]] | None = None,
) -> list[ChatReply]:
    """Return the reply to each request, in order.

    Stored replies are used; the others are requested, each once, and stored as they arrive. The
    counts are recorded as facts of the stage, and replies without text are warned of. With
    ``repeatability``, a share of the requests is sent once more, and the facts count the replies
    that are the same.

    Args:
        requests: The requests to the model, all of one kind; those at one address get one reply.
        model: The model.
        folder: The folder of the stored replies; None is that of the stage, or a temporary one.
        backend: What sends the requests; None is the backend of the model's provider.
        read: Returns the titles of an answer: repeated replies are compared by them and by text.

    Raises:
        MissingReplies: The network may not be used and replies are missing, or requests failed
            after all retries.
        RequestRefused: There is no key, or the server refuses all requests.
        BudgetSpent: The budget does not allow all requests.
        MissingExtra: The package of the provider is not installed.
        Unwritable: The replies cannot be stored.
    """
    store = ReplyStore(folder or get_context().reply_folder or _make_temporary_folder())
    store.refresh()
    repeats = select_repeats(requests, model.repeatability)
    sent = [*requests, *repeats.values()]
    replies = _find_replies(sent, store)
    replies = {address: replace(reply, cached=True) for address, reply in replies.items()}
    missing = _select_missing(sent, replies)
    if missing:
        _request_replies(missing, model, store, backend, is_proven=bool(replies))
        replies |= _find_replies(missing, store)
    ordered = [replies[request.address] for request in requests]
    report_replies(ordered, model)
    if repeats:
        pairs = [(replies[first], replies[again.address]) for first, again in repeats.items()]
        report_repeats(pairs, read)
    return ordered


def count_missing(requests: Sequence[ChatRequest], folder: Path | None = None) -> int:
    """Return how many requests have no stored reply, without sending any.

    Args:
        requests: The requests; those at one address count once.
        folder: The folder of the stored replies; None is that of the stage.
    """
    folder = folder or get_context().reply_folder
    if folder is None:
        return len({request.address for request in requests})
    store = ReplyStore(folder)
    store.refresh()
    return len(_select_missing(requests, _find_replies(requests, store)))


def plan_requests(
    requests: Sequence[ChatRequest], model: LanguageModel, folder: Path | None = None
) -> list[PlannedRequest]:
    """Return the requests with their tokens and cost, without sending any.

    Args:
        requests: The requests to the model; those that ``repeatability`` repeats are added.
        model: The model.
        folder: The folder of the stored replies; None is that of the stage.
    """
    requests = [*requests, *select_repeats(requests, model.repeatability).values()]
    store = ReplyStore(folder or get_context().reply_folder or _make_temporary_folder())
    store.refresh()
    prices = model.prices
    return [
        PlannedRequest(
            request.address,
            is_stored=store.find(request) is not None,
            prompt_tokens=request.prompt_tokens,
            completion_tokens=request.decoding.max_tokens,
            money=estimate_spending(request, prices).money if prices else None,
        )
        for request in requests
    ]


def _find_replies(requests: Sequence[ChatRequest], store: ReplyStore) -> dict[str, ChatReply]:
    """Return the stored replies by address."""
    replies = {request.address: store.find(request) for request in requests}
    return {address: reply for address, reply in replies.items() if reply is not None}


def _select_missing(
    requests: Sequence[ChatRequest], replies: Mapping[str, ChatReply]
) -> list[ChatRequest]:
    """Return the requests without a reply, one at each address, in order."""
    addresses = {request.address: request for request in requests}
    return [request for address, request in addresses.items() if address not in replies]


def _request_replies(
    requests: Sequence[ChatRequest],
    model: LanguageModel,
    store: ReplyStore,
    backend: ChatBackend | None,
    *,
    is_proven: bool,
) -> None:
    """Request replies, and store each as it arrives."""
    if is_network_forbidden():
        message = f"{len(requests):,} replies of {model.model} are not stored in {store.folder}"
        remedy = "run without --offline, or copy the files of the replies there"
        raise MissingReplies(message, where="llm", remedy=remedy)
    sender = backend or open_backend(model, requests[0].kind)
    limits = SharedLimits.of_model(model, store.folder, get_context().run_id or _name_process())
    progress = count(1)

    def keep(request: ChatRequest, reply: ChatReply) -> None:
        store.append(request, reply)
        report_progress(f"ask {model.model}", next(progress), len(requests))

    dispatcher = Dispatcher(model, sender, limits, keep, is_proven=is_proven)
    report_progress(f"ask {model.model}", 0, len(requests))
    try:
        dispatcher.send(requests)
    finally:
        dispatcher.tally.record()
        store.close()
        if backend is None and not dispatcher.is_busy:
            sender.close()


@cache
def _create_temporary_folder() -> tempfile.TemporaryDirectory[str]:
    """Return a folder that is removed when the process ends."""
    return tempfile.TemporaryDirectory(prefix="recbias-replies-")


def _make_temporary_folder() -> Path:
    return Path(_create_temporary_folder().name)


@cache
def _name_process() -> str:
    return f"process {os.getpid()} {uuid.uuid4().hex[:8]}"
