"""A text of one of the languages: colours, and marks where something is wrong, while it is written."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Awaitable, Callable

from nicegui import ui

from weft.errors import plural
from weft.workbench.checking import Checked
from weft.workbench.pages.frame import asked
from weft.workbench.service import ProgramSource, Workbench

LOOK = {"error": "weft-bad", "warning": "weft-doubt", "none": "weft-good"}  # by severity
PAUSE = 0.35  # seconds without a key after which the text is looked at
LANGUAGES = {"ceql": "CEQL", "eql": "EQL", "step": "Step", "tesla": "TESLA", "epn": "EPN", "sql": "SQL"}
# The editor asks the service for words while one types; what comes back is shown as text.
COMPLETING = """
import("nicegui-codemirror").then(async (CM) => {
  const element = getElement(NUMBER);
  await element.editorPromise;
  const kinds = {keyword: "keyword", type: "class", stream: "namespace", attribute: "property", variable: "variable",
                 unit: "constant", value: "enum"};
  const source = async (context) => {
    const text = context.state.doc.toString();
    const before = text.slice(0, context.pos);
    if (!context.explicit && !/[\\p{L}\\p{N}_$.\\[]$/u.test(before)) return null;
    const asked = {text, ...window.weftEditing, position: [...before].length};
    const answer = await fetch("/api/complete", {
      method: "POST", headers: {"content-type": "application/json"}, body: JSON.stringify(asked),
    });
    if (!answer.ok) return null;
    const {start, words} = await answer.json();
    const options = words.map((one, number) => (
      {label: one.word, type: kinds[one.kind], detail: one.of || one.kind, boost: Math.max(-99, 50 - number)}
    ));
    return {from: [...text].slice(0, start).join("").length, options, validFor: /^[\\p{L}\\p{N}_$]*$/u};
  };
  const offered = CM.EditorState.languageData.of(() => [{autocomplete: source}]);
  element.editor.dispatch({effects: CM.StateEffect.appendConfig.of(offered)});
});
"""


class ProgramEditor:
    """An editor with its findings below it. `on_checked` is called with a text that can run, or with None."""

    def __init__(
        self, bench: Workbench, source: ProgramSource, on_checked: Callable[[ProgramSource | None], Awaitable[None]]
    ) -> None:
        self._bench = bench
        self._on_checked = on_checked
        self.path = source.path
        with ui.row().classes("w-full items-center gap-3"):
            self.language = ui.select(LANGUAGES, value=source.language, on_change=self._soon).props(
                'dense outlined data-testid="language"'
            )
            self.verdict = ui.label().props('data-testid="verdict"').classes("text-weight-medium")
            ui.space()
            self.tools = ui.row().classes("items-center gap-1")
        self.text = ui.codemirror(source.text, theme="githubLight", line_wrapping=True, on_change=self._soon)
        self.text.classes("w-full weft-editor")
        self.findings = ui.column().classes("w-full gap-1").props('data-testid="findings"')
        ui.run_javascript(COMPLETING.replace("NUMBER", str(self.text.id)))
        self._timer = ui.timer(PAUSE, self.look, once=False, active=True)

    @property
    def source(self) -> ProgramSource:
        """What is written."""
        return ProgramSource(self.text.value, str(self.language.value), self.path)

    def show(self, source: ProgramSource) -> None:
        """Put another program into the editor."""
        self.path = source.path
        self.language.value = source.language
        self.text.value = source.text
        self._soon()

    def _soon(self) -> None:
        self._timer.activate()

    async def look(self) -> None:
        """Check what is written."""
        self._timer.deactivate()
        source = self.source
        about = json.dumps({"language": source.language, "path": source.path})
        ui.run_javascript(f"window.weftEditing = {about}")
        checked = await asked(self._bench.check, source)
        if checked is None or source != self.source:
            return
        self._mark(checked)
        is_right = checked.is_right and bool(source.text.strip())
        await self._on_checked(source if is_right else None)

    def _mark(self, checked: Checked) -> None:
        ranges = [(c.start, c.end, c.kind) for c in checked.colours]
        ranges += [(f.start, f.end, f.severity) for f in checked.findings if f.end > f.start]
        place = _places_in(self.text.value)
        self.text.decorations = [
            {"kind": "mark", "from": place(start), "to": place(end), "class": f"weft-{kind}"}
            for start, end, kind in ranges
        ]
        self.text.line_tooltips = {finding.line: finding.message for finding in checked.findings}
        errors = sum(finding.severity == "error" for finding in checked.findings)
        warnings = len(checked.findings) - errors
        self.verdict.text = f"{plural(errors, 'error')}, {plural(warnings, 'warning')}"
        worst = "error" if errors else "warning" if warnings else "none"
        self.verdict.classes(replace=f"text-weight-medium {LOOK[worst]}")
        self.findings.clear()
        with self.findings:
            for finding in checked.findings:
                hint = f" — {finding.hint}" if finding.hint else ""
                text = f"{finding.line}:{finding.column}  {finding.message}{hint}"
                ui.label(text).classes(f"weft-mono {LOOK[finding.severity]}")


def _places_in(text: str) -> Callable[[int], int]:
    """From a number of characters to the editor's own places: there a character beyond 0xFFFF counts twice."""
    wide = [number for number, char in enumerate(text) if char > "\uffff"]
    return lambda place: place + bisect_left(wide, place)
