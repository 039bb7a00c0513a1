"""The pinned packages have no known vulnerability, and a hash each."""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, version

import pytest
import yaml
from packaging.version import Version

from support.dependencies.pinned_packages import (
    CONSTRAINTS,
    HASHES,
    ROOT,
    read_hashes,
    read_versions,
    render_hashes,
)

ADVISORIES: dict[str, dict[str, str]] = yaml.safe_load(
    (ROOT / "tests/support/dependencies/advisories.yaml").read_text("utf-8")
)
PINNED = read_versions(CONSTRAINTS.read_text("utf-8"))


def list_vulnerable(versions: dict[str, str]) -> list[str]:
    """Return the advisories that concern these versions of packages."""
    return [
        f"{package} {versions[package]}: {advisory} is corrected in {corrected}"
        for package, advisories in ADVISORIES.items()
        for advisory, corrected in advisories.items()
        if package in versions and Version(versions[package]) < Version(corrected)
    ]


def test_no_pinned_package_has_a_known_vulnerability() -> None:
    assert list_vulnerable(PINNED) == []
    assert ADVISORIES.keys() <= PINNED.keys()


def test_no_installed_package_has_a_known_vulnerability() -> None:
    installed = {}
    for package in ADVISORIES:
        try:
            installed[package] = version(package)
        except PackageNotFoundError:
            continue
    assert len(installed) > 10
    assert list_vulnerable(installed) == []


@pytest.mark.parametrize(
    ("old", "is_vulnerable"), [("14.0.0", True), ("14.0.1", False), ("9.0", True)]
)
def test_an_older_version_is_found(old: str, is_vulnerable: bool) -> None:
    assert bool(list_vulnerable({"pyarrow": old})) == is_vulnerable


def test_every_pinned_package_has_the_hash_of_its_file() -> None:
    text = HASHES.read_text("utf-8")
    assert read_versions(text) == PINNED
    hashes = read_hashes(text)
    assert hashes.keys() == PINNED.keys()
    digests = [digest for row in hashes.values() for digest in row]
    assert len(digests) == len(set(digests)) == len(PINNED)
    assert all(re.fullmatch("[0-9a-f]{64}", digest) for digest in digests)
    assert "/" not in text  # neither a path of a machine nor an address


def test_hashes_are_those_of_the_report_of_pip() -> None:
    digest = "0" * 64
    report = {
        "environment": {
            "python_version": "3.11",
            "platform_system": "Linux",
            "platform_machine": "x86_64",
        },
        "install": [
            {
                "metadata": {"name": "My.Package"},
                "download_info": {"archive_info": {"hashes": {"sha256": digest}}},
            }
        ],
    }
    text = render_hashes("my_package==1.0\n", report)
    assert text.endswith(f"my_package==1.0 --hash=sha256:{digest}\n")
    assert read_versions(text) == {"my-package": "1.0"}
    assert read_hashes(text) == {"my-package": [digest]}
