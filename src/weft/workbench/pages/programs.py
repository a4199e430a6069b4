"""The page of programs: files, an editor that checks while one types, the plan as a drawing, the rewrites."""

from __future__ import annotations

import re
from urllib.parse import quote

from nicegui import ui
from nicegui.events import KeyEventArguments

from weft.workbench.pages.editor import ProgramEditor
from weft.workbench.pages.frame import asked, button, card, frame, picture, table, texts
from weft.workbench.project import PROGRAM_ENDINGS
from weft.workbench.service import ProgramSource, Workbench

# The program that is shown is marked. Long names break after their parts, never inside a word.
ROW = """<q-tr :props="props" :class="props.row.here ? 'weft-here' : ''" :title="props.row.path"
  @click="() => $parent.$emit('open', props.row.path)">
  <q-td key="path" :props="props"><span v-if="props.row.folder" class="weft-quiet">{{ props.row.folder }}<wbr></span
  ><template v-for="part in props.row.parts">{{ part }}<wbr></template></q-td></q-tr>"""
PARTS = re.compile(r"[^_-]+[_-]*|[_-]+")  # of a name, with what parts them
NEW = {
    "ceql": "SELECT *\nFROM S\nWHERE A AS a ; B AS b\nFILTER a[x] = b[x]\nWITHIN 10 MINUTES\n",
    "eql": "SOURCE A(x: int) RATE 10\nSOURCE B(x: int) RATE 5\n\n"
    "SELECT a.x\nFROM A a ; B b\nWHERE FILTER(a.x = b.x) AND (a, b) OCCURS WITHIN 10 min\n",
    "step": 'topology "new"\nexternal A(x: int) < "a.jsonl" [10.0]\nexternal B(x: int) < "b.jsonl" [5.0]\n\n'
    "AB(A.x): A ;[A.x = B.x && dur < 600000] B\n",
    "tesla": "define AB(x: int)\nfrom B(x = $x) as b and last A(x = $x) as a within 10 min from b\nwhere x = b.x\n",
    "epn": "pattern AB sequence(A a, B b)\n  where a.x = b.x\n  context fixed 10 min\n",
    "sql": "SELECT *\nFROM events MATCH_RECOGNIZE (\n  PARTITION BY x\n  ORDER BY ts\n"
    "  MEASURES A.ts AS began, B.ts AS ended\n  PATTERN (A B)\n  DEFINE A AS type = 'A', B AS type = 'B'\n)\n",
}  # what a new program says, by language


def add(bench: Workbench) -> None:
    """Add the page."""

    @ui.page("/")
    async def page(path: str = "") -> None:
        with frame("/", bench.project.folder.name):
            await _Programs(bench).show(path)


