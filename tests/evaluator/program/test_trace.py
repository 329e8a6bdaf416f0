"""Tracing gives the plan that the program means, or a fault that says what is wrong and where."""

import json

import numpy as np
import pytest

from evaluator.program.plan import to_json
from evaluator.program.trace import Tracer
from evaluator.records import Limits, Outcome, ProgramFault, Rung
from evaluator.tasks.task import Array

SOURCE = 'extern "C" __global__ void k(const float* x, float* y, int n) {}'
HEAD = f"import math\nimport cupy as cp\nk = cp.RawKernel(r'''{SOURCE}''', 'k')\n"


def view(buffer, offset, *shape):
    return {"buffer": buffer, "offset": offset, "shape": list(shape)}


def test_the_program_of_the_documentation(tracer):
    text = """import cupy as cp

source = r'''
extern "C" __global__ void scale_rows(const float* a, const float* b, float* out, int columns) {
}
'''
scale_rows = cp.RawKernel(source, "scale_rows")

def forward(a, b):
    n, m = b.shape
    out = cp.empty((n, m), cp.float32)
    scale_rows(((m + 255) // 256, n), (256,), (a, b, out, m))
    return out
"""
    plan = tracer.trace(text, [Array("a", (64,)), Array("b", (64, 300))], [((64, 300), "float32")])
    assert json.loads(to_json(plan)) == {
        "schema": 1,
        "buffers": [
            {"name": "a", "role": "input", "dtype": "float32", "shape": [64]},
            {"name": "b", "role": "input", "dtype": "float32", "shape": [64, 300]},
            {"name": "t2", "role": "temporary", "dtype": "float32", "shape": [64, 300]},
        ],
        "modules": [{"source": text.split("'''")[1], "options": [], "kernels": ["scale_rows"]}],
        "steps": [
            {
                "op": "launch",
                "module": 0,
                "kernel": "scale_rows",
                "grid": [2, 64, 1],
                "block": [256, 1, 1],
                "shared_bytes": 0,
                "args": [
                    {"view": view(0, 0, 64)},
                    {"view": view(1, 0, 64, 300)},
                    {"view": view(2, 0, 64, 300)},
                    {"int": 300},
                ],
                "line": 12,
            }
        ],
        "outputs": [view(2, 0, 64, 300)],
    }


ARGUMENTS = {
    "array": ("a", {"view": view(0, 0, 6, 4)}),
    "view": ("a[1]", {"view": view(0, 4, 4)}),
    "int": ("-3", {"int": -3}),
    "size": ("a.size", {"int": 24}),
    "bool goes as int64, as in CuPy": ("True", {"int": 1}),
    "float": ("0.5", {"float": "0.5"}),
    "infinity": ("math.inf", {"float": "inf"}),
    "float32": ("cp.float32(1 / 3)", {"scalar": "float32", "value": "0.3333333333333333"}),
    "float32 of an int": ("cp.float32(3)", {"scalar": "float32", "value": "3.0"}),
    "int32 of a float": ("cp.int32(3.9)", {"scalar": "int32", "value": "3"}),
    "uint64": ("cp.uint64(18446744073709551615)", {"scalar": "uint64", "value": "18446744073709551615"}),
    "bool_": ("cp.bool_(5)", {"scalar": "bool", "value": "1"}),
    "scalar of a scalar": ("cp.float64(cp.int8(3))", {"scalar": "float64", "value": "3.0"}),
}


@pytest.mark.parametrize(("expression", "argument"), ARGUMENTS.values(), ids=ARGUMENTS.keys())
def test_an_argument(plan_of, expression, argument):
    plan = plan_of(f"k((1,), (32,), ({expression},))\nreturn a")
    assert plan["steps"][0]["args"] == [argument]


_BYTES = 'extern "C" __global__ void k(unsigned char* out, {type} value) {{ *({type}*)out = value; }}'


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("expression", "type", "dtype", "value"),
    [
        ("-3", "int", "int32", -3),
        ("-3", "long long", "int64", -3),
        ("True", "int", "int32", 1),
        ("0.5", "double", "float64", 0.5),
        ("cp.float32(0.1)", "float", "float32", np.float32(0.1)),
        ("cp.int32(3.9)", "int", "int32", 3),
        ("cp.uint64(18446744073709551615)", "unsigned long long", "uint64", 2**64 - 1),
        ("cp.bool_(5)", "bool", "bool", True),
    ],
)
def test_arguments_under_real_cupy(expression, type, dtype, value):
    cp = pytest.importorskip("cupy")
    out = cp.zeros(8, cp.uint8)
    cp.RawKernel(_BYTES.format(type=type), "k")((0,), (1,), (out, eval(expression, {"cp": cp})))
    assert cp.asnumpy(out).view(dtype)[0] == value


