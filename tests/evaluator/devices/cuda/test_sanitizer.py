"""What is read from compute-sanitizer, played by a script that says what the tool would say."""

import numpy as np
import pytest

from evaluator.devices.cuda import sanitizer
from evaluator.devices.cuda.compiled_plan import CompiledPlan
from evaluator.program.plan import Buffer, Plan, View

PLAN = Plan((Buffer("x", "input", "float32", (4,)),), (), (), (View(0, 0, (4,)),))
COMPILED = CompiledPlan(plan=PLAN, modules=(), arguments=(), architecture=90)


@pytest.fixture
def tool(tmp_path):
    """Makes an executable that behaves as the shell text says; `$2` is the name of the tool."""

    def make(text):
        path = tmp_path / "compute-sanitizer"
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
        return str(path)

    return make


def said_by(executable, **options):
    return list(sanitizer.reports(executable, COMPILED, [np.zeros(4, np.float32)], **options))


def test_a_clean_run_under_every_tool(tool):
    found = said_by(tool('for last; do :; done; test -s "$last" || exit 3'))  # the plan lies in the last argument
    assert [report.tool for report in found] == list(sanitizer.TOOLS)
    assert {report.finding for report in found} == {None}
    assert found[0].text == "compute-sanitizer memcheck: nothing found"


def test_the_first_finding_is_told(tool):
    text = """
test "$2" = racecheck || exit 0
echo '========= COMPUTE-SANITIZER'
echo '========= Error: Race reported between Read access at k+0x10 in file:3'
echo '=========     and Write access at k+0x20 in file:5 [64 hazards]'
echo '========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)'
exit 86
"""
    found = {report.tool: report.finding for report in said_by(tool(text))}
    assert found["racecheck"] == "Error: Race reported between Read access at k+0x10 in file:3"
    assert found["memcheck"] is found["initcheck"] is None


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("echo 'no device' >&2; exit 1", "memcheck: exit code 1: no device"),
        ("exit 86", "exit code 86"),
        ("sleep 20", "timed out"),
    ],
    ids=["fails", "says nothing", "hangs"],
)
def test_a_tool_that_does_not_run_to_its_end_says_nothing_of_the_program(tool, text, match):
    with pytest.raises(sanitizer.Unusable, match=match):
        said_by(tool(text), deadline_s=0.5)


def test_it_is_found_on_the_path_or_in_a_toolkit(tool, tmp_path, monkeypatch):
    executable = tool("exit 0")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert sanitizer.find() == executable
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "toolkit"))
    (tmp_path / "toolkit").mkdir()
    (tmp_path / "toolkit" / "bin").symlink_to(tmp_path)
    assert sanitizer.find() == str(tmp_path / "toolkit" / "bin" / "compute-sanitizer")
