import importlib.util
import pathlib

import pytest


@pytest.fixture(scope="session")
def made_up():
    """The module of made-up records."""
    spec = importlib.util.spec_from_file_location("made_up", pathlib.Path(__file__).with_name("made_up.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
