"""What lies beside the buffers differs from run to run, and shows who wrote to it or made use of it."""

import numpy as np
import pytest

from evaluator.devices import cpu
from evaluator.devices.canaries import KINDS, NAN, NEGATIVE, Canaries, _word
from evaluator.devices.layout import SharedBuffers, regions
from evaluator.devices.poison import FRACTION_BITS, numpy_dtype
from evaluator.program.plan import Buffer, Plan, View
from evaluator.records import Limits, Outcome, ProgramFault

DTYPES = [*FRACTION_BITS, "int64", "int32", "uint8", "int8", "bool"]


@pytest.fixture
def beside():
    """Canaries of a plan with odd ends, and the memory that they lie in."""
    buffers = (Buffer("x", "input", "float32", (1001,)), Buffer("y", "temporary", "uint8", (5,)))
    plan = Plan(buffers, (), (), (View(1, 0, (5,)),))
    memory = bytearray(sum(region.region_bytes for region in regions(plan)))
    shared = SharedBuffers(plan, memory)
    return Canaries(plan, shared), shared


@pytest.mark.parametrize("dtype", DTYPES)
def test_words_are_large_of_either_sign_or_no_number(dtype):
    for seed in range(20):
        words = [_word(dtype, kind, seed, 0) for kind in KINDS]
        values = [word.view(numpy_dtype(dtype)).astype(np.float64)[0] for word in words]
        if dtype in FRACTION_BITS:
            assert values[0] > 100
            assert values[NEGATIVE] < -100
            assert np.isnan(values[NAN])
        else:
            assert all(word > 1 for word in words)  # of a bool neither value
            assert dtype in ("uint8", "bool") or values[NEGATIVE] < 0 < values[0]


@pytest.mark.parametrize("guard", ["left", "right"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_byte_beside_a_buffer_is_watched(beside, guard, kind):
    canaries, shared = beside
    assert canaries.disturbed() is None  # none was laid
    canaries.lay(guard, kind, seed=3)
    assert canaries.disturbed() is None
    for number, name in enumerate("xy"):
        before, behind = shared.slack(number, guard)
        assert len(behind)
        for part, place in ((before, "before the start"), (behind, "past the end")):
            for at in {0, len(part) - 1} if len(part) else ():
                part[at] ^= 1
                distance = len(before) - at if part is before else at
                assert f"write {distance} bytes {place} of buffer '{name}'" in canaries.disturbed()
                part[at] ^= 1
    assert canaries.disturbed() is None


def test_buffers_have_words_of_their_own_and_runs_too(beside):
    canaries, shared = beside
    seen = []
    for seed in range(3):
        canaries.lay("right", 0, seed)
        x, y = (bytes(shared.slack(number, "right")[1][:4]) for number in (0, 1))
        assert x != y
        seen.append(x)
    assert len(set(seen)) == 3


READS = {
    "sum": "float s = 0.0f; for (int i = 0; i < 4; ++i) s += x[i]; y[0] = s;",
    "maximum": "float s = x[0]; for (int i = 1; i < 4; ++i) s = fmaxf(s, x[i]); y[0] = s;",
    "minimum": "float s = x[0]; for (int i = 1; i < 4; ++i) s = fminf(s, x[i]); y[0] = s;",
    "product with zero": "y[0] = x[0] + 0.0f * x[3];",
    "condition": "y[0] = x[3] > 0.0f ? 1.0f : 2.0f;",
}


def runs_of(plan_of, out, body, count):
    source = f'extern "C" __global__ void k(const float* x, float* y) {{ {body} }}'
    plan, inputs = plan_of(source, [np.arange(3, dtype=np.float32), out((1,))], block=(1,))
    with cpu.Session(cpu.compile(plan, Limits()), Limits()) as session:
        return [session.run(inputs).outputs[0][0] for _ in range(count)]


@pytest.mark.parametrize("body", READS.values(), ids=READS)
def test_what_is_read_behind_an_odd_end_must_not_change_the_output(plan_of, out, body):
    with pytest.raises(ProgramFault, match="an output changes with the bytes right behind a buffer") as caught:
        runs_of(plan_of, out, body, 2)
    assert caught.value.fault.outcome is Outcome.OUT_OF_BOUNDS


def test_reading_there_without_using_it_is_no_fault(plan_of, out):
    body = "float s = 0.0f; for (int i = 0; i < 4; ++i) { float v = x[i]; s += i < 3 ? v : 0.0f; } y[0] = s;"
    assert runs_of(plan_of, out, body, 4) == [3.0] * 4


def test_outputs_that_differ_for_other_reasons_are_not_blamed_on_it(plan_of, out):
    assert len(runs_of(plan_of, out, "y[0] = (float)(clock64() & 0xffff);", 3)) == 3