class _Programs:
    def __init__(self, bench: Workbench) -> None:
        self._bench = bench

    async def show(self, path: str) -> None:
        files = await asked(self._bench.programs) or []
        first = path or (files[0].path if files else "")
        source = (await asked(self._bench.program, first)) if first else None
        source = source or ProgramSource(NEW["ceql"], "ceql")
        ui.keyboard(self._key, ignore=[])
        with ui.element("div").classes("weft-split"):
            with card("Programs", "weft-side"):
                self._list([file.path for file in files], source.path)
            with ui.column().classes("grow min-w-0 gap-4"):
                with card("Program"):
                    with ui.row().classes("w-full items-center gap-2"):
                        self.path = ui.input("file", value=source.path).props('dense outlined data-testid="path"')
                        self.path.classes("grow")
                        button("Save", self._save, "save").tooltip("Ctrl+S")
                        button("Try", self._try, "try", "outline").tooltip("Ctrl+Enter")
                    self.editor = ProgramEditor(self._bench, source, self._plan)
                    with self.editor.tools:
                        button("New", self._new, "new", "flat dense padding='xs sm'")
                        button("Rename", self._rename, "rename", "flat dense padding='xs sm'")
                        button("Delete", self._delete, "delete", "flat dense padding='xs sm' color=negative")
                with card("Plan"):
                    self.plan_note = ui.label()
                    self.plan_note.classes("weft-doubt").visible = False
                    self.plan = picture("", "plan")
                    with ui.expansion("the plan as text").classes("w-full").props("dense"):
                        self.plan_text = texts([], "plan-text")
                    with ui.expansion("rewritten by the optimiser").classes("w-full").props("dense"):
                        self.rewrites = texts(["—"], "rewrites")

    def _list(self, files: list[str], chosen: str) -> None:
        """The programs as a table that shows what is asked for, however many there are."""
        search = ui.input(placeholder="search").props('dense outlined clearable data-testid="search"').classes("w-full")
        listed = table(["path"], [_row(path, chosen) for path in files], "path", "programs", 25)
        listed.props('hide-header no-data-label="no program yet"').classes("weft-choose weft-list")
        listed.add_slot("body", ROW)
        listed.on("open", lambda event: ui.navigate.to(_address(str(event.args))))
        search.bind_value_to(listed, "filter")

    async def _plan(self, source: ProgramSource | None) -> None:
        planned = None if source is None else await asked(self._bench.plan, source)
        stale = planned is None and bool(self.plan.content)
        self.plan_note.visible = planned is None
        self.plan_note.text = "mend the errors above" + (": this is the plan of the text before" if stale else "")
        self.plan.classes(add="weft-stale") if stale else self.plan.classes(remove="weft-stale")
        if planned is not None:
            self.plan.content = planned.svg
            self.plan_text.text = planned.text
            self.rewrites.text = "\n".join(planned.rewrites) or "no rule applies"

    def _new(self) -> None:
        """Begin a program in the language that is chosen."""
        language = str(self.editor.language.value)
        self.path.value = ""
        self.editor.show(ProgramSource(NEW[language], language))

    async def _rename(self) -> None:
        """Move the program that is shown to the path in the field."""
        old, new = self.editor.path, self.path.value.strip()
        if not old or new == old:
            ui.notify("write the new name into the field, then rename", type="warning")
            return
        renamed = await asked(self._bench.rename, old, new)
        if renamed is not None:
            ui.navigate.to(_address(renamed.path))

    async def _delete(self) -> None:
        """Delete the program that is shown, after a question."""
        path = self.editor.path
        if not path:
            return
        with ui.dialog() as dialog, ui.card():
            ui.label(f"Delete {path}?")
            with ui.row():
                button("Delete", lambda: dialog.submit("yes"), "delete-yes", "color=negative")
                button("Keep", dialog.close, "delete-no", "outline")
        if await dialog == "yes" and await asked(self._bench.delete, path) is not None:
            ui.navigate.to("/")

    async def _key(self, event: KeyEventArguments) -> None:
        """Ctrl+S saves, Ctrl+Enter tries."""
        if event.action.keydown and (event.modifiers.ctrl or event.modifiers.meta):
            if event.key == "s":
                await self._save()
            elif event.key.enter:
                await self._try()

    async def _save(self) -> None:
        path = self.path.value.strip()
        if not path.endswith(tuple(PROGRAM_ENDINGS)):
            path += next(end for end, name in PROGRAM_ENDINGS.items() if name == self.editor.language.value)
        saved = await asked(self._bench.save, path, self.editor.text.value)
        if saved is not None:
            self.path.value = self.editor.path = saved.path
            ui.notify(f"saved {saved.path}", type="positive")

    async def _try(self) -> None:
        await self._save()
        if self.editor.path:
            ui.navigate.to(_address(self.editor.path, "/try"))


def _row(path: str, chosen: str) -> dict[str, object]:
    folder, slash, name = path.rpartition("/")
    return {"path": path, "here": path == chosen, "folder": folder + slash, "parts": PARTS.findall(name)}


def _address(path: str, page: str = "/") -> str:
    return f"{page}?path={quote(path)}"
