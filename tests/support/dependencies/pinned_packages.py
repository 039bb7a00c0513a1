"""The pinned packages of constraints.txt and the hashes of their files in hashes.txt.

    python tests/support/dependencies/pinned_packages.py

writes hashes.txt again, with the index that pip is set to use: one file for each package, which
pip chooses for this platform.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
CONSTRAINTS, HASHES = ROOT / "constraints.txt", ROOT / "hashes.txt"
HEADER = """\
# The SHA-256 of the file of each package of constraints.txt, for Python {python} on {system}
# ({machine}): pip install --no-deps --require-hashes -r hashes.txt && pip install --no-deps .
# Written by `make hashes`. torch is the CPU build of its publisher, not the file of PyPI.
"""


def normalize_package(name: str) -> str:
    """Return the name of a package as indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def read_versions(text: str) -> dict[str, str]:
    """Return the version of each package that a file of requirements pins."""
    lines = [line.split("#")[0].split(" --hash")[0].strip() for line in text.splitlines()]
    pairs = [line.partition("==") for line in lines if line]
    return {normalize_package(name): version for name, _, version in pairs}


def read_hashes(text: str) -> dict[str, list[str]]:
    """Return the SHA-256 of each package of hashes.txt."""
    rows = [line for line in text.splitlines() if not line.startswith("#")]
    return {
        normalize_package(row.partition("==")[0]): re.findall(r"--hash=sha256:(\S+)", row)
        for row in rows
    }


def render_hashes(constraints: str, report: Mapping[str, Any]) -> str:
    """Return the text of hashes.txt, from the report of pip on what it would install."""
    digests = {
        normalize_package(item["metadata"]["name"]): item["download_info"]["archive_info"][
            "hashes"
        ]["sha256"]
        for item in report["install"]
    }
    where = report["environment"]
    header = HEADER.format(
        python=where["python_version"],
        system=where["platform_system"],
        machine=where["platform_machine"],
    )
    rows = [
        f"{line} --hash=sha256:{digests[normalize_package(line.partition('==')[0])]}\n"
        for line in constraints.split()
    ]
    return header + "".join(rows)


def main() -> None:
    """Write hashes.txt."""
    command = [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed"]
    command += ["--no-deps", "--quiet", "--report", "-", "--requirement", str(CONSTRAINTS)]
    process = subprocess.run(command, capture_output=True, check=True, text=True)
    constraints = CONSTRAINTS.read_text(encoding="utf-8")
    HASHES.write_text(render_hashes(constraints, json.loads(process.stdout)), encoding="utf-8")


if __name__ == "__main__":
    main()
