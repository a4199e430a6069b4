"""Rule tests: cases in readable files (a program, events, expected matches), run on an engine and compared."""

from weft.rule_tests.cases import ENDING, find_files
from weft.rule_tests.report import case_lines, to_json
from weft.rule_tests.run import FileResult, run_file

__all__ = ["ENDING", "FileResult", "case_lines", "find_files", "run_file", "to_json"]
