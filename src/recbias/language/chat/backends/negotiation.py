"""Parameters that a server refuses: from then on, they are renamed or left out."""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from recbias.language.chat.endpoints import as_text
from recbias.language.chat.failures import read_error

OPTIONAL = ("top_k", "top_p", "seed", "temperature")
"""Parameters that are left out if they are refused; where two exclude each other, the first."""

_REFUSAL = re.compile(
    r"unsupported|not supported|does not support|unrecognized|unknown|unexpected|not permitted"
    r"|not allowed|cannot both|deprecated|extra_forbidden|only the default",
    re.IGNORECASE,
)


@dataclass
class Negotiation:
    """The parameters that one model refuses.

    Args:
        renamed: The other names that parameters have on some servers.
        refused: The names of the refused parameters.
    """

    renamed: Mapping[str, str] = field(default_factory=dict)
    refused: frozenset[str] = frozenset()
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def adapt(self, payload: Mapping[str, Any]) -> dict[str, Any]:
        """Return the parameters in the form that the model accepts.

        >>> negotiation = Negotiation({"max_tokens": "max_completion_tokens"})
        >>> negotiation.refused = frozenset({"max_tokens", "seed"})
        >>> negotiation.adapt({"max_tokens": 9, "seed": 1, "top_p": 0.5})
        {'max_completion_tokens': 9, 'top_p': 0.5}
        """
        return {
            self.renamed.get(name, name) if name in self.refused else name: value
            for name, value in payload.items()
            if name not in self.refused or name in self.renamed
        }

    def learn(self, payload: Mapping[str, Any], body: Any) -> bool:
        """Return whether a rejected request is sent again without a parameter that it named.

        Args:
            payload: The parameters that were sent.
            body: The JSON of the answer.
        """
        name = find_refused(payload, body, (*self.renamed, *OPTIONAL))
        if name is None:
            return False
        with self._lock:
            self.refused |= {name}
        return True

    def describe(self) -> tuple[str, ...]:
        """Return what was sent in place of the refused parameters.

        >>> Negotiation(refused=frozenset({"temperature", "seed"})).describe()
        ('no seed', 'no temperature')
        """
        return tuple(
            f"{self.renamed[name]} for {name}" if name in self.renamed else f"no {name}"
            for name in sorted(self.refused)
        )


def find_refused(
    payload: Mapping[str, Any], body: Any, candidates: Sequence[str] = OPTIONAL
) -> str | None:
    """Return the parameter of a request that an answer calls unsupported, None if there is none.

    >>> find_refused({"temperature": 0.0}, {"error": {"message": "'temperature' is unsupported"}})
    'temperature'
    >>> find_refused({"temperature": 9.0}, {"error": {"message": "temperature is above 2"}})

    Args:
        payload: The parameters that were sent.
        body: The JSON of the answer.
        candidates: The parameters that can be left out or renamed, in order.
    """
    error = read_error(body)
    message = as_text(error.get("message"))
    if not _REFUSAL.search(f"{as_text(error.get('code'))} {message}"):
        return None
    named = {as_text(error.get("param")), *re.findall(r"\w+", message)}
    return next((name for name in candidates if name in named and name in payload), None)
