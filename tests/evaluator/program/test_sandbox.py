"""The sandbox holds alone: here the AST check is skipped, so the programs do reach real functions of Python."""

import json
import os
import socket

import pytest

from evaluator.program import trace as trace_module
from evaluator.program.trace import Tracer, trace
from evaluator.program.tracer_process import TracerProcess
from evaluator.records import Limits, Outcome, ProgramFault, Rung
from evaluator.tasks.task import Array

ARRAYS = [Array("a", (4,))]
OUTPUTS = [((4,), "float32")]

# The globals of the os module, by the well-known way through the subclasses of object.
ESCAPE = """
def reach():
    for kind in ().__class__.__base__.__subclasses__():
        if kind.__name__ == "_wrap_close":
            return kind.__init__.__globals__
def real_import(name):
    return reach()["__builtins__"]["__import__"](name)
"""


def attempt(body, limits=None, prefix=ESCAPE):
    """The fault of a program whose `forward` runs `body` and then returns a result as if all were well."""
    lines = "".join(f"    {line}\n" for line in body.strip().split("\n"))
    with pytest.raises(ProgramFault) as caught:
        trace(f"{prefix}def forward(a):\n{lines}    return a\n", ARRAYS, OUTPUTS, limits)
    return caught.value.fault


def test_the_escape_itself_works_so_that_the_tests_below_test_the_sandbox():
    plan = trace(f"{ESCAPE}def forward(a):\n    reach()['getpid']()\n    return a\n", ARRAYS, OUTPUTS)
    assert plan.outputs[0].buffer == 0


SYSTEM_CALLS = {
    "fork": 'reach()["fork"]()',
    "forkpty": 'reach()["forkpty"]()',
    "posix_spawn": 'reach()["posix_spawn"]("/bin/true", ["true"], {})',
    "exec": 'reach()["execv"]("/bin/true", ["true"])',
    "open for reading": 'reach()["open"]("/etc/passwd", 0)',
    "built-in open": 'reach()["__builtins__"]["open"]("/etc/passwd")',
    "memory of this process": 'reach()["open"]("/proc/self/mem", 2)',
    "environment of this process": 'reach()["open"]("/proc/self/environ", 0)',
    "list a folder": 'reach()["listdir"]("/")',
    "stat": 'reach()["stat"]("/etc/passwd")',
    "remove a file": 'reach()["unlink"]("/tmp/nothing")',
    "make a folder": 'reach()["mkdir"]("/tmp/nothing")',
    "link": 'reach()["symlink"]("/etc/passwd", "/tmp/nothing")',
    "kill": 'reach()["kill"](reach()["getppid"](), 0)',
    "kill itself": 'reach()["kill"](reach()["getpid"](), 9)',
    "change directory": 'reach()["chdir"]("/tmp")',
    "change user": 'reach()["setuid"](0)',
    "pipe": 'reach()["pipe"]()',
    "anonymous file": 'reach()["memfd_create"]("x")',
    "duplicate a descriptor": 'reach()["dup"](1)',
    "raise its limits": 'reach()["nice"](-5)',
}


@pytest.mark.parametrize("call", SYSTEM_CALLS.values(), ids=SYSTEM_CALLS.keys())
def test_a_system_call_is_denied(call):
    fault = attempt(call)
    assert fault.outcome is Outcome.TRACE_ERROR
    assert "PermissionError" in fault.message, fault.message


def test_system_runs_nothing(tmp_path):
    marker = tmp_path / "marker"
    fault = attempt(f'status = reach()["system"]("touch {marker}")\nassert status == 0')
    assert fault.outcome is Outcome.TRACE_ERROR
    assert not marker.exists()


def test_creating_a_file_is_denied(tmp_path):
    path = tmp_path / "created"
    fault = attempt(f'reach()["open"]({str(path)!r}, 0o101)')
    assert "PermissionError" in fault.message
    assert not path.exists()


