"""evaluator.lib can be imported by a program under real CuPy, and says what to do instead."""

import pytest

from evaluator import lib
from evaluator.program import surface


def test_the_library_and_the_surface_name_the_same_steps():
    assert {
        name for name in vars(lib) if callable(getattr(lib, name)) and name.islower() and name[0] != "_"
    } == surface.LIB


@pytest.mark.parametrize("name", sorted(surface.LIB))
def test_a_step_says_what_to_do_instead(name):
    with pytest.raises(NotImplementedError, match=f"lib.{name} is not available in this version; write a kernel"):
        getattr(lib, name)(1, a=2)