WRONG_LAUNCHES = {
    "None": ("k((1,), (32,), (None,))", Outcome.TRACE_ERROR, "null pointer"),
    "text": ("k((1,), (32,), ('a',))", Outcome.TRACE_ERROR, "is a str"),
    "int of 64 bits": ("k((1,), (32,), (9223372036854775808,))", Outcome.TRACE_ERROR, "cp.uint64"),
    "scalar out of range": ("k((1,), (32,), (cp.uint8(-1),))", Outcome.TRACE_ERROR, "out of bounds for uint8"),
    "nan to int": ("k((1,), (32,), (cp.int32(cp.nan),))", Outcome.TRACE_ERROR, "cannot convert nan"),
    "arguments are no tuple": ("k((1,), (32,), a)", Outcome.TRACE_ERROR, "args is a Array"),
    "arguments missing": ("k((1,), (32,))", Outcome.TRACE_ERROR, "args"),
    "grid is an int": ("k(1, (32,), ())", Outcome.TRACE_ERROR, "grid is a int, expected a tuple"),
    "grid is a list": ("k([1], (32,), ())", Outcome.TRACE_ERROR, "grid is a list"),
    "grid of floats": ("k((a.size / 4,), (32,), ())", Outcome.TRACE_ERROR, "use // for whole quotients"),
    "grid of four": ("k((1, 1, 1, 1), (32,), ())", Outcome.TRACE_ERROR, "4 entries"),
    "grid from values": ("k((a[0],), (32,), ())", Outcome.TRACE_ERROR, "needs the array's values"),
    "grid too high": ("k((1, 65536), (32,), ())", Outcome.LAUNCH_ERROR, "65535"),
    "negative grid": ("k((-1,), (32,), ())", Outcome.LAUNCH_ERROR, "entry 0 is -1"),
    "block too wide": ("k((1,), (1025,), ())", Outcome.LAUNCH_ERROR, "1 to 1024"),
    "block too large": ("k((1,), (64, 32), ())", Outcome.LAUNCH_ERROR, "2048 threads"),
    "too much shared memory": ("k((1,), (32,), (), shared_mem=49153)", Outcome.LAUNCH_ERROR, "max_dynamic_shared"),
    "stream": ("k((1,), (32,), (), stream=1)", Outcome.REFUSED, "stream= is not"),
}


@pytest.mark.parametrize(("call", "outcome", "reason"), WRONG_LAUNCHES.values(), ids=WRONG_LAUNCHES.keys())
def test_a_wrong_launch_is_a_fault_with_its_line(fault_of, call, outcome, reason):
    found = fault_of(f"n = 1\n{call}\nreturn a")
    assert (found.outcome, found.line) == (outcome, 6)
    assert found.rung is (Rung.LAUNCH if outcome is Outcome.LAUNCH_ERROR else Rung.TRACE)
    assert reason in found.message


def test_extents_are_padded_and_none_is_zero_as_in_cupy(plan_of):
    plan = plan_of("k((0, 3), (8, 8, 2), [])\nreturn a")
    assert (plan["steps"][0]["grid"], plan["steps"][0]["block"]) == ([1, 3, 1], [8, 8, 2])


def test_more_shared_memory_after_asking_for_it(plan_of):
    head = HEAD + "k.max_dynamic_shared_size_bytes = 100 * 1024\n"
    plan = plan_of("k((1,), (32,), (), shared_mem=100 * 1024)\nreturn a", head=head)
    assert plan["steps"][0]["shared_bytes"] == 102_400


def test_more_shared_memory_than_any_device_has(fault_of):
    found = fault_of("return a", head=HEAD + "k.max_dynamic_shared_size_bytes = 300 * 1024\n")
    assert (found.outcome, found.line) == (Outcome.LAUNCH_ERROR, 4)


def test_a_template_is_reached_by_its_name_expression(plan_of):
    head = """import cupy as cp
source = r'''template <typename T, int N> __global__ void tile(T* x) {}
extern "C" __global__ void plain(float* x) {}'''
module = cp.RawModule(code=source, options=("-std=c++17",), name_expressions=["tile<float, 4>", "tile<int, 8>"])
tile = module.get_function("tile<float, 4>")
plain = module.get_function("plain")
"""
    plan = plan_of("tile((1,), (32,), (a,))\nplain((1,), (32,), (a,))\nreturn a", head=head)
    assert len(plan["modules"]) == 1
    assert plan["modules"][0]["kernels"] == ["tile<float, 4>", "plain"]
    assert plan["modules"][0]["options"] == ["-std=c++17"]


