"""An HTTP endpoint that recommends: the request that is sent, and the items in its answer."""

from __future__ import annotations

import http.client
import json
import os
import re
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal
from urllib.parse import quote, urlencode, urlsplit

from annotated_types import Ge, Gt, MinLen

from recbias.core.errors import OutOfRange, RequestRefused, WrongType
from recbias.core.plugins import EXECUTION
from recbias.core.text import make_printable
from recbias.language.backends import Backend, Failure, NoReply, classify_status
from recbias.language.endpoints import (
    SECRET_NAME,
    Budget,
    ChatReply,
    ChatRequest,
    Credentials,
    LanguageModel,
    Message,
    strip_url,
)

_PLACE = re.compile(r"\{(\w+)\}")
_VARIABLE = re.compile(r"\$\{(\w+)\}")
_STEP = re.compile(
    r"\.(?P<name>[^.\[\]*]+)|\['(?P<quoted>[^']*)'\]|\[(?P<index>\d+)\]|(?P<all>\[\*\])"
)
_MOST_BYTES = 2**24
_MOST_SHOWN = 300
_FOR_ALL = {"401", "403", "407"}
"""The causes of failures that are not about one persona."""


def parse_path(text: str) -> list[str | int | None]:
    """Return the steps of a JSONPath of names, positions and ``[*]``, which is None.

    Raises:
        OutOfRange: The text has other steps.
    """
    path = text.removeprefix("$")
    path = path if path.startswith((".", "[")) or not path else f".{path}"
    steps = [*_STEP.finditer(path)]
    if "".join(step[0] for step in steps) != path:
        message = f"{text!r} is not a path of names, positions and [*]"
        raise OutOfRange(message, remedy="write $.results[*] or $.data.items[0].id")
    found = ((step.lastgroup or "", step[step.lastgroup or 0]) for step in steps)
    return [
        None if kind == "all" else int(text) if kind == "index" else text for kind, text in found
    ]


def find_at(path: str, value: Any) -> list[Any]:
    """Return the values at a JSONPath; below ``[*]``, only those that are there.

    >>> find_at("$.data[*].sku", {"data": [{"sku": "a"}, {"sku": "b"}, {}]})
    ['a', 'b']

    Raises:
        LookupError: There is nothing at the path.
    """
    values, is_several = [value], False
    for step in parse_path(path):
        found = []
        for each in values:
            try:
                found += _list(each) if step is None else [each[step]]
            except (LookupError, TypeError) as error:
                if step is None or not is_several:
                    raise LookupError(step) from error
        values, is_several = found, is_several or step is None
    return values


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise LookupError("[*]")  # noqa: TRY004  as of a key that is not there
    return value


