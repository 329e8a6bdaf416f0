"""One compiler for each NVRTC of this environment, and a disk cache of the tests' own."""

from pathlib import Path

import pytest

from evaluator.devices.cuda import toolkit
from evaluator.devices.cuda.compiler import Compiler
from evaluator.records import Limits


def toolkits():
    found = toolkit.installed()
    return [pytest.param(tools, id=Path(tools.nvrtc).name) for tools in found] or [
        pytest.param(None, marks=pytest.mark.skip(reason="no NVRTC: pip install 'cudal1-jax[dev]'"))
    ]


@pytest.fixture(scope="module", params=toolkits())
def compiler(request):
    with Compiler(Limits(), request.param) as compiler:
        yield compiler


@pytest.fixture(autouse=True, scope="module")
def cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield
