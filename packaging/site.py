"""Hooks of the documentation site: its navigation from docs/README.md, and pages that are made from the code."""

from __future__ import annotations

import inspect
import re
import tomllib
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
ROW = re.compile(r"^\| \[[^\]]*\]\(([^)]+)\)")
ABOVE = {
    "../ARCHITECTURE.md": "architecture.md",
    "../CONTRIBUTING.md": "contributing.md",
    "../SECURITY.md": "security.md",
}
NAMED_BY_FILE = re.compile(r"\[((?:\.\./|docs/)?\w+\.md)\]\(([^)#]+\.md)")
# Room for wide tables.
STYLE = """.md-grid { max-width: 78rem }
.md-typeset table:not([class]) :is(th, td) { min-width: 0; padding: 0.6em 0.75em }
"""
BETWEEN_EXAMPLES = re.compile(r"^( {4}.*\n)\n(?= {4})", re.MULTILINE)  # terminals join lines without it
MADE = {"cli.md": "Command line", "api.md": "Python"}  # pages that are made from the code


def on_config(config: Any) -> Any:
    """Make the navigation from the index: a part for each heading, a page for each row below it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    config["repo_url"] = project["urls"]["Source"]
    config["repo_name"] = project["name"]
    config["site_url"] = project["urls"]["Documentation"] + "/"
    nav: list[dict[str, Any]] = [{"Home": "README.md"}]
    for line in (ROOT / "docs" / "README.md").read_text().splitlines():
        if line.startswith("## "):
            nav.append({line[3:]: []})
        elif (row := ROW.match(line)) is not None:
            next(iter(nav[-1].values())).append(ABOVE.get(row[1], row[1]))
    reference = next(part["Reference"] for part in nav if "Reference" in part)
    reference += [{title: name} for name, title in MADE.items()]
    config["nav"] = nav
    return config


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that are not files of the folder."""
    for above, name in ABOVE.items():
        text = (ROOT / "docs" / above).resolve().read_text()
        files.append(File.generated(config, name, content=_links_inside(text)))
    files.append(File.generated(config, "site.css", content=STYLE))
    files.append(File.generated(config, "cli.md", content=command_line()))
    files.append(File.generated(config, "api.md", content=functions()))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Point links at files beside the folder to their pages, and at code to the repository; name pages by their titles.

    What follows the language of a block (`python spark`) is for the tests that run it.
    """
    markdown = NAMED_BY_FILE.sub(_titled, markdown)
    markdown = re.sub(r"^```(\w+) .+$", r"```\1", markdown, flags=re.MULTILINE)
    for above, name in ABOVE.items():
        markdown = markdown.replace(f"]({above}", f"]({name}")
    source = f"{config['repo_url']}/blob/main/"
    return re.sub(r"\]\(\.\./(?!\.)([^)]*)\)", lambda link: f"]({source}{link[1]})", markdown)


def _titled(link: re.Match[str]) -> str:
    """Return the beginning of a link that is named by its file, with the title of the page instead."""
    file = ROOT / "docs" / link[1].removeprefix("docs/")
    lines = file.read_text(encoding="utf-8").splitlines() if file.is_file() else []
    title = next((line[2:] for line in lines if line.startswith("# ")), link[1])
    return f"[{title}]({link[2]}"


def _links_inside(text: str) -> str:
    """Links of a page of the repository's top folder, as links of the site."""
    for above, name in ABOVE.items():
        text = text.replace(f"]({above[3:]}", f"]({name}")
    text = text.replace("](docs/", "](")
    return re.sub(r"\]\((?![a-z]+:|#)(LICENSE|CHANGELOG\.md|tests/[^)]*|examples/[^)]*)\)", r"](../\1)", text)


def command_line() -> str:
    """Describe every command, with its arguments and options, as its help does."""
    from weft.cli.commands import PLACES, Commands

    parts = ["# Command line\n", "`weft COMMAND --help` shows the same in a terminal.\n"]
    for name, command in ((name, Commands()[name]) for name in PLACES):
        usage = " ".join(command.collect_usage_pieces(command.context_class(command, info_name=name)))
        parts += [f"## weft {name}\n", f"```text\nweft {name} {usage}\n```\n"]
        parts += [BETWEEN_EXAMPLES.sub(r"\1", inspect.cleandoc(command.help or "")), ""]
        parts += ["| argument | meaning |", "|---|---|"]
        for parameter in command.params:
            names = ", ".join(f"`{one}`" for one in (*parameter.opts, *parameter.secondary_opts))
            if parameter.param_type_name == "argument":
                names = f"`{parameter.metavar or parameter.name.upper()}`"
            text = " ".join((getattr(parameter, "help", None) or "").split()).replace("|", "\\|")
            if isinstance(parameter.default, str | int | float) and not isinstance(parameter.default, bool):
                text += f" Default: `{parameter.default}`."
            parts.append(f"| {names} | {text} |")
        parts.append("")
    return "\n".join(parts)


def functions() -> str:
    """List the public names of the package, functions first; their texts are their docstrings."""
    import weft

    found = {name: getattr(weft, name) for name in weft.__all__}
    calls = [name for name, one in found.items() if inspect.isfunction(one)]
    errors = [name for name, one in found.items() if inspect.isclass(one) and issubclass(one, Exception)]
    rest = [name for name in found if name not in calls and name not in errors]
    parts = ["# Python\n", "`import weft`, and all of these are there.\n"]
    for title, names in (("Functions", calls), ("Values", rest), ("Errors and warnings", errors)):
        parts += [f"## {title}\n", *(_entry(name, found[name]) for name in names)]
    return "\n".join(parts)


def _entry(name: str, thing: Any) -> str:
    """Ask for the docstring of a public name, where it is defined, under the name that users write."""
    place = f"{getattr(thing, '__module__', 'weft')}.{getattr(thing, '__qualname__', name)}"
    return f"::: {place}\n    options:\n      heading: weft.{name}\n      toc_label: {name}\n"
