"""Faults of the Python part: grid, block, shared memory, arguments, temporaries, launches left out."""

import ast
import itertools
from collections.abc import Iterator
from typing import TypeVar

from evaluator.mutants.program import Edit, Program

_WARP = 32
_Node = TypeVar("_Node", bound=ast.AST)


def grid_one_fewer(p: Program) -> Iterator[Edit]:
    """One block fewer along a dimension of the grid."""
    for call, function in _launches(p):
        for each in _dimensions(call.args[0], function):
            if _value(each) != 1:
                yield p.edit_python(each, f"({p.python(each)}) - 1")


def block_one_warp_fewer(p: Program) -> Iterator[Edit]:
    """One warp fewer in each block: a row of threads where rows are narrower."""
    for call, function in _launches(p):
        for each in _dimensions(call.args[1], function):
            value = _value(each)
            if isinstance(value, int) and value > 1:
                yield p.edit_python(each, str(value - (_WARP if value > _WARP else 1)))


def dynamic_shared_memory_halved(p: Program) -> Iterator[Edit]:
    """A launch asks for half of the dynamic shared memory."""
    for call, _ in _launches(p):
        for keyword in call.keywords:
            if keyword.arg == "shared_mem":
                yield p.edit_python(keyword.value, f"({p.python(keyword.value)}) // 2")


def grid_tail_dropped(p: Program) -> Iterator[Edit]:
    """`(n + 255) // 256` becomes `(n) // 256`: elements that do not fill a block are left out."""
    for node in _in_functions(p, ast.BinOp):
        if isinstance(node.op, ast.FloorDiv) and isinstance(node.left, ast.BinOp) and isinstance(node.left.op, ast.Add):
            most, divisor = _value(node.left.right), _value(node.right)
            if isinstance(most, int) and isinstance(divisor, int) and most == divisor - 1:
                yield p.edit_python(node.left, p.python(node.left.left))


def arguments_swapped(p: Program) -> Iterator[Edit]:
    """Two neighbouring arguments of a kernel trade places: arrays with arrays, numbers with numbers."""
    for call, function in _launches(p):
        values = _elements(call.args[2], function)
        arrays = _array_names(function)
        for one, two in itertools.pairwise(values):
            alike = (p.python(one) in arrays) == (p.python(two) in arrays)
            if alike and p.python(one) != p.python(two):
                start, end = p.place(one)[0], p.place(two)[1]
                between = p.text[p.place(one)[1] : p.place(two)[0]]
                yield Edit(start, end, p.python(two) + between + p.python(one))


def wrong_dimension(p: Program) -> Iterator[Edit]:
    """`x.shape[1]` becomes `x.shape[0]`; `n, k = x.shape` becomes `k, n = x.shape`."""
    for node in _in_functions(p, ast.Subscript):
        index = _value(node.slice)
        if _is_shape(node.value) and isinstance(index, int):
            yield p.edit_python(node.slice, str(index - 1 if index > 0 else index + 1))
    for given in _in_functions(p, ast.Assign):
        target = given.targets[0]
        if isinstance(target, ast.Tuple) and _is_shape(given.value):
            for one, two in itertools.pairwise(target.elts):
                start, end = p.place(one)[0], p.place(two)[1]
                yield Edit(start, end, f"{p.python(two)}, {p.python(one)}")


def launch_dropped(p: Program) -> Iterator[Edit]:
    """A kernel is not launched."""
    launched = {id(call) for call, _ in _launches(p)}
    for node in _in_functions(p, ast.Expr):
        if id(node.value) in launched:
            yield p.edit_python(node, "pass")


def zeros_to_empty(p: Program) -> Iterator[Edit]:
    """`cp.zeros` becomes `cp.empty`."""
    for node in _in_functions(p, ast.Call):
        if p.python(node.func) == "cp.zeros":
            yield p.edit_python(node.func, "cp.empty")


def temporary_in_half(p: Program) -> Iterator[Edit]:
    """A float32 array is made as float16."""
    for node in _in_functions(p, ast.Call):
        if p.python(node.func) in ("cp.zeros", "cp.empty", "cp.full"):
            for each in [*node.args, *(keyword.value for keyword in node.keywords)]:
                if p.python(each) == "cp.float32":
                    yield p.edit_python(each, "cp.float16")


def _launches(p: Program) -> Iterator[tuple[ast.Call, ast.FunctionDef]]:
    """Launches and the functions they stand in: calls of a name with three arguments, the third a tuple."""
    for function in _functions(p):
        for node in ast.walk(function):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and len(node.args) == 3:
                yield node, function


def _functions(p: Program) -> list[ast.FunctionDef]:
    return [node for node in p.tree.body if isinstance(node, ast.FunctionDef)]


def _in_functions(p: Program, kind: type[_Node]) -> Iterator[_Node]:
    for function in _functions(p):
        yield from (node for node in ast.walk(function) if isinstance(node, kind))


def _elements(node: ast.expr, function: ast.FunctionDef) -> list[ast.expr]:
    """Elements of a tuple, or of the tuple that a name was given."""
    if isinstance(node, ast.Name):
        given = [n.value for n in ast.walk(function) if isinstance(n, ast.Assign) and _named(n.targets[0], node.id)]
        node = given[-1] if given else node
    return list(node.elts) if isinstance(node, ast.Tuple) else []


_dimensions = _elements


def _named(target: ast.expr, name: str) -> bool:
    return isinstance(target, ast.Name) and target.id == name


def _array_names(function: ast.FunctionDef) -> set[str]:
    """The function's arguments and what comes from `cp.empty` and its like."""
    names = {argument.arg for argument in function.args.args}
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return names


def _is_shape(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "shape"


def _value(node: ast.expr) -> object:
    return node.value if isinstance(node, ast.Constant) else None
