"""The layers that confine the processes that programs pass through, and the warning where one is not in force.

Each layer holds by itself what `docs/isolation.md` says of it, so a system that lacks one still has the others.
"""

import warnings
from collections.abc import Iterable

from evaluator import _core
from evaluator.records import LAYERS


def missing(layers: Iterable[str] = LAYERS) -> tuple[str, ...]:
    """The layers that a process which is given `layers` does not have here: left out, or unknown to this kernel.

    Raises ValueError for a name that is no layer's.
    """
    asked = checked(layers)
    offered = {"rlimits": True, "landlock": _core.landlock_abi() > 0, "seccomp": _core.seccomp_filters()}
    return tuple(layer for layer in LAYERS if layer not in asked or not offered[layer])


def checked(layers: Iterable[str]) -> tuple[str, ...]:
    """`layers` as a tuple. Raises ValueError for a name that is no layer's."""
    names = (layers,) if isinstance(layers, str) else tuple(layers)
    if unknown := [name for name in names if name not in LAYERS]:
        raise ValueError(f"seen the layers {', '.join(map(repr, unknown))}; expected some of {', '.join(LAYERS)}")
    return names


def warn(process: str, lacking: Iterable[str]) -> None:
    """Says once, on standard error, that a process is less confined than it should be. No layer lacking: nothing."""
    if names := ", ".join(lacking):
        message = (
            f"{process} runs without {names}: this kernel has no such thing, or the limits leave it out; "
            "judge no program that you do not trust"
        )
        warnings.warn(message, RuntimeWarning, stacklevel=3)