def fill(template: Any, values: Mapping[str, Any]) -> Any:
    """Return a template with values for ``{name}``; one that is all of a text keeps its type.

    >>> fill({"who": "{name}, {age}", "age": "{age}"}, {"name": "Ann", "age": 70})
    {'who': 'Ann, 70', 'age': 70}
    """
    if isinstance(template, str):
        whole = _PLACE.fullmatch(template)
        if whole and whole[1] in values:
            return values[whole[1]]
        return _PLACE.sub(lambda match: str(values.get(match[1], match[0])), template)
    if isinstance(template, Mapping):
        return {key: fill(value, values) for key, value in template.items()}
    return [fill(value, values) for value in template] if isinstance(template, list) else template


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    """An endpoint: how it is asked, and where the items of its answer are.

    ``{name}`` in ``url``, ``parameters`` and ``body`` stands for a value of the persona,
    ``${NAME}`` in a header for an environment variable, which is neither stored nor shown.

    Args:
        url: The address.
        method: How it is asked.
        headers: Headers of each request.
        parameters: The query of the address; a list repeats its parameter.
        body: What is sent as JSON.
        items: The JSONPath of the items in the answer: ``$.results[*]``.
        fields: The path of each field in an item. ``id`` identifies it, and an item that is a text
            or a number is its own; ``price``, ``popularity`` and labels may follow.
        retries: How often a request is sent again after 429, 5xx or an answer that is not JSON.
        timeout_s: The seconds after which an answer is given up.
    """

    url: Annotated[str, MinLen(1)]
    method: Literal["POST", "GET"] = "POST"
    headers: Mapping[str, str] = field(default_factory=dict)
    parameters: Mapping[str, Any] = field(default_factory=dict)
    body: Any = None
    items: Annotated[str, MinLen(1)]
    fields: Mapping[str, str] = field(default_factory=dict)
    retries: Annotated[int, Ge(0), EXECUTION] = 4
    timeout_s: Annotated[float, Gt(0), EXECUTION] = 30.0

    def __post_init__(self) -> None:
        for path in (self.items, *self.fields.values()):
            parse_path(path)
        if "@" in urlsplit(self.url).netloc:
            remedy = "write headers: {Authorization: 'Basic ${NAME}'}"
            raise OutOfRange("url has a password, and a spec is stored", remedy=remedy)
        for name, value in self.headers.items():
            is_secret = SECRET_NAME.search(name) or name.lower() == "cookie"
            if is_secret and not _VARIABLE.search(value):
                remedy = f"write {name}: ${{NAME}}, and set the environment variable NAME"
                raise OutOfRange(
                    f"{name} seems to be a secret, and a spec is stored", remedy=remedy
                )

    @property
    def places(self) -> set[str]:
        """The names in braces."""
        text = json.dumps([self.url, self.parameters, self.body])
        return set(_PLACE.findall(text))

    def make_request(self, values: Mapping[str, Any], sample: int) -> ChatRequest:
        """Return the request for a persona; ``sample`` tells requests with equal values apart."""
        quoted = {name: quote(str(value), safe="") for name, value in values.items()}
        content = {
            "url": fill(self.url, quoted),
            "parameters": fill(dict(self.parameters), values),
            "body": fill(self.body, values),
        }
        return ChatRequest(
            provider="http",
            base_url=strip_url(self.url),
            model=self.method,
            messages=(Message("user", json.dumps(content, sort_keys=True)),),
            sample=sample,
        )

    def limit(self, name: str, per_minute: float | None, n_requests: int) -> LanguageModel:
        """Return the limits of the requests, as the client of language models takes them."""
        return LanguageModel(
            model=name,
            base_url=strip_url(self.url),
            concurrency=1,
            retries=self.retries,
            timeout_s=self.timeout_s,
            requests_per_minute=per_minute,
            budget=Budget(requests=n_requests),
        )

    def read_headers(self) -> tuple[dict[str, str], list[str]]:
        """Return the headers with the values of the environment, and these values.

        Raises:
            RequestRefused: A variable is not set.
        """
        names = {name for text in self.headers.values() for name in _VARIABLE.findall(text)}
        missing = sorted(name for name in names if not os.environ.get(name))
        if missing:
            message = f"the environment variable {missing[0]} is not set"
            remedy = f"export {missing[0]}=..."
            raise RequestRefused(message, where="endpoint.headers", remedy=remedy)
        secrets = {name: os.environ[name].strip() for name in names}
        headers = {
            header: _VARIABLE.sub(lambda match: secrets[match[1]], text)
            for header, text in self.headers.items()
        }
        return headers, [*secrets.values()]

    def read_items(self, text: str) -> list[Any]:
        """Return the items of an answer.

        Raises:
            NoReply: It is not JSON, or has no items at the path.
        """
        shown = re.sub(r"\s+", " ", text.strip())[:_MOST_SHOWN] or "it is empty"
        try:
            body = json.loads(text)
        except (ValueError, RecursionError):
            raise NoReply(f"the answer is not JSON: {shown}", cause="not JSON") from None
        try:
            items = find_at(self.items, body)
        except LookupError:
            message = f"the answer has no {self.items}: {shown}"
            raise NoReply(message, cause="no items") from None
        is_list = len(items) == 1 and isinstance(items[0], list)
        return items[0] if is_list else items

    def read_field(self, item: Any, name: str) -> Any:
        """Return a field of an item, None where it has none."""
        if not isinstance(item, Mapping):
            return item if name == "id" else None
        try:
            found = find_at(self.fields.get(name, name), item)
        except LookupError:
            return None
        return found[0] if len(found) == 1 else found

    def read_id(self, item: Any) -> str:
        """Return the identifier of an item.

        Raises:
            WrongType: It has none.
        """
        found = self.read_field(item, "id")
        if not isinstance(found, (str, int, float)):
            shown = make_printable(json.dumps(item), _MOST_SHOWN)
            remedy = f"write fields: {{id: ...}}; an item is {shown}"
            raise WrongType("an item has no identifier", where="endpoint.fields", remedy=remedy)
        return str(found)


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Follows no redirect: headers with secrets would be sent elsewhere."""

    def redirect_request(self, *_arguments: Any) -> None:
        return None


class EndpointBackend(Backend):
    """Sends the requests of an endpoint; a reply is the JSON of its items."""

    batch_size = 1
    concurrency = 1

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._headers, self._secrets = endpoint.read_headers()
        self._opener = urllib.request.build_opener(_NoRedirects)

    def answer(self, requests: Sequence[ChatRequest]) -> Sequence[ChatReply | Failure]:
        """Return the reply to each request, or why there is none."""
        return [self._send(request) for request in requests]

    def close(self) -> None:
        """Do nothing: each request has its own connection."""

    def _send(self, request: ChatRequest) -> ChatReply | Failure:
        asked = json.loads(request.messages[0].content)
        query = urlencode(asked["parameters"], doseq=True)
        url = asked["url"] + (("&" if "?" in asked["url"] else "?") + query if query else "")
        headers = {"User-Agent": "recbias", "Accept": "application/json", **self._headers}
        body = None
        if asked["body"] is not None:
            body = json.dumps(asked["body"]).encode()
            headers = {"Content-Type": "application/json", **headers}
        sent = urllib.request.Request(  # noqa: S310  the client has checked the scheme
            url, data=body, headers=headers, method=request.model
        )
        try:
            with self._opener.open(sent, timeout=self._endpoint.timeout_s) as response:
                text = response.read(_MOST_BYTES).decode("utf-8", "replace")
            items = self._endpoint.read_items(text)
        except NoReply as error:
            return self._clean(error.failure)
        except urllib.error.HTTPError as error:
            with error:
                return self._read_error(error)
        except TimeoutError:
            return Failure(cause="timeout", message="the server did not answer in time")
        except (OSError, http.client.HTTPException) as error:
            return self._clean(Failure(cause="connection", message=str(error) or repr(error)))
        return ChatReply(text=self._hide(json.dumps(items)))

    def _read_error(self, error: urllib.error.HTTPError) -> Failure:
        text = error.read(_MOST_BYTES).decode("utf-8", "replace")
        try:
            body = json.loads(text)
        except (ValueError, RecursionError):
            body = re.sub("<[^<>]*>|\\s+", " ", text)
        headers = {name.lower(): value for name, value in error.headers.items()}
        failure = classify_status(error.code, body, headers)
        if failure.reaction == "stop" and failure.cause not in _FOR_ALL and error.code < 429:
            failure = replace(failure, reaction="reject")
        return self._clean(failure)

    def _clean(self, failure: Failure) -> Failure:
        message = make_printable(self._hide(failure.message).strip(), _MOST_SHOWN)
        return replace(failure, message=message)

    def _hide(self, text: str) -> str:
        for secret in self._secrets:
            text = Credentials(key=secret).hide_in(text)
        return text