def test_no_socket_can_be_made():
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        port = server.getsockname()[1]
        body = f's = real_import("_socket").socket()\ns.connect(("127.0.0.1", {port}))'
        assert attempt(body).outcome is Outcome.TRACE_ERROR
        with pytest.raises(BlockingIOError):
            server.accept()


def test_nothing_more_can_be_imported():
    assert attempt('real_import("ctypes")').outcome is Outcome.TRACE_ERROR


def test_the_child_holds_no_descriptor_but_its_pipes():
    check = """
def closes(number):
    try:
        reach()["close"](number)
    except:
        return False
    return True
"""
    body = """
assert closes(0)
held = [number for number in range(3, 256) if closes(number)]
assert len(held) == 0, str(held)
return a
"""
    lines = "".join(f"    {line}\n" for line in body.strip().split("\n"))
    plan = trace(f"{ESCAPE}{check}def forward(a):\n{lines}", ARRAYS, OUTPUTS)
    assert len(plan.outputs) == 1


BOMBS = {
    "long string": 'x = "a" * (1 << 40)',
    "long integer": "x = 1 << (1 << 40)",
    "power": "x = 9 ** 9 ** 8\nassert x",
    "list doubling": "x = [1]\nfor i in range(60):\n    x = x + x",
    "string doubling": 'x = "a"\nfor i in range(60):\n    x = x + x',
    "wide format": 'x = "%999999999d" % 1\ny = [x + str(i) for i in range(100)]',
    "recursion": "forward(a)",
    "assertion": "assert a.shape == (5,)",
}


@pytest.mark.parametrize("body", BOMBS.values(), ids=BOMBS.keys())
def test_a_bomb_is_a_fault_of_the_program(body):
    fault = attempt(body, limits=Limits(trace_s=1.0))
    assert fault.outcome in (Outcome.TRACE_ERROR, Outcome.TIMEOUT)
    assert fault.rung is Rung.TRACE


@pytest.mark.parametrize("body", ["for i in range(1 << 60):\n    pass", "while True:\n    pass", "sum(range(1 << 60))"])
def test_an_endless_program_times_out(body):
    fault = attempt(body, limits=Limits(trace_s=0.3))
    assert (fault.outcome, fault.rung) == (Outcome.TIMEOUT, Rung.TRACE)
    assert "0.3 s" in fault.message


def test_an_endless_module_body_times_out():
    with pytest.raises(ProgramFault) as caught:
        trace("for i in range(1 << 60):\n    pass\n", ARRAYS, OUTPUTS, Limits(trace_s=0.3))
    assert caught.value.fault.outcome is Outcome.TIMEOUT


def test_a_sleeping_program_times_out():
    fault = attempt('real_import("time").sleep(1000)', limits=Limits(trace_s=0.3))
    assert fault.outcome is Outcome.TIMEOUT


def forge(text, limits=None):
    """A program that writes its own reply and ends the process."""
    return attempt(f'reach()["write"](1, {text.encode()!r})\nreach()["_exit"](0)', limits)


PLAN = {"schema": 1, "buffers": [], "modules": [], "steps": [], "outputs": [{"buffer": 0, "offset": 0, "shape": [4]}]}


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "ok",
        "[]",
        "3",
        '{"plan": null}',
        '{"fault": 1}',
        '{"fault": {"outcome": "ok", "message": "", "line": 1}}',
        '{"fault": {"outcome": "evaluator_error", "message": "not me", "line": 1}}',
        '{"fault": {"outcome": ["refused"], "message": "", "line": 1}}',
        '{"fault": {"outcome": "refused", "message": 5, "line": 1}}',
        '{"fault": {"outcome": "refused", "message": "x", "line": "1"}}',
        json.dumps({"plan": PLAN, "c_names": []}),
        json.dumps({"plan": {**PLAN, "buffers": 3}, "c_names": []}),
        json.dumps({"plan": {**PLAN, "modules": [{"source": "", "options": [], "kernels": []}]}, "c_names": []}),
        "[" * 100_000,
    ],
)
def test_a_forged_reply_is_a_trace_error(reply):
    fault = forge(reply)
    assert fault.outcome is Outcome.TRACE_ERROR


