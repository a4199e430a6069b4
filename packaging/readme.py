"""Rewrite relative links as absolute ones, from the address in `pyproject.toml`: PyPI shows the README by itself."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

RELATIVE = re.compile(r"(!?)\[([^\]]*)\]\((?![a-z]+:|#)([^)\s]+)\)")


def absolute_links(text: str, source: str) -> str:
    """Return the text with links to files of the repository at `source`; pictures link to the files themselves."""

    def link(found: re.Match[str]) -> str:
        picture, label, path = found.groups()
        return f"{picture}[{label}]({source}/{'raw' if picture else 'blob'}/main/{path})"

    return RELATIVE.sub(link, text)


if __name__ == "__main__":
    readme, project = (Path(argument) for argument in sys.argv[1:3])
    source = tomllib.loads(project.read_text())["project"]["urls"]["Source"]
    readme.write_text(absolute_links(readme.read_text(), source))
