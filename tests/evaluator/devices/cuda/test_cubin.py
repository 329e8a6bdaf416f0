"""Cubins that are cut or altered: read whole or refused, never another error."""

import random

import pytest

from evaluator.devices.cuda import cubin

SOURCE = '__device__ int calls = 3; extern "C" __global__ void k(int* y, float s) { calls++; *y = s; }'


@pytest.fixture(scope="module")
def binary(compiler):
    return compiler.compile(SOURCE, "kernel.cu", ["-arch=sm_90"], ["k"]).cubin


def read(data):
    try:
        found = [cubin.contents(data, variable) for variable in cubin.variables(data) if variable.nbytes < 1 << 20]
        return found, cubin.parameter_sizes(data)
    except ValueError:
        return None


def test_a_whole_cubin_is_read(binary):
    (variable,) = cubin.variables(binary)
    assert (variable.name, variable.nbytes, variable.writable) == ("calls", 4, True)
    assert cubin.contents(binary, variable) == (3).to_bytes(4, "little")
    assert cubin.parameter_sizes(binary) == {"k": (8, 4)}


def test_a_cut_cubin_is_refused_or_read_the_same(binary):
    whole = read(binary)
    found = [read(binary[:length]) for length in range(0, len(binary), 7)]
    assert None in found
    assert all(one in (None, whole) for one in found)


def test_altered_bytes_raise_nothing_but_value_errors(binary):
    draw = random.Random(0)
    results = []
    for _ in range(3000):
        data = bytearray(binary)
        for _ in range(draw.randint(1, 8)):
            data[draw.randrange(len(data))] = draw.choice((0, 1, 127, 128, 255))
        results.append(read(bytes(data)))
    assert None in results
    assert any(result is not None for result in results)


def test_parameters_told_twice_are_refused(binary):
    entry = bytes.fromhex("04170c00") + bytes(4) + (1).to_bytes(2, "little")  # the entry of parameter 1
    assert binary.count(entry) == 1
    twice = binary.replace(entry, entry[:-2] + bytes(2))
    with pytest.raises(ValueError, match="two entries for parameter 0"):
        cubin.parameter_sizes(twice)
