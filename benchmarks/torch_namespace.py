"""The namespace of the references in PyTorch, with which the backends of `evaluator.nn` are compared."""

import types
from collections.abc import Callable, Iterable

import torch

F = torch.nn.functional

# Functions whose PyTorch form has another name, another order of arguments, or other defaults.
SPELLED_OTHERWISE: dict[str, Callable] = {
    "operand": lambda x: x,
    # Outputs are compared with a program's: what is expected of dropout, as the backends have it.
    "dropout": lambda x, p=0.5, training=True: F.dropout(x, p, training=False),
    # PyTorch has no minimum of a tensor and a number, and a tensor made of one is copied to the device each time.
    "minimum": lambda x, y: torch.minimum(x, y) if isinstance(y, torch.Tensor) else torch.clamp(x, max=y),
    "maximum": lambda x, y: torch.maximum(x, y) if isinstance(y, torch.Tensor) else torch.clamp(x, min=y),
    "max": torch.amax,
    "min": torch.amin,
    "chunk": torch.chunk,
    "flip": lambda x, dims: torch.flip(x, (dims,) if isinstance(dims, int) else dims),
    "expand": lambda x, size: x.expand(*size),
    "norm": lambda x, p=2.0, dim=None, keepdim=False: torch.norm(x, p=p, dim=dim, keepdim=keepdim),
    "logsumexp": lambda x, dim=None, keepdim=False: torch.logsumexp(x, dim, keepdim),
    "instance_norm": lambda x, weight=None, bias=None, eps=1e-5: F.instance_norm(x, weight=weight, bias=bias, eps=eps),
    "batch_norm": lambda x, weight=None, bias=None, eps=1e-5: F.batch_norm(
        x, None, None, weight, bias, training=True, eps=eps
    ),
}


def function(name: str) -> Callable:
    """PyTorch's function for `name` of the namespace."""
    if name in SPELLED_OTHERWISE:
        return SPELLED_OTHERWISE[name]
    return getattr(F, name) if hasattr(F, name) and name not in ("sigmoid", "tanh") else getattr(torch, name)


def namespace(names: Iterable[str]) -> types.SimpleNamespace:
    """PyTorch's functions for `names`, to run a reference with."""
    return types.SimpleNamespace(**{name: function(name) for name in names})
