"""A compiler's process that hostile text has taken over: what it may answer, and that the next text is unharmed."""

import json
import time

import pytest

from evaluator.devices.cuda import compilation
from evaluator.devices.cuda.compiler import Compiler
from evaluator.devices.cuda.toolkit import Toolkit
from evaluator.program.plan import Module
from evaluator.records import Limits, Outcome, ProgramFault

# Answers each request with the bytes that its text writes in hexadecimal; "wait" answers nothing, "close" ends output.
SCRIPTED = """
import marshal, os, struct, sys, time
def read(count):
    found = b""
    while len(found) < count:
        chunk = os.read(0, count - len(found))
        if not chunk:
            sys.exit()
        found += chunk
    return found
ready = b'{"missing": [], "version": [13, 5]}'
os.write(1, struct.pack("<I", len(ready)) + ready)
while True:
    text = marshal.loads(read(struct.unpack("<I", read(4))[0]))["source"].split()[0]
    if text == "close":
        os.close(1)
    if text in ("wait", "close"):
        time.sleep(60)
    answer = memoryview(bytes.fromhex(text))
    while answer:
        answer = answer[os.write(1, answer):]
"""
GOOD = {"log": "", "lowered": {}}


def block(content):
    return len(content).to_bytes(4, "little") + content


def answer(reply, cubin=b"cubin"):
    head = reply if isinstance(reply, bytes) else json.dumps(reply).encode()
    return (block(head) + block(cubin)).hex()


def scripted(limits=None, text=SCRIPTED):
    return Compiler(limits or Limits(), Toolkit(nvrtc="/none/libnvrtc.so", headers=()), process_text=text)


@pytest.fixture(autouse=True)
def no_headers(monkeypatch):
    monkeypatch.setattr("evaluator.devices.cuda.compiler.bundled", lambda tools: ())


@pytest.fixture
def compiler():
    with scripted() as compiler:
        yield compiler


def refused(compiler, text, names=()):
    with pytest.raises(ProgramFault) as caught:
        compiler.compile(text, "kernel.cu", [], names)
    return caught.value.fault


@pytest.mark.parametrize(
    "text",
    [
        answer({}),
        answer({**GOOD, "lowered": []}),
        answer({**GOOD, "lowered": {"k": 7}}),
        answer({**GOOD, "log": None}),
        answer({"rejected": ["no text"]}),
        answer({"error": 5}),
        answer([]),
        answer(b"[" * 200_000),
        answer(b"\xff\xfe"),
        answer(b"9" * 9_000),
        block(b"{}").hex() + (1 << 31).to_bytes(4, "little").hex(),
        "close",
    ],
    ids=[
        "empty object",
        "names are a list",
        "a name is a number",
        "no log",
        "rejected is a list",
        "error is a number",
        "a list",
        "deeply nested",
        "no UTF-8",
        "a long number",
        "a huge block",
        "its output is closed",
    ],
)
def test_an_answer_that_nvrtc_does_not_give_ends_the_process(compiler, text):
    found = refused(compiler, text)
    assert found.outcome is Outcome.COMPILE_ERROR
    assert found.message.startswith("NVRTC was lost while it compiled kernel.cu")
    assert compiler._process is None
    assert compiler.compile(answer(GOOD), "kernel.cu", [], []).cubin == b"cubin"


def test_an_answer_must_name_every_kernel(compiler):
    assert "names no 'k'" in refused(compiler, answer({**GOOD, "lowered": {"other": "x"}}), ["k"]).message


def test_a_rejection_reads_the_whole_answer(compiler):
    compiler.start()
    process = compiler._process.pid
    assert refused(compiler, answer({"rejected": "k.cu(1): error: x"})).message == "k.cu(1): error: x"
    assert compiler.compile(answer(GOOD), "kernel.cu", [], []).cubin == b"cubin"
    assert compiler._process.pid == process


def test_an_answer_in_advance_never_reaches_the_next_text(compiler):
    forged = answer(GOOD, b"forged")
    compiler.compile(answer(GOOD) + forged, "kernel.cu", [], [])
    assert compiler.compile(answer(GOOD, b"its own"), "kernel.cu", [], []).cubin == b"its own"


@pytest.mark.parametrize("text", ["wait", block(b"{").hex()[:-2] + " cut short", "wait " + 1_000_000 * "long "])
def test_an_answer_that_does_not_come_is_a_timeout(text):
    with scripted(Limits(compile_s=0.1)) as compiler:
        compiler.start()
        assert refused(compiler, text).outcome is Outcome.TIMEOUT
        assert compiler._process is None


def test_a_process_that_does_not_read_is_a_timeout():
    deaf = SCRIPTED.replace("while True:", "time.sleep(60)\nwhile True:")
    with scripted(Limits(compile_s=0.1), deaf) as compiler:
        started = time.monotonic()
        assert refused(compiler, 1_000_000 * "long ").outcome is Outcome.TIMEOUT
        assert time.monotonic() - started < 50


def test_an_interrupt_leaves_no_half_answer(compiler, monkeypatch):
    compiler.start()

    def interrupted(deadline):
        raise KeyboardInterrupt

    monkeypatch.setattr(compiler, "_reply", interrupted)
    with pytest.raises(KeyboardInterrupt):
        compiler.compile(answer(GOOD), "kernel.cu", [], [])
    assert compiler._process is None


@pytest.mark.parametrize("ready", ["{}", '{"missing": 1, "version": [13, 5]}', '{"missing": [], "version": ["a", 5]}'])
def test_a_process_that_is_never_ready_is_the_evaluators_error(ready):
    script = SCRIPTED.replace('{"missing": [], "version": [13, 5]}', ready)
    with scripted(text=script) as compiler:
        found = refused(compiler, answer(GOOD))
        assert found.outcome is Outcome.EVALUATOR_ERROR
        assert compiler._process is None


ELF = b"\x7fELF\x02\x01"


@pytest.mark.parametrize(
    "cubin",
    [b"", b"garbage", ELF, ELF + bytes(100), ELF + b"\xff" * 1000, ELF + bytes(34) + (64).to_bytes(8, "little") * 400],
)
def test_a_cubin_that_cannot_be_read_ends_the_process(compiler, cubin, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    module = Module(answer({**GOOD, "lowered": {"k": "k"}}, cubin) + "\n", (), ("k",))
    with pytest.raises(ProgramFault, match=r"NVRTC was lost while it compiled kernel\.cu \(its cubin") as caught:
        compilation.compile_module(compiler, module, 90)
    assert caught.value.fault.outcome is Outcome.COMPILE_ERROR
    assert compiler._process is None
    assert not list(tmp_path.rglob("*.so"))
