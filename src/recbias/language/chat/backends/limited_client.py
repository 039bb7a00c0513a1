"""HTTP clients of SDKs that stop reading an answer that is too long, or does not end."""

from __future__ import annotations

import time
from typing import Any

MAX_ANSWER_BYTES = 16 * 2**20
"""The longest answer that is read, in bytes after decompression."""

MAX_TIMEOUTS = 10
"""An answer may take so many times ``timeout_s``: some servers send blanks while they work."""

_OMITTED = {"content-encoding", "content-length", "content-type", "transfer-encoding"}
"""The headers that do not hold for a body that was read and decompressed, and the one that names
its encoding: JSON is UTF-8, and a text of an unknown encoding could not be shown."""


class EndlessAnswer(Exception):
    """A server sends more, or for longer, than an answer may."""


def make_limited_client(sdk: Any, timeout_s: float) -> Any:
    """Return the HTTP client of an SDK, with limits of size and time.

    Args:
        sdk: The module of OpenAI or Anthropic.
        timeout_s: The seconds without a byte after which a server is given up.
    """
    base: Any = sdk.DefaultHttpxClient

    class LimitedClient(base):  # type: ignore[misc]
        def send(self, request: Any, *, stream: bool = False, **options: Any) -> Any:
            """Return the answer to a request, whose body is read unless it is a ``stream``.

            Raises:
                EndlessAnswer: The body is longer, or takes longer, than an answer may.
            """
            answer = super().send(request, stream=True, **options)
            if stream:
                return answer
            try:
                content = _read_content(answer, MAX_TIMEOUTS * timeout_s)
            finally:
                answer.close()
            headers = [
                pair
                for pair in answer.headers.raw
                if pair[0].decode("latin-1").lower() not in _OMITTED
            ]
            return type(answer)(
                answer.status_code,
                headers=headers,
                content=content,
                request=answer.request,
                extensions=answer.extensions,
                history=answer.history,
            )

        def __del__(self) -> None:
            """Close the connections, as the SDK's own client does."""
            if not getattr(self, "is_closed", True):
                self.close()

    return LimitedClient(timeout=timeout_s)


def _read_content(answer: Any, seconds: float) -> bytes:
    end, chunks, n_left = time.monotonic() + seconds, [], MAX_ANSWER_BYTES
    for chunk in answer.iter_bytes():
        chunks.append(chunk)
        n_left -= len(chunk)
        if n_left < 0:
            raise EndlessAnswer(f"the answer has more than {MAX_ANSWER_BYTES:,} bytes")
        if time.monotonic() > end:
            raise EndlessAnswer(f"the answer had not ended after {seconds:g} s")
    return b"".join(chunks)
