"""The first wall: a program's Python may use only what the surface allows, and so may the CUDA text in its strings.

Everything here works on the parsed tree; nothing of the program runs.
"""

import ast
import re
import warnings
from collections.abc import Iterator, Set

from evaluator.program import cuda_screen, surface
from evaluator.records import Limits, Outcome, ProgramFault, Rung

MAX_NODES = 20_000  # honest programs have less than 3,000
MAX_INTEGER = 2**64
_SURROGATE = re.compile("[\ud800-\udfff]")

_STATEMENTS: tuple[type[ast.AST], ...] = (
    ast.FunctionDef,
    ast.Return,
    ast.Assign,
    ast.AugAssign,
    ast.AnnAssign,
    ast.For,
    ast.If,
    ast.Expr,
    ast.Pass,
    ast.Break,
    ast.Continue,
    ast.Assert,
    ast.Import,
    ast.ImportFrom,
    ast.alias,
    ast.Module,
    ast.arguments,
    ast.arg,
)
_EXPRESSIONS: tuple[type[ast.AST], ...] = (
    ast.Attribute,
    ast.BinOp,
    ast.BoolOp,
    ast.Call,
    ast.Compare,
    ast.Constant,
    ast.IfExp,
    ast.List,
    ast.ListComp,
    ast.Name,
    ast.Slice,
    ast.Starred,
    ast.Subscript,
    ast.Tuple,
    ast.UnaryOp,
    ast.comprehension,
    ast.keyword,
    ast.Load,
    ast.Store,
    ast.boolop,
    ast.cmpop,
    ast.unaryop,
    ast.operator,
)
_CURES = {
    ast.While: "use `for` over a range",
    ast.Try: "a program may not hide its own errors",
    ast.Lambda: "use a function at the top level",
    ast.GeneratorExp: "use a list comprehension",
    ast.DictComp: "use lists",
    ast.Dict: "use lists or tuples",
    ast.SetComp: "use lists",
    ast.Set: "use a tuple",
    ast.JoinedStr: "join strings with + and str()",
    ast.NamedExpr: "assign on a line of its own",
    ast.ClassDef: "use functions",
    ast.Raise: "use assert",
}
_ROOTS = {"cp": surface.CUPY, "math": surface.MATH, "lib": surface.LIB}
_OBJECT_ATTRIBUTES = surface.ARRAY | surface.MODULE | surface.KERNEL | surface.DTYPE


def screen(text: str, limits: Limits | None = None) -> None:
    """Raises ProgramFault `refused`, with the line and the reason, unless every construct is inside the surface."""
    tree = parse(text, (Limits() if limits is None else limits).source_bytes)
    top = {id(statement) for statement in tree.body}
    for count, node in enumerate(ast.walk(tree)):
        if count >= MAX_NODES:
            raise refuse(f"more than {MAX_NODES} syntax nodes; write a shorter program")
        _check(node, top)
    if not any(isinstance(statement, ast.FunctionDef) and statement.name == "forward" for statement in tree.body):
        raise refuse("no function `forward` at the top level")
    for source, line in _cuda_strings(tree):
        _check_cuda(source, line, text)


def parse(text: str, max_bytes: int) -> ast.Module:
    """The syntax tree. Raises ProgramFault `refused` for whatever Python cannot parse, without crashing on bombs."""
    if not text.strip():
        raise refuse("the program is empty")
    if stray := _SURROGATE.search(text):
        raise refuse(_not_text(stray[0]), text.count("\n", 0, stray.start()) + 1)
    if len(text) > max_bytes or len(text.encode("utf-8", "surrogatepass")) > max_bytes:
        raise refuse(f"the program has {len(text)} characters; at most {max_bytes} bytes")
    if "\0" in text:
        raise refuse("the program contains a NUL character", text.count("\n", 0, text.index("\0")) + 1)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # SyntaxWarning about escapes in strings
            return ast.parse(text)
    except SyntaxError as error:
        raise refuse(f"not Python: {error.msg}", error.lineno) from None
    except (RecursionError, MemoryError):
        raise refuse("the program is nested too deeply to parse") from None
    except ValueError as error:
        raise refuse(f"not Python text: {type(error).__name__}") from None


def _not_text(surrogate: str) -> str:
    """Of half a surrogate pair, which is also how a reader of files hands on a byte that is no UTF-8."""
    code = ord(surrogate)
    if 0xDC80 <= code <= 0xDCFF:
        return f"the byte 0x{code - 0xDC00:02x} is not UTF-8; save the program as UTF-8"
    return f"U+{code:04X} is half of a surrogate pair and no character"