@pytest.mark.parametrize(
    ("definition", "outcome", "reason"),
    [
        ("cp.RawKernel('__global__ void k() {}', 'k')", Outcome.REFUSED, "has a C++ name"),
        ("cp.RawModule(code='__global__ void k() {}').get_function('k')", Outcome.REFUSED, "has a C++ name"),
        ("cp.RawModule(code='').get_function('k<1>')", Outcome.TRACE_ERROR, "name_expressions"),
        ("cp.RawModule('')", Outcome.TRACE_ERROR, "positional"),
        ("cp.RawKernel('', 'k', ['-w'])", Outcome.TRACE_ERROR, "options is a list, expected a tuple"),
        ("cp.RawKernel('', 'k', ('-I/etc',))", Outcome.REFUSED, "'-I/etc' is not in the surface"),
        ("cp.RawKernel('', 'k', ('-arch=sm_90',))", Outcome.REFUSED, "-arch=sm_90"),
        ("cp.RawKernel('', 'k', backend='nvcc')", Outcome.REFUSED, "only 'nvrtc'"),
        ("cp.RawKernel('', 'k', enable_cooperative_groups=True)", Outcome.REFUSED, "enable_cooperative_groups="),
        ("cp.RawModule(path='/a.cubin').get_function('k')", Outcome.REFUSED, "path="),
        ("cp.RawKernel(1, 'k')", Outcome.TRACE_ERROR, "code is a int"),
        ("cp.RawKernel('#inc' + 'lude </etc/passwd>', 'k')", Outcome.REFUSED, "/etc/passwd"),
    ],
)
def test_a_wrong_kernel_definition(fault_of, definition, outcome, reason):
    found = fault_of("k((1,), (1,), ())\nreturn a", head=f"import cupy as cp\nk = {definition}\n")
    assert found.outcome is outcome
    assert reason in found.message


def test_a_cxx_kernel_listed_in_name_expressions_is_found(plan_of):
    head = """import cupy as cp
k = cp.RawModule(code='__global__ void k() {}', name_expressions=['k']).get_function('k')
"""
    assert plan_of("k((1,), (1,), ())\nreturn a", head=head)["modules"][0]["kernels"] == ["k"]


def test_kernels_of_one_source_share_a_module(plan_of):
    head = HEAD + f"k2 = cp.RawKernel(r'''{SOURCE}''', 'k')\n"
    plan = plan_of("k((1,), (1,), ())\nk2((1,), (1,), ())\nreturn a", head=head)
    assert len(plan["modules"]) == 1
    assert [step["line"] for step in plan["steps"]] == [6, 7]


def test_python_of_the_surface(plan_of):
    head = HEAD + "def ceil_div(n, d=4):\n    return -(-n // d)\n\ndef both(n):\n    return n, ceil_div(n)\n"
    body = """q, r = divmod(a.size, 5)
assert (q, r) == (4, 4) and abs(-2) == 2 and min(3, 1) == 1 and max([1, 3]) == 3
assert sum([i * j for i, j in zip((1, 2), (3, 4))]) == 11 and round(2.6) == 3 and bool(1) and int(2.9) == 2
assert [i for i, e in enumerate(a.shape) if e > 4] == [0] and tuple(list((1,))) == (1,) and float(1) == 1.0
assert sorted([2, 1]) == [1, 2] and all([True]) and any([False, True]) and [i for i in reversed((1, 2))] == [2, 1]
assert math.ceil(2.1) == 3 and math.gcd(12, 18) == 6 and math.prod(a.shape) == 24 and math.pi > 3
n, blocks = both(a.size)
for i in range(3):
    if i == 1:
        continue
    k((blocks + i if i else 1,), (32,), (a, "x" + str(n) == "x24"))
return a"""
    plan = plan_of(body, head=head)
    assert [step["grid"][0] for step in plan["steps"]] == [1, 8]
    assert plan["steps"][0]["args"][1] == {"int": 1}


def test_names_outside_the_surface_do_not_exist(fault_of):
    for name in ("open", "print", "getattr", "eval", "type", "id", "isinstance", "input", "object", "super"):
        found = fault_of(f"return {name}")
        assert found.message == f"NameError: name '{name}' is not defined"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("return None", "forward returned a NoneType, expected arrays"),
        ("return ()", "forward returned no arrays"),
        ("return 3", "forward returned a int, expected arrays"),
        ("return a, 3", "forward returned a int, expected arrays"),
        ("return 1 // 0", "ZeroDivisionError: integer division or modulo by zero"),
        ("assert a.size == 3, 'wrong size'\nreturn a", "AssertionError: wrong size"),
        ("assert a.size == 3\nreturn a", "AssertionError"),
        ("return missing", "NameError: name 'missing' is not defined"),
        ("return forward(a)", "the program recurses too deeply"),
    ],
)
def test_an_error_of_the_program_is_named(fault_of, body, message):
    found = fault_of(body)
    assert (found.outcome, found.message) == (Outcome.TRACE_ERROR, message)