def test_control_characters_of_a_forged_message_are_not_printed():
    fault = forge(json.dumps({"fault": {"outcome": "refused", "message": "\x1b[2J\n" + "x" * 5000, "line": 10**9}}))
    assert fault.outcome is Outcome.REFUSED
    assert "\x1b" not in fault.message
    assert len(fault.message) <= 1000
    assert fault.line is None


def test_a_forged_plan_is_screened_like_any_other():
    buffers = [{"name": "a", "role": "input", "dtype": "float32", "shape": [4]}]
    module = {"source": '#include "/etc/passwd"\n', "options": [], "kernels": []}
    fault = forge(json.dumps({"plan": {**PLAN, "buffers": buffers, "modules": [module]}, "c_names": [[]]}))
    assert fault.outcome is Outcome.REFUSED
    assert "#include" in fault.message


def test_a_forged_plan_cannot_change_the_inputs():
    buffers = [{"name": "a", "role": "input", "dtype": "float32", "shape": [8]}]
    fault = forge(json.dumps({"plan": {**PLAN, "buffers": buffers}, "c_names": []}))
    assert fault.outcome is Outcome.TRACE_ERROR
    assert "inputs" in fault.message


def test_a_flood_of_output_ends():
    fault = attempt('for i in range(1 << 20):\n    reach()["write"](1, b"x" * 65536)', Limits(trace_s=20.0))
    assert fault.outcome is Outcome.TRACE_ERROR
    assert "longer than" in fault.message


def test_a_child_that_ends_at_once_is_a_fault_of_the_program():
    fault = attempt('reach()["_exit"](3)')
    assert fault.outcome is Outcome.TRACE_ERROR
    assert "exit code 3" in fault.message


def test_a_child_that_closes_its_output_is_a_fault_of_the_program():
    fault = attempt('reach()["close"](1)\nfor i in range(1 << 60):\n    pass', Limits(trace_s=2.0))
    assert fault.outcome in (Outcome.TRACE_ERROR, Outcome.TIMEOUT)


def test_one_program_leaves_nothing_to_the_next():
    with Tracer() as tracer:
        with pytest.raises(ProgramFault):
            tracer.trace(f"{ESCAPE}def forward(a):\n    reach()['_exit'](1)\n", ARRAYS, OUTPUTS)
        for _ in range(3):
            assert len(tracer.trace("def forward(a):\n    return a\n", ARRAYS, OUTPUTS).outputs) == 1


def test_a_child_that_died_while_it_waited_is_replaced():
    with Tracer() as tracer:
        tracer._spare._process.kill()
        tracer._spare._process.wait()
        assert len(tracer.trace("def forward(a):\n    return a\n", ARRAYS, OUTPUTS).outputs) == 1


def test_closing_a_tracer_ends_its_child():
    tracer = Tracer()
    process = tracer._spare._process
    tracer.close()
    assert process.poll() is not None
    tracer.close()


def test_a_sandbox_that_cannot_start_is_a_fault_of_ours(monkeypatch):
    monkeypatch.setattr("evaluator.program.tracer_process._core_path", lambda: os.devnull)
    with TracerProcess(cpu_s=1, memory_bytes=1 << 29) as child, pytest.raises(RuntimeError, match="did not start"):
        child.ask({}, 1.0)


def test_only_the_childs_own_outcomes_pass():
    assert set(trace_module._RUNGS) == {
        Outcome.TRACE_ERROR,
        Outcome.REFUSED,
        Outcome.OUT_OF_MEMORY,
        Outcome.LAUNCH_ERROR,
    }
