"""What pyproject.toml cannot say: the wheel holds configs/, and its README has absolute links."""

from __future__ import annotations

import re
import shutil
import tomllib
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).parent


class BuildWithSpecs(build_py):
    """Copies configs/ to recbias/configs; an editable installation reads configs/ itself."""

    def run(self) -> None:
        """Build the modules, then copy the specs."""
        super().run()
        if not self.editable_mode:
            target = Path(self.build_lib) / "recbias" / "configs"
            shutil.copytree(ROOT / "configs", target, dirs_exist_ok=True)


def make_links_absolute(readme: str, home: str) -> str:
    """Return a README whose relative links lead to the repository, as PyPI requires."""
    pages = re.sub(r"\]\((?!\w+:|#)([^)]+\.md[^)]*)\)", rf"]({home}/blob/main/\1)", readme)
    return re.sub(r"\]\((?!\w+:|#)([^)]+)\)", rf"]({home}/raw/main/\1)", pages)


if __name__ == "__main__":
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    setup(
        cmdclass={"build_py": BuildWithSpecs},
        long_description=make_links_absolute(text, project["urls"]["Source"]),
        long_description_content_type="text/markdown",
    )