WRONG_RESULTS = {
    "shape": ("return a[0]", "forward returned float32[4], expected float32[6, 4]"),
    "dtype": ("return cp.empty((6, 4))", "forward returned float64[6, 4], expected float32[6, 4]"),
    "too many": ("return a, a", "forward returned 2 arrays (float32[6, 4], float32[6, 4]), expected float32[6, 4]"),
    "order": ("return cp.empty((4, 6), cp.float32)", "forward returned float32[4, 6], expected float32[6, 4]"),
}


@pytest.mark.parametrize(("body", "message"), WRONG_RESULTS.values(), ids=WRONG_RESULTS.keys())
def test_a_result_of_the_wrong_shape(fault_of, body, message):
    found = fault_of(body)
    assert (found.outcome, found.rung, found.line) == (Outcome.WRONG_SHAPE, Rung.TRACE, 4)
    assert message in found.message


def test_several_outputs_and_the_wrong_number_of_arguments(tracer):
    arrays = [Array("a", (2,)), Array("b", (3,), "int64")]
    plan = tracer.trace("def forward(a, b):\n    return [b, a]\n", arrays, [((3,), "int64"), ((2,), "float32")])
    assert [output.buffer for output in plan.outputs] == [1, 0]
    with pytest.raises(ProgramFault, match="forward takes 1 arguments, the task gives 2: a, b"):
        tracer.trace("def forward(a):\n    return a\n", arrays, [((2,), "float32")])


def test_parameters_come_by_position_up_to_twelve_and_then_as_a_dict(tracer):
    def parameters(count):
        return [Array(f"layer.{i}.weight", (i + 1,)) for i in range(count)]

    x = [Array("x", (2,))]
    names = ", ".join(f"layer_{i}_weight" for i in range(12))
    text = f"def forward(x, {names}):\n    return layer_11_weight\n"
    plan = tracer.trace(text, x, [((12,), "float32")], parameters(12))
    assert plan.buffers[12].name == "layer_11_weight"
    text = "def forward(x, params):\n    return params['layer.12.weight']\n"
    assert tracer.trace(text, x, [((13,), "float32")], parameters(13)).outputs[0].buffer == 13


def test_each_source_is_compiled_for_itself_so_there_are_few(tracer):
    text = (
        "import cupy as cp\nsource = 'extern \"C\" __global__ void k(float* a) { a[0] = 1; }'\n"
        "def forward(a):\n    for i in range(COUNT):\n"
        "        cp.RawKernel(source + '//' + str(i), 'k')((1,), (1,), (a,))\n"
        "    return a\n"
    )
    arrays, outputs = [Array("a", (4,))], [((4,), "float32")]
    assert len(tracer.trace(text.replace("COUNT", "64"), arrays, outputs).modules) == 64
    with pytest.raises(ProgramFault, match="more than 64 sources are compiled") as caught:
        tracer.trace(text.replace("COUNT", "65"), arrays, outputs)
    assert caught.value.fault.outcome is Outcome.TRACE_ERROR


def test_limits_of_a_plan(tracer):
    arrays, outputs = [Array("a", (4,))], [((4,), "float32")]
    text = "import cupy as cp\ndef forward(a):\n    for i in range(11):\n        a.fill(i)\n    return a\n"
    with Tracer(Limits(plan_steps=10)) as small, pytest.raises(ProgramFault, match="more than 10 steps") as caught:
        small.trace(text, arrays, outputs)
    assert (caught.value.fault.outcome, caught.value.fault.line) == (Outcome.TRACE_ERROR, 4)
    text = "import cupy as cp\ndef forward(a):\n    b = cp.empty((1 << 40,))\n    return a\n"
    with pytest.raises(ProgramFault, match="at most 1073741824") as caught:
        tracer.trace(text, arrays, outputs)
    assert (caught.value.fault.outcome, caught.value.fault.line) == (Outcome.OUT_OF_MEMORY, 3)


def test_a_temporary_does_not_take_an_inputs_name(tracer):
    text = "import cupy as cp\ndef forward(t1):\n    return cp.empty((4,), cp.float32)\n"
    plan = tracer.trace(text, [Array("t1", (4,))], [((4,), "float32")])
    assert len({buffer.name for buffer in plan.buffers}) == 2


def test_the_same_program_gives_the_same_plan(plan_of):
    body = "b = cp.zeros_like(a)\nk((2,), (32,), (a, b, a.size))\nreturn b"
    assert plan_of(body) == plan_of(body)
