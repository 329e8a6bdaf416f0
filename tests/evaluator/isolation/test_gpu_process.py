"""The process that has the GPU, without a GPU: what it can and cannot do once its workbench stands.

What a real driver makes of it is for `test_gpu_device.py`, on a machine that has one.
"""

import os
import pathlib
import socket

import pytest

from evaluator import _core
from evaluator.devices.cuda import confinement
from evaluator.judge.child import Child
from evaluator.records import Limits

MUST_WORK = {
    "read elsewhere",
    "load a library",
    "map code",
    "start a thread",
    "use a temporary file",
    "keep a kernel",
    "open a device",
}
BY_SECCOMP = {
    "run a program",
    "run a shell",
    "fork",
    "connect",
    "open a local socket",
    "change a mode",
    "signal the parent",
}
BY_LANDLOCK = {"run a program", "connect", "write elsewhere", "overwrite", "remove", "make a folder"}


@pytest.fixture
def tried(monkeypatch, tmp_path, capfd):
    """tried(layers): what the process was refused, and what it printed."""
    monkeypatch.syspath_prepend(str(pathlib.Path(__file__).parent))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("CUPY_CACHE_DIR", str(tmp_path / "cupy"))
    monkeypatch.setenv("CUDA_CACHE_PATH", str(tmp_path / "driver"))
    import scripted_gpu_child

    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_text("as it was")

    def run(layers):
        child = Child(scripted_gpu_child.main)
        with socket.create_server(("127.0.0.1", 0)) as server:
            child.pipe.send((Limits(gpu_confinement=layers), 0))
            assert child.pipe.recv() == ("ready", 90)
            child.pipe.send(("outputs", str(outside), server.getsockname()[1]))
            answer, endings = child.pipe.recv()
        child.end(patience_s=5.0)
        assert answer == "outputs"
        return {name for name, ending in endings if ending != "done"}, capfd.readouterr().err

    return run


def test_it_starts_nothing_opens_no_socket_and_writes_to_its_caches_alone(tried, tmp_path):
    refused, printed = tried(("rlimits", "landlock", "seccomp"))
    assert refused >= BY_SECCOMP
    if _core.landlock_abi():
        assert refused == BY_SECCOMP | BY_LANDLOCK
        assert "Warning" not in printed
    assert not refused & MUST_WORK
    assert sorted(path.name for path in (tmp_path / "outside").iterdir()) == ["kept"]
    assert (tmp_path / "outside" / "kept").read_text() == "as it was"


def test_without_seccomp_landlock_still_keeps_it_from_writing_and_running(tried):
    if not _core.landlock_abi():
        pytest.skip("this kernel has no landlock")
    refused, printed = tried(("rlimits", "landlock"))
    assert refused >= BY_LANDLOCK - ({"connect"} if _core.landlock_abi() < 4 else set())
    assert not refused & MUST_WORK
    assert "the process that has the GPU runs without seccomp" in printed


def test_without_landlock_seccomp_still_keeps_it_from_running_and_connecting(tried):
    refused, printed = tried(("rlimits", "seccomp"))
    assert refused == BY_SECCOMP
    assert "the process that has the GPU runs without landlock" in printed


def test_a_cache_that_cannot_be_made_is_done_without(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("CUPY_CACHE_DIR", str(tmp_path / "file" / "cupy"))
    monkeypatch.setenv("CUDA_CACHE_PATH", str(tmp_path / "driver"))
    assert confinement._caches() == [tmp_path / "driver"]


def test_a_kernel_that_refuses_says_which_field_leaves_a_layer_out(monkeypatch, tmp_path):
    def refuse(*_, **__):
        raise RuntimeError("landlock refused a rule")

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("CUPY_CACHE_DIR", str(tmp_path / "cupy"))
    monkeypatch.setenv("CUDA_CACHE_PATH", str(tmp_path / "driver"))
    monkeypatch.setenv("TMPDIR", os.environ.get("TMPDIR", ""))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setattr(confinement._core, "confine", refuse)
    with pytest.raises(RuntimeError, match=r"a rule; Limits\.gpu_confinement can leave a layer out"):
        confinement.confine(("landlock",))
