"""The plan reader believes nothing: every field of a hostile plan is checked, and only ValueError comes out."""

import copy
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluator.program import plan
from evaluator.program.plan_reader import from_json, load_hostile


def view(buffer, offset, *shape):
    return {"buffer": buffer, "offset": offset, "shape": list(shape)}


def record():
    """A plan with every kind of step and argument."""
    return {
        "schema": 1,
        "buffers": [
            {"name": "a", "role": "input", "dtype": "float32", "shape": [64, 32]},
            {"name": "index", "role": "input", "dtype": "int32", "shape": [5]},
            {"name": "t2", "role": "temporary", "dtype": "float32", "shape": [32, 64]},
            {"name": "t3", "role": "temporary", "dtype": "float32", "shape": [64, 64]},
            {"name": "t4", "role": "temporary", "dtype": "bool", "shape": []},
        ],
        "modules": [{"source": "...", "options": ["-std=c++17"], "kernels": ["scale", "tile<float, 4>"]}],
        "steps": [
            {
                "op": "launch",
                "module": 0,
                "kernel": "scale",
                "grid": [1, 64, 1],
                "block": [256, 1, 1],
                "shared_bytes": 0,
                "args": [
                    {"view": view(0, 32, 32)},
                    {"int": -5},
                    {"float": "0.5"},
                    {"float": "-inf"},
                    {"scalar": "float32", "value": "1e-05"},
                    {"scalar": "uint64", "value": "18446744073709551615"},
                ],
                "line": 18,
            },
            {"op": "fill", "view": view(1, 1, 4), "value": "-2147483648", "line": 19},
            {"op": "copy", "from": view(0, 0, 32, 64), "to": view(2, 0, 32, 64), "line": 20},
            {
                "op": "matmul",
                "a": view(0, 0, 64, 32),
                "b": view(2, 0, 32, 64),
                "out": view(3, 0, 64, 64),
                "transpose_a": False,
                "transpose_b": False,
                "line": 21,
            },
            {
                "op": "conv",
                "x": view(0, 0, 2, 4, 8, 8),
                "weight": view(2, 0, 6, 2, 3, 3),
                "out": view(3, 0, 2, 6, 4, 4),
                "stride": [2, 2],
                "padding": [1, 1],
                "dilation": [1, 1],
                "output_padding": [0, 0],
                "groups": 2,
                "transposed": False,
                "line": 22,
            },
            {
                "op": "attention",
                "query": view(0, 0, 2, 8, 4),
                "key": view(0, 64, 2, 6, 4),
                "value": view(0, 112, 2, 6, 5),
                "out": view(3, 0, 2, 8, 5),
                "causal": True,
                "line": 23,
            },
        ],
        "outputs": [view(3, 0, 64, 64), view(4, 0)],
    }


def read(fields):
    return from_json(json.dumps(fields))


def test_a_plan_survives_the_round_trip():
    parsed = read(record())
    assert json.loads(plan.to_json(parsed)) == record()
    assert from_json(plan.to_json(parsed)) == parsed


def test_a_plan_knows_its_sizes():
    parsed = read(record())
    assert [buffer.name for buffer in parsed.inputs] == ["a", "index"]
    assert parsed.nbytes == 4 * 64 * 32 + 4 * 5 + 4 * 32 * 64 + 4 * 64 * 64 + 1
    assert parsed.dtype(parsed.outputs[1]) == "bool"