def refuse(reason: str, line: int | None = None) -> ProgramFault:
    return ProgramFault(Outcome.REFUSED, Rung.SCREEN, reason, line)


def _check(node: ast.AST, top: Set[int]) -> None:
    line = getattr(node, "lineno", None)
    if not isinstance(node, _STATEMENTS + _EXPRESSIONS):
        cure = f"; {_CURES[type(node)]}" if type(node) in _CURES else ""
        raise refuse(f"`{type(node).__name__}` is not in the surface{cure}", line)
    for name in _names(node):
        if (name.startswith("_") and name != "_") or "__" in name:
            raise refuse(f"the name {name} is not allowed: names may not begin with _ or contain __", line)
    match node:
        case ast.Attribute():
            _check_attribute(node)
        case ast.FunctionDef():
            _check_function(node, top)
        case ast.Import() | ast.ImportFrom():
            if id(node) not in top or ast.unparse(node) not in surface.IMPORTS:
                allowed = ", ".join(f"`{statement}`" for statement in surface.IMPORTS)
                raise refuse(
                    f"`{ast.unparse(node)[:80]}` is not in the surface; allowed at the top are {allowed}", line
                )
        case ast.Constant():
            _check_constant(node)
        case ast.keyword(arg=None):
            raise refuse("**arguments are not in the surface; name each one", line)
        case ast.arguments(kwarg=ast.arg()):
            raise refuse(
                "a **parameter is not in the surface; name each one", node.kwarg.lineno if node.kwarg else None
            )
        case ast.BinOp(op=ast.Pow()) | ast.AugAssign(op=ast.Pow()):
            raise refuse("the power operator ** is not in the surface; multiply, shift, or use math.pow", line)
        case ast.BinOp(left=ast.Constant(value=str()), op=ast.Mod()):
            raise refuse("string formatting is not in the surface; join strings with + and str()", line)
        case ast.comprehension(is_async=1):
            raise refuse("async is not in the surface", node.target.lineno)
        case _:
            pass


def _names(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Name():
            yield node.id
        case ast.FunctionDef():
            yield node.name
        case ast.arg():
            yield node.arg
        case ast.keyword() if node.arg is not None:
            yield node.arg
        case ast.Attribute():
            yield node.attr
        case ast.alias():
            yield from (name for name in (node.name, node.asname) if name is not None)
        case _:
            pass


def _check_attribute(node: ast.Attribute) -> None:
    if isinstance(node.value, ast.Name) and node.value.id in _ROOTS:
        root = node.value.id
        allowed, seen = _ROOTS[root], f"{root}.{node.attr}"
    else:
        allowed, seen = _OBJECT_ATTRIBUTES, f"the attribute .{node.attr}"
    if node.attr not in allowed:
        raise refuse(f"{seen} is not in the surface; allowed are {', '.join(sorted(allowed))}", node.lineno)
    if not isinstance(node.ctx, ast.Load) and (node.attr not in surface.KERNEL):
        settable = ", ".join(sorted(surface.KERNEL))
        raise refuse(f"assigning to {seen} is not in the surface; only {settable} can be set", node.lineno)


def _check_function(node: ast.FunctionDef, top: Set[int]) -> None:
    if id(node) not in top:
        raise refuse(f"function {node.name} is nested; define it at the top level", node.lineno)
    if node.decorator_list:
        raise refuse("decorators are not in the surface", node.decorator_list[0].lineno)


def _check_constant(node: ast.Constant) -> None:
    value = node.value
    if value is Ellipsis or value is None or isinstance(value, bool | float | str):
        return
    if not isinstance(value, int):
        raise refuse(f"a {type(value).__name__} constant is not in the surface", node.lineno)
    if value > MAX_INTEGER:
        raise refuse("an integer of more than 64 bits", node.lineno)


def _cuda_strings(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """String constants that look like CUDA source, with their lines; docstrings do not count."""
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str) or id(node) in docstrings:
            continue
        if "__global__" in node.value or "#include" in node.value:
            yield node.value, node.lineno


def _check_cuda(source: str, line: int, text: str) -> None:
    """Checks one string. A piece of a joined source is checked again, whole, after the trace."""
    try:
        cuda_screen.check(source, program=text)
    except ProgramFault as found:
        raise refuse(found.fault.message, found.fault.line or line) from None
