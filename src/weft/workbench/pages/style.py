"""How the pages look, light and dark, and how they are used from the keyboard."""

from __future__ import annotations

from weft.drawing.svg import FAINT, INK, LINE, PAPER

ACCENT, WRONG, RIGHT, DOUBT = "#0f5c6e", "#cf222e", "#1a7f37", "#9a6700"
STYLE = """
body { background: #f6f8fa; color: #24292f; }
body.body--dark { background: #0d1117; color: #e6edf3; }
.weft-card { background: white; border: 1px solid #d8dee4; border-radius: 8px; padding: 14px 16px; box-shadow: none; }
.body--dark .weft-card, .body--dark .q-menu, .body--dark .q-dialog .q-card {
  background: #161b22; border-color: #30363d;
}
.weft-title { font-weight: 600; font-size: 0.95rem; overflow-wrap: anywhere; }
.weft-quiet { color: #57606a; }
.body--dark .weft-quiet, .body--dark .q-table th { color: #9da7b1; }
.weft-bad { color: #cf222e; } .weft-good { color: #1a7f37; } .weft-doubt { color: #9a6700; }
.body--dark .weft-bad { color: #ff7b72; } .body--dark .weft-good { color: #56d364; }
.body--dark .weft-doubt { color: #e3b341; }
.weft-tile { background: #f6f8fa; border-radius: 6px; }
.body--dark .weft-tile { background: #0d1117; }
.weft-bar { height: 12px; border-radius: 3px; background: #0f5c6e; opacity: 0.8; min-width: 2px; }
.body--dark .weft-bar { background: #2a9db5; }
body.body--dark { --q-primary: #2a9db5 !important; --q-negative: #f85149 !important; }
.q-table__card { background: transparent !important; }
.body--dark .q-table td, .body--dark .q-table th { border-color: #30363d !important; }
.body--dark .q-field--outlined .q-field__control:before { border-color: #444c56 !important; }
.body--dark .cm-gutters { border-color: #30363d !important; }
.weft-places { scrollbar-width: none; overflow-x: auto; }
.weft-places a { color: white; text-decoration: none; opacity: 0.75; padding: 4px 10px; border-radius: 6px; }
.weft-places a:hover { opacity: 1; } .weft-places a.weft-at { opacity: 1; font-weight: 700; background: #ffffff24; }
.weft-list { max-height: calc(100vh - 210px); overflow: auto; }
.weft-list td { white-space: normal !important; overflow-wrap: break-word; padding: 5px 8px !important; }
.weft-split { display: flex; align-items: flex-start; gap: 16px; width: 100%; }
.weft-side { width: 14rem; flex-shrink: 0; }
@media (max-width: 1023px) {
  .weft-split { flex-direction: column; align-items: stretch; }
  .weft-side { width: 100%; }
  .weft-split .weft-list { max-height: 26vh; }
}
.weft-choose tbody tr { cursor: pointer; }
tr.weft-here td, .weft-choose tbody tr.selected td { background: #0f5c6e1f; font-weight: 600; }
.body--dark tr.weft-here td { background: #2a9db533; }
a:focus-visible, tr:focus-visible, .q-btn:focus-visible { outline: 2px solid #bf8700; outline-offset: -2px; }
.weft-mono, .weft-pre { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; font-size: 12.5px; }
.weft-pre { white-space: pre-wrap; overflow-wrap: anywhere; }
.weft-picture { overflow: auto; max-height: 460px; }
.weft-picture svg { max-width: max(100%, 700px) !important; height: auto; }
.weft-stale { opacity: 0.35; }
.weft-editor { height: clamp(220px, 42vh, 460px); border: 1px solid #d8dee4; border-radius: 6px; overflow: hidden; }
.body--dark .weft-editor { border-color: #30363d; }
.cm-editor { font-size: 13.5px; height: 100%; }
.body--dark .cm-editor, .body--dark .cm-gutters { background: #0d1117 !important; color: #e6edf3 !important; }
.body--dark .cm-activeLine, .body--dark .cm-activeLineGutter { background: #1c2733 !important; }
.body--dark .cm-cursor { border-left-color: #e6edf3 !important; }
.body--dark .cm-selectionBackground { background: #264f78 !important; }
.body--dark .cm-tooltip { background: #161b22 !important; color: #e6edf3 !important; border-color: #30363d !important; }
.cm-completionIcon { display: none; }
.cm-tooltip-autocomplete .cm-completionDetail { float: right; margin-left: 2em; color: #6e7781; }
.weft-keyword { color: #cf222e; font-weight: 600; } .body--dark .weft-keyword { color: #ff7b72; }
.weft-string { color: #0a3069; } .body--dark .weft-string { color: #a5d6ff; }
.weft-number { color: #0550ae; } .body--dark .weft-number { color: #79c0ff; }
.weft-comment { color: #6e7781; font-style: italic; } .body--dark .weft-comment { color: #8b949e; }
.weft-error { text-decoration: underline wavy #cf222e 1.5px; background: #cf222e1c; }
.weft-warning { text-decoration: underline wavy #bf8700 1.5px; background: #bf870026; }
.weft-picture [class^=weft-at-], .weft-picture [class^=weft-match-] { cursor: pointer; }
.weft-chosen circle { stroke: #bf8700 !important; stroke-width: 4; }
.weft-chosen path { stroke: #bf8700 !important; stroke-width: 3; }
.q-notification__actions .q-btn { color: white !important; font-weight: 600; }
.q-btn-toggle .q-btn { padding: 4px 12px; }
.q-table th { font-weight: 600; color: #57606a; }
.q-table tbody td { max-width: 46rem; overflow: hidden; text-overflow: ellipsis; }
.q-table__bottom { min-height: 36px; }
"""
# Pictures keep their colours where they are light; on dark pages each colour of the drawing has another one.
DARKER = {
    PAPER: "#161b22", INK: "#e6edf3", FAINT: "#9da7b1", LINE: "#30363d", "#8c959f": "#8b949e", "#afb8c1": "#6e7781",
    "#f6f8fa": "#21262d", "#ddf4ff": "#0c2d4d", "#dafbe1": "#0f3a1f", "#54aeff": "#388bfd", "#4ac26b": "#2ea043",
    "#0969da": "#58a6ff", "#1a7f37": "#56d364", "#bf3989": "#f778ba", "#9a6700": "#e3b341", "#8250df": "#bc8cff",
    "#cf222e": "#ff7b72", "#1b7c83": "#39c5cf", "#57606a": "#9da7b1",
}  # fmt: skip
DARK_PICTURES = "".join(
    f'.body--dark .weft-picture [{what}="{light}"] {{ {what}: {dark}; }}\n'
    for light, dark in DARKER.items()
    for what in ("fill", "stroke")
)
SWITCH = """() => {
  Quasar.Dark.toggle();
  localStorage.setItem("weft-dark", Quasar.Dark.isActive ? "1" : "0");
}"""
# The choice of this browser, or else of its system; pictures and charts are told of it.
DARKNESS = """
const kept = localStorage.getItem("weft-dark");
Quasar.Dark.set(kept === null ? matchMedia("(prefers-color-scheme: dark)").matches : kept === "1");
"""
# Rows that can be chosen are reached with Tab, moved through with the arrows and chosen with Enter.
KEYS = """
document.addEventListener("DOMContentLoaded", () => {
  const rows = ".weft-choose tbody tr";
  const reach = () => document.querySelectorAll(rows + ":not([tabindex])").forEach((row) => { row.tabIndex = 0; });
  new MutationObserver(reach).observe(document.body, {childList: true, subtree: true});
  document.addEventListener("keydown", (key) => {
    if (key.altKey && key.key >= "1" && key.key <= "9") {
      const place = document.querySelectorAll(".weft-places a")[key.key - 1];
      if (place) { key.preventDefault(); place.click(); }
    }
    if ((key.ctrlKey || key.metaKey) && key.key === "s") key.preventDefault();
    const row = key.target.closest && key.target.closest(rows);
    if (!row || row !== key.target) return;
    const next = {ArrowDown: row.nextElementSibling, ArrowUp: row.previousElementSibling}[key.key];
    if (next) { key.preventDefault(); next.focus(); }
    if (key.key === "Enter") row.click();
  });
});
"""
