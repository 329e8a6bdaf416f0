"""Each layer of the confinement holds alone: with the others off, it stops what it is there to stop.

What cannot be done here even without any layer (no user namespaces, no io_uring) shows nothing and is left out.
"""

import json
import pathlib
import subprocess
import sys

import pytest

from evaluator import _core

PROFILES = ["tracer", "program", "nvrtc", "compiler", "gpu"]
LIMITS = {"cpu_s": 1, "memory_bytes": 2 << 30, "file_bytes": 1 << 20, "open_files": 32, "processes": 0}
NO_LIMIT_OF_ADDRESSES = {"file_bytes": 1 << 20, "open_files": 32, "processes": 0}  # CUDA reserves terabytes


@pytest.fixture(scope="module")
def attempts():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(pathlib.Path(__file__).parent))
        import expectations

    assert set(PROFILES) == expectations.ALL
    return expectations.ATTEMPTS


def endings(profile, layers, names):
    """How each of the named attempts ends in a process of `profile` with these layers alone."""
    request = {
        "profile": profile,
        "layers": layers,
        "attempts": names,
        "readable": ["/"] if profile == "gpu" else [],
        "writable": ["/dev/null"],
        "limits": NO_LIMIT_OF_ADDRESSES if profile == "gpu" else LIMITS,
    }
    if profile in ("compiler", "nvrtc"):
        request["readable"] = ["/usr/include"]
    script = str(pathlib.Path(__file__).parent / "escape.py")
    run = subprocess.run(
        [sys.executable, script, json.dumps(request)], capture_output=True, text=True, timeout=120, check=False
    )
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


@pytest.fixture(scope="module")
def possible(attempts):
    """The attempts that succeed here where no layer is in force."""
    results = endings("tracer", [], list(attempts))
    return {name for name, ending in results.items() if ending == "escaped"}


def test_most_attempts_succeed_without_any_layer_so_that_the_tests_below_show_something(attempts, possible):
    for name in ("read_file", "create_file", "fork", "execute", "execute_memory_file", "connect_tcp", "map_code"):
        assert name in possible
    assert {name for name, each in attempts.items() if each.rlimits} <= possible
    assert len(possible) >= len(attempts) // 2


@pytest.mark.parametrize("layer", ["seccomp", "landlock", "rlimits"])
@pytest.mark.parametrize("profile", PROFILES)
def test_a_layer_alone_stops_what_it_must(attempts, possible, profile, layer):
    must = [name for name, each in attempts.items() if profile in getattr(each, layer) and name in possible]
    if layer == "landlock":
        must = [name for name in must if attempts[name].landlock_abi <= _core.landlock_abi()]
        if not _core.landlock_abi():
            pytest.skip("this kernel has no landlock")
    escaped = [name for name, ending in endings(profile, [layer], must).items() if ending == "escaped"]
    assert escaped == []
    assert len(must) >= 3