FAULTS = {
    "schema from the future": (("schema",), 2, "plan.schema: seen 2"),
    "schema is a bool": (("schema",), True, "plan.schema"),
    "buffers missing": (("buffers",), None, "buffers: seen None"),
    "no outputs": (("outputs",), [], "outputs: seen 0 entries"),
    "unknown dtype": (("buffers", 0, "dtype"), "complex64", "buffers[0].dtype"),
    "unhashable dtype": (("buffers", 0, "dtype"), [], "buffers[0].dtype"),
    "unknown role": (("buffers", 0, "role"), "output", "buffers[0].role"),
    "input after temporary": (("buffers", 0, "role"), "temporary", "inputs come first"),
    "same name twice": (("buffers", 1, "name"), "a", "same name"),
    "hostile name": (("buffers", 0, "name"), "../a", "buffers[0].name"),
    "negative dimension": (("buffers", 0, "shape", 0), -1, "buffers[0].shape[0]"),
    "dimension as text": (("buffers", 0, "shape", 0), "64", "buffers[0].shape[0]"),
    "too many elements": (("buffers", 0, "shape"), [2**40, 2], "elements"),
    "too many dimensions": (("buffers", 0, "shape"), [1] * 33, "buffers[0].shape"),
    "lone surrogate in source": (("modules", 0, "source"), "\ud800", "modules[0].source"),
    "NUL in source": (("modules", 0, "source"), "a\0", "modules[0].source"),
    "too much source": (("modules", 0, "source"), "x" * (1 << 20) + "x", "characters of source"),
    "newline in option": (("modules", 0, "options", 0), "-D\nX", "modules[0].options[0]"),
    "option without dash": (("modules", 0, "options", 0), "/etc/passwd", "modules[0].options[0]"),
    "newline in kernel name": (("modules", 0, "kernels", 0), "k\n#include", "modules[0].kernels[0]"),
    "kernel listed twice": (("modules", 0, "kernels", 1), "scale", "listed twice"),
    "unknown step": (("steps", 0, "op"), "exec", "steps[0].op"),
    "step without op": (("steps", 0), {"line": 3}, "steps[0].op"),
    "step is a list": (("steps", 0), [], "steps[0]"),
    "module out of range": (("steps", 0, "module"), 1, "steps[0].module"),
    "kernel of no module": (("steps", 0, "kernel"), "other", "not a kernel of modules[0]"),
    "zero grid": (("steps", 0, "grid", 1), 0, "steps[0].grid[1]"),
    "grid too high": (("steps", 0, "grid", 1), 65_536, "steps[0].grid[1]"),
    "grid of two": (("steps", 0, "grid"), [1, 1], "steps[0].grid"),
    "block too deep": (("steps", 0, "block", 2), 65, "steps[0].block[2]"),
    "block too large": (("steps", 0, "block", 1), 8, "2048 threads"),
    "float grid": (("steps", 0, "grid", 0), "1.0", "steps[0].grid[0]"),
    "too much shared memory": (("steps", 0, "shared_bytes"), 227 * 1024 + 1, "steps[0].shared_bytes"),
    "line zero": (("steps", 0, "line"), 0, "steps[0].line"),
    "view of no buffer": (("steps", 0, "args", 0, "view", "buffer"), 5, "view.buffer"),
    "view with negative buffer": (("steps", 0, "args", 0, "view", "buffer"), -1, "view.buffer"),
    "view past the end": (("steps", 0, "args", 0, "view", "offset"), 64 * 32 - 31, "elements 2017 to 2049"),
    "view before the start": (("steps", 0, "args", 0, "view", "offset"), -1, "view.offset"),
    "int of 65 bits": (("steps", 0, "args", 1, "int"), 2**63, "args[1].int"),
    "float is code": (("steps", 0, "args", 2, "float"), "__import__('os')", "args[2].float"),
    "float with digits for ever": (("steps", 0, "args", 2, "float"), "1" * 400, "args[2].float"),
    "scalar out of range": (("steps", 0, "args", 5, "value"), "18446744073709551616", "args[5].value"),
    "scalar of unknown type": (("steps", 0, "args", 4, "scalar"), "float8", "args[4].scalar"),
    "argument of two kinds": (("steps", 0, "args", 1), {"int": 1, "float": "1.0"}, "seen keys"),
    "fill out of range": (("steps", 1, "value"), "2147483648", "steps[1].value"),
    "float fill of integers": (("steps", 1, "value"), "0.5", "steps[1].value"),
    "copy of other shape": (("steps", 2, "to", "shape"), [64, 32], "one shape and one dtype"),
    "copy onto itself": (("steps", 2, "to", "buffer"), 0, "overlap"),
    "copy of other dtype": (("steps", 2), {"op": "copy", "from": view(0, 0), "to": view(1, 0), "line": 1}, "dtype"),
    "matmul that does not fit": (("steps", 3, "a", "shape"), [32, 64], "do not fit"),
    "matmul of vectors": (("steps", 3, "a", "shape"), [64], "do not fit"),
    "matmul into its operand": (("steps", 3, "out", "buffer"), 0, "elements 0 to 4096"),
    "matmul of integers": (("steps", 3, "a"), view(1, 0, 5, 1), "dtypes"),
    "matmul turned around": (("steps", 3, "transpose_a"), True, "do not fit"),
    "matmul turned by a number": (("steps", 3, "transpose_b"), 1, "expected true or false"),
    "conv of other result": (("steps", 4, "out", "shape"), [2, 6, 4, 3], "expected (2, 6, 4, 4)"),
    "conv of integers": (("steps", 4, "x"), view(1, 0, 1, 1, 5), "expected float32"),
    "conv with other channels": (("steps", 4, "groups"), 3, "do not fit with 3 groups"),
    "conv without groups": (("steps", 4, "groups"), 0, "steps[4].groups"),
    "conv that stands still": (("steps", 4, "stride"), [2, 0], "stride is (2, 0)"),
    "conv with too few lengths": (("steps", 4, "padding"), [1], "padding is (1,)"),
    "conv with lengths for ever": (("steps", 4, "dilation", 0), 1 << 40, "steps[4].dilation[0]"),
    "conv beyond its input": (("steps", 4, "dilation"), [9, 9], "does not fit 8 elements"),
    "conv with output padding": (("steps", 4, "output_padding"), [1, 1], "for transposed convolutions"),
    "conv transposed by a word": (("steps", 4, "transposed"), "no", "expected true or false"),
    "conv into its operand": (("steps", 4, "x", "buffer"), 3, "out overlaps an operand"),
    "attention of other widths": (("steps", 5, "key", "shape"), [2, 8, 3], "attention: shapes"),
    "attention of other result": (("steps", 5, "out", "shape"), [2, 8, 4], "expected (2, 8, 5)"),
    "attention into its operand": (("steps", 5, "query", "buffer"), 3, "out overlaps an operand"),
}


