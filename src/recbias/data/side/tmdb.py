"""Overviews, cast and directors of films from The Movie Database, with a key of one's own."""

from __future__ import annotations

import json
import re
import urllib.parse
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd

from recbias.core.arrays import Ids
from recbias.core.dataset.attributes import SEPARATOR
from recbias.core.errors import DownloadFailed, NothingLeft
from recbias.core.stage_context import report_progress
from recbias.data.fetch.connection import RefusedRequest
from recbias.data.fetch.retry_policy import RetryPolicy
from recbias.data.fetch.transfer import fetch_text, wrap_write_errors

URL = "https://api.themoviedb.org/3/"
TERMS = (
    "TMDB: the API is for non-commercial use, with your own key and with attribution. This "
    "product uses the TMDB API but is not endorsed or certified by TMDB."
)
COLUMNS = ("overview", "cast", "director")

_MAX_BYTES = 8 * 2**20
_NOT_FOUND, _REFUSED = 404, {401, 403}


@dataclass(frozen=True)
class Tmdb:
    """The service of The Movie Database.

    Args:
        key: An API key, or a read access token, which contains full stops; never printed.
        url: Its address.
        language: The language of the overviews: ``en-US``.
        n_cast: The length of the cast, in the order of the credits.
        policy: When a request is sent again.
    """

    name: ClassVar[str] = "TMDB"
    terms: ClassVar[str] = TERMS
    link: ClassVar[str] = "tmdbId"

    key: str = field(repr=False)
    url: str = URL
    language: str = "en-US"
    n_cast: int = 5
    policy: RetryPolicy = field(default_factory=RetryPolicy)

    def fetch_facts(self, numbers: Ids, side_folder: Path) -> pd.DataFrame:
        """Return the facts of films, in the order of their ids; each film is requested once.

        Args:
            numbers: The numbers of the films in TMDB; None without one.
            side_folder: Its file ``tmdb.jsonl`` stores each film as it arrives; the next call
                requests the others only.

        Returns:
            ``overview``, ``cast`` and ``director``, None where TMDB has none.

        Raises:
            DownloadFailed: The key is refused, the service fails, or its answer is not a film.
            NothingLeft: The service has none of the films.
            Unwritable: The file cannot be written.
        """
        replies = side_folder / "tmdb.jsonl"
        films = self._load_replies(replies)
        linked = list(dict.fromkeys(str(number) for number in numbers if number))
        missing = [number for number in linked if number not in films]
        with wrap_write_errors(replies), replies.open("a", encoding="utf-8") as stream:
            for position, number in enumerate(missing):
                films[number] = self._fetch_film(number)
                line = {"id": number, "language": self.language, **films[number]}
                stream.write(json.dumps(line, ensure_ascii=False) + "\n")
                stream.flush()
                report_progress("fetch films", position + 1, len(missing))
        if not any(films[number] for number in linked):
            message = "has none of the films"
            raise NothingLeft(message, where=self.url, remedy="check the TMDB ids of the links")
        facts = [films.get(str(number), {}) if number else {} for number in numbers]
        return pd.DataFrame([self._select(film) for film in facts], columns=list(COLUMNS))

    def _load_replies(self, path: Path) -> dict[str, dict[str, Any]]:
        """Return the stored films in this language; a line that was cut off is not one."""
        if not path.exists():
            return {}
        films = {}
        for line in path.read_text(encoding="utf-8").splitlines():
            try:
                film = json.loads(line)
            except ValueError:
                continue
            if film.pop("language", None) == self.language:
                films[str(film.pop("id"))] = film
        return films

    def _fetch_film(self, number: str) -> dict[str, Any]:
        """Return the overview, the cast and the directors; empty if TMDB lacks the film."""
        is_token = "." in self.key
        query = {"language": self.language, "append_to_response": "credits"}
        address = f"{self.url.rstrip('/')}/movie/{urllib.parse.quote(number, safe='')}"
        headers = {"Authorization": f"Bearer {self.key}"} if is_token else {}
        secret = {} if is_token else {"api_key": self.key}
        url = f"{address}?{urllib.parse.urlencode({**query, **secret})}"
        try:
            text = fetch_text(url, policy=self.policy, headers=headers, max_bytes=_MAX_BYTES)
        except RefusedRequest as error:
            if error.status == _NOT_FOUND:
                return {}
            if error.status in _REFUSED:
                message = f"the server answers {error.status}: the key is refused"
                remedy = "check the environment variable of the key: --key-env"
                raise DownloadFailed(message, where=address, remedy=remedy) from None
            raise self._conceal_key(error, address) from None
        except DownloadFailed as error:
            raise self._conceal_key(error, address) from None
        return _parse_film(text, address)

    def _conceal_key(self, error: DownloadFailed, address: str) -> DownloadFailed:
        message = error.message.replace(self.key, "...")
        message = message.replace(urllib.parse.quote_plus(self.key), "...")
        return DownloadFailed(message, where=address, remedy="run it again, which resumes")

    def _select(self, film: Mapping[str, Any]) -> dict[str, str | None]:
        return {
            "overview": film.get("overview") or None,
            "cast": SEPARATOR.join(film.get("cast", [])[: self.n_cast]) or None,
            "director": SEPARATOR.join(film.get("director", [])) or None,
        }


def _parse_film(text: str, address: str) -> dict[str, Any]:
    """Return the parts of an answer that are stored."""
    try:
        film = json.loads(text)
        credits_ = film["credits"]
        cast = sorted(credits_["cast"], key=lambda person: person.get("order", len(credits_)))
        crew = [person for person in credits_["crew"] if person.get("job") == "Director"]
        return {
            "overview": re.sub(r"\s+", " ", film.get("overview") or "").strip(),
            "cast": list(_iterate_names(cast)),
            "director": list(_iterate_names(crew)),
        }
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        message = f"the answer is not a film with credits: {text[:80]!r}"
        remedy = "check the address: --url"
        raise DownloadFailed(message, where=address, remedy=remedy) from error


def _iterate_names(people: list[Mapping[str, Any]]) -> Iterator[str]:
    for name in dict.fromkeys(str(person["name"]).strip() for person in people):
        if name:
            yield name.replace(SEPARATOR, "/")
