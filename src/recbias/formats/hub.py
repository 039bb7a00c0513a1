"""Files of the Hugging Face hub by their address: ``hf://datasets/OWNER/NAME@REVISION/FILE``."""

from __future__ import annotations

import os
import re
from pathlib import Path

from recbias.core.errors import DownloadFailed, OutOfRange
from recbias.core.files import is_offline
from recbias.core.packages import require_packages

_ADDRESS = re.compile(
    r"hf://(?P<kind>datasets/|spaces/)?(?P<name>[^/@]+/[^/@]+)(@(?P<revision>[^/]+))?/(?P<file>.+)"
)
_STORED = re.compile(
    r".*/(?P<kind>dataset|space|model)s--(?P<owner>.+?)--(?P<name>[^/]+)"
    r"/snapshots/(?P<commit>[0-9a-f]{40})/(?P<file>.+)"
)


def is_hub_address(text: str) -> bool:
    """Return whether a text is the address of a file of the hub."""
    return text.startswith("hf://")


def fetch_hub_file(address: str) -> Path:
    """Return a file of the hub in its cache on this machine, downloaded if the cache lacks it.

    Without a revision the newest one is asked for; offline it is the one in the cache.

    Raises:
        OutOfRange: It is not the address of a file.
        MissingExtra: ``huggingface_hub`` is not installed.
        DownloadFailed: The hub does not provide it, or the network may not be used.
    """
    match = _ADDRESS.fullmatch(address)
    if match is None:
        remedy = "give hf://datasets/OWNER/NAME/FILE, or NAME@REVISION"
        raise OutOfRange(f"{address!r} is not the address of a file", remedy=remedy)
    require_packages("hf://", "huggingface_hub")
    from huggingface_hub import hf_hub_download

    try:
        path: str = hf_hub_download(
            match["name"],
            match["file"],
            repo_type=(match["kind"] or "models/").removesuffix("s/"),
            revision=match["revision"],
            endpoint=os.environ.get("HF_ENDPOINT"),
            local_files_only=is_offline(),
        )
    except (OSError, ValueError) as error:
        state = " and offline it is not asked for" if is_offline() else ""
        message = f"{address} is not there{state}: {' '.join(str(error).split())}"
        remedy = "check its owner, name, revision and path; HF_TOKEN opens private ones"
        raise DownloadFailed(message, remedy=remedy) from error
    return Path(path)


def name_hub_file(path: Path) -> str:
    """Return the address of a file in the cache of the hub, with its commit; else blank.

    >>> commit = 40 * "a"
    >>> name_hub_file(Path(f"/c/datasets--shop--clicks/snapshots/{commit}/day/1.csv"))
    'hf://datasets/shop/clicks@aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa/day/1.csv'
    """
    match = _STORED.fullmatch(path.as_posix())
    if match is None:
        return ""
    kind = "" if match["kind"] == "model" else f"{match['kind']}s/"
    return f"hf://{kind}{match['owner']}/{match['name']}@{match['commit']}/{match['file']}"
