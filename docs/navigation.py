"""Add the plug-in pages to the sidebar of the site: a hook of mkdocs that needs mkdocs only."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def on_config(config: Any) -> None:
    """Put docs/plugins/navigation.json in the place of the entry Plug-ins."""
    pages = json.loads(
        (Path(config["docs_dir"]) / "plugins" / "navigation.json").read_text("utf-8")
    )
    for part in config["nav"]:
        if "Plug-ins" in part:
            part["Plug-ins"] = pages