@pytest.mark.parametrize(("path", "value", "message"), FAULTS.values(), ids=FAULTS.keys())
def test_a_wrong_field_is_named(path, value, message):
    fields = record()
    parent = fields
    for key in path[:-1]:
        parent = parent[key]
    parent[path[-1]] = value
    with pytest.raises(ValueError, match=r".") as caught:
        read(fields)
    assert message in str(caught.value)
    assert len(str(caught.value)) < 600


def test_overlapping_matmul_output_is_refused():
    fields = record()
    fields["steps"][3]["b"] = view(3, 0, 32, 64)
    with pytest.raises(ValueError, match="out overlaps an operand"):
        read(fields)


def test_an_extra_key_is_refused_at_every_level():
    for path in ((), ("buffers", 0), ("modules", 0), ("steps", 0), ("steps", 1), ("outputs", 0)):
        fields = record()
        parent = fields
        for key in path:
            parent = parent[key]
        parent["extra"] = 1
        with pytest.raises(ValueError, match="seen keys"):
            read(fields)


@pytest.mark.parametrize(
    "text",
    ["", "null", "[]", "{", "[" * 100_000, '{"schema": 1.0}', '{"schema": NaN}', "1" * 5000, b"\xff\xfe", "\0"],
)
def test_text_that_is_no_plan_is_refused(text):
    with pytest.raises(ValueError, match=r"."):
        from_json(text)


def test_more_steps_than_allowed_are_refused():
    fields = record()
    fields["steps"] = fields["steps"][1:2] * 10
    assert len(from_json(json.dumps(fields), max_steps=10).steps) == 10
    with pytest.raises(ValueError, match="steps: seen 10 entries, expected a list of 0 to 9"):
        from_json(json.dumps(fields), max_steps=9)


def test_oversized_text_is_not_parsed():
    with pytest.raises(ValueError, match="at most"):
        load_hostile(" " * ((64 << 20) + 1))


def test_nan_and_infinity_travel_as_text():
    fields = record()
    fields["steps"] = [{"op": "fill", "view": view(2, 0, 1), "value": value, "line": 1} for value in ("nan", "inf")]
    values = [step.value for step in read(fields).steps]
    assert values[0] != values[0]
    assert values[1] == float("inf")


def paths_of(value, path=()):
    yield path
    if isinstance(value, dict):
        for key in value:
            yield from paths_of(value[key], (*path, key))
    elif isinstance(value, list):
        for i, entry in enumerate(value):
            yield from paths_of(entry, (*path, i))


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)


@settings(max_examples=120, deadline=None)
@given(path=st.sampled_from(list(paths_of(record()))), value=JSON_VALUES)
def test_any_value_anywhere_gives_a_valid_plan_or_a_value_error(path, value):
    fields = copy.deepcopy(record())
    parent = fields
    for key in path[:-1]:
        parent = parent[key]
    if path:
        parent[path[-1]] = value
    else:
        fields = value
    try:
        parsed = read(fields)
    except ValueError:
        return
    assert from_json(plan.to_json(parsed)) == parsed or "nan" in plan.to_json(parsed)


@settings(max_examples=80, deadline=None)
@given(st.binary(max_size=200) | st.text(max_size=200))
def test_any_text_gives_a_value_error(text):
    with pytest.raises(ValueError, match=r"."):
        from_json(text)
