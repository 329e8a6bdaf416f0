"""Runs, replays, times, and what is said about what a program did to its memory."""

import dataclasses
import os
import pickle
import signal

import numpy as np
import pytest

from evaluator.devices import cpu, poison
from evaluator.program.plan import Buffer, Copy, Fill, Launch, Matmul, Module, Plan, View
from evaluator.records import Limits, Outcome, ProgramFault, Rung

DOUBLE = "__global__ void k(const float* x, float* y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; BODY }"
LIMITS = Limits()


def source(body: str) -> str:
    return DOUBLE.replace("BODY", body)


@pytest.fixture
def session_of(plan_of):
    opened = []

    def open_session(text, arguments, **launch):
        threads = launch.pop("threads", 1)
        plan, inputs = plan_of(text, arguments, **launch)
        opened.append(cpu.Session(cpu.compile(plan, LIMITS), LIMITS, threads=threads))
        return opened[-1], inputs

    yield open_session
    for session in opened:
        session.close()


def test_replays_use_new_contents_at_the_same_addresses(session_of, out):
    text = source("if (i < n) y[i] = 2 * x[i];")
    session, (x,) = session_of(text, [np.arange(1000, dtype=np.float32), out((1000,)), 1000], grid=(4,))
    report = session.run([x])
    assert np.array_equal(report.outputs[0], 2 * x)
    assert report.peak_bytes == 8000
    assert report.cpu_us > 0
    session.refill([x + 1])
    assert session.time(3) > 0
    assert np.array_equal(session.outputs()[0], 2 * x + 2)
    assert np.array_equal(report.outputs[0], 2 * x)  # a report keeps copies


def test_an_input_of_no_dimension_is_one_number(session_of, out):
    text = "__global__ void k(const float* s, float* y) { y[threadIdx.x] = 2.0f * *s; }"
    session, (s,) = session_of(text, [np.full((), 3.0, np.float32), out((32,))], block=(32,))
    assert np.array_equal(session.run([s]).outputs[0], np.full(32, 6.0))
    session.refill([s + np.float32(1)])
    assert session.time(2) > 0
    assert np.array_equal(session.outputs()[0], np.full(32, 8.0))


@pytest.mark.parametrize("forget", [True, False])
def test_what_a_timed_replay_leaves_beside_a_buffer_is_a_fault_at_once(session_of, out, forget):
    text = source("if (x[0] > 500.0f) ((volatile float*)y)[-8] = x[0]; if (i == 0) y[i] = x[i];")
    session, (x,) = session_of(text, [np.zeros(3, np.float32), out((1,)), 3], grid=(1,), block=(1,))
    session.run([x])
    assert session.time(1, forget=forget) > 0
    session.refill([x + 1000])
    with pytest.raises(ProgramFault) as caught:
        session.time(1, forget=forget)
    assert (caught.value.fault.outcome, caught.value.fault.rung) == (Outcome.OUT_OF_BOUNDS, Rung.TIMING)


REMEMBERING = {
    "the output": "float* kept = y + 8; float was = kept[0] == 7.0f; kept[0] = 7.0f;",
    "the stack": "volatile float room[9000]; float was = room[9] == 7; for (int j = 0; j < 9000; j++) room[j] = 7;",
    "a shallow stack": "volatile float room[9]; float was = room[4] == 7; for (int j = 0; j < 9; j++) room[j] = 7;",
    "freed memory": """float* kept = (float*)malloc(4000); float was = kept[500] == 7.0f; kept[500] = 7.0f;
      *(volatile float*)&kept[500]; __threadfence(); free(kept);""",
    "a global": "float was = kept_in_global == 7.0f; kept_in_global = 7.0f;",
    "memory before the shared array": """extern __shared__ float room[]; volatile float* kept = room;
      float was = n == 9 && kept[-99] == 7.0f; if (n == 9) kept[-99] = 7.0f;""",
}


@pytest.mark.parametrize("where", REMEMBERING)
def test_a_timed_replay_finds_nothing_that_an_earlier_one_left(where, session_of, out):
    body = f"{REMEMBERING[where]} for (int j = 0; j < n; j++) y[j] = j ? 7.0f : x[0] + was;"
    text = "__device__ float kept_in_global;\n" + source(body)
    session, (x,) = session_of(text, [np.ones(1, np.float32), out((9,)), 9], block=(1,), shared=64)
    session.run([x])
    for _ in range(4):
        session.time(2)
        assert session._current_outputs()[0][0] == 1


def test_a_runner_that_something_else_killed_is_no_fault_of_the_program(session_of, out):
    session, (x,) = session_of(source("if (i < n) y[i] = x[i];"), [np.zeros(4, np.float32), out((4,)), 4], block=(4,))
    session.run([x])
    os.kill(session._runner.pid, signal.SIGKILL)
    with pytest.raises(ProgramFault) as caught:
        session.time(1)
    assert caught.value.fault.outcome is Outcome.EVALUATOR_ERROR


def test_inputs_that_timed_replays_changed_are_a_fault(session_of, out):
    text = source("if (i < n) { y[i] = x[i]; const_cast<float*>(x)[i] += 1; }")
    session, (x,) = session_of(text, [np.zeros(4, np.float32), out((4,)), 4], block=(4,))
    session.run([x])
    session.refill([x])
    session.time(1)
    with pytest.raises(ProgramFault) as caught:
        session.outputs()
    assert caught.value.fault.outcome is Outcome.MODIFIED_INPUT


def test_addresses_differ_between_sessions_and_not_within_one(session_of, out):
    text = "__global__ void k(unsigned long long* y) { y[0] = (unsigned long long)y; }"
    seen = []
    for _ in range(3):
        session, _ = session_of(text, [out((1,), "uint64")], block=(1,))
        first = int(session.run([]).outputs[0][0])
        session.time(1)
        assert int(session.outputs()[0][0]) == first
        seen.append(first)
    assert len(set(seen)) > 1


@pytest.mark.parametrize("dtype", ["float32", "float16", "float64", "int32", "uint8", "bool"])
def test_elements_that_nobody_wrote_are_counted(run_kernel, out, dtype):
    ctype = {
        "float32": "float",
        "float16": "unsigned short",
        "float64": "double",
        "int32": "int",
        "uint8": "unsigned char",
    }
    text = (
        f"__global__ void k({ctype.get(dtype, 'bool')}* y) {{ if (threadIdx.x % 4) y[threadIdx.x] = threadIdx.x & 1; }}"
    )
    assert run_kernel(text, [out((256,), dtype)]).unwritten == (64,)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16"])
def test_every_integer_value_may_be_an_output(outputs_of, out, dtype):
    ctype = {"int8": "signed char", "uint8": "unsigned char", "int16": "short"}[dtype]
    text = f"__global__ void k({ctype}* y) {{ int i = blockIdx.x * blockDim.x + threadIdx.x; y[i] = i; }}"
    size = 256 if dtype != "int16" else 65536
    (y,) = outputs_of(text, [out((size,), dtype)], grid=(size // 256,))
    assert np.array_equal(y, np.arange(size).astype(dtype))


def test_nan_outputs_count_as_written(outputs_of, out):
    (y,) = outputs_of(source("y[i] = NAN;"), [np.zeros(256, np.float32), out((256,)), 256])
    assert np.isnan(y).all()


def test_sum_onto_an_uninitialised_output_is_nan_and_not_luck(run_kernel, out):
    report = run_kernel(source("y[i] += x[i];"), [np.ones(256, np.float32), out((256,)), 256])
    assert np.isnan(report.outputs[0]).all()


def test_changed_inputs_are_named(run_kernel, out):
    text = """__global__ void k(float* x, const float* z, float* y) { y[threadIdx.x] = x[threadIdx.x];
      if (!threadIdx.x) x[7] = 0; }"""
    x = np.ones(64, np.float32)
    report = run_kernel(text, [x, x, out((64,))], block=(64,))
    assert report.modified == ("x0",)


def test_state_that_survives_a_run_is_told_and_the_next_run_starts_afresh(session_of, out):
    text = "__device__ int calls; __global__ void k(int* y) { y[0] = calls; calls = calls + 1; }"
    session, _ = session_of(text, [out((1,), "int32")], block=(1,))
    for _ in range(2):
        report = session.run([])
        assert report.state_changed
        assert report.outputs[0][0] == 0


def test_output_may_be_a_view_of_an_input_or_of_part_of_a_buffer(plan_of, out):
    plan, (x,) = plan_of(source("y[i] = x[i];"), [np.arange(256, dtype=np.float32), out((256,)), 256])
    plan = dataclasses.replace(plan, outputs=(View(0, 0, (16, 16)), View(1, 64, (2, 8)), View(1, 5, ())))
    with cpu.Session(cpu.compile(plan, LIMITS), LIMITS) as session:
        report = session.run([x])
        session.time(2)
    assert [o.shape for o in report.outputs] == [(16, 16), (2, 8), ()]
    assert np.array_equal(report.outputs[0].ravel(), x)
    assert report.outputs[1].ravel().tolist() == list(range(64, 80))
    assert report.outputs[2] == 5
    assert report.unwritten == (0, 0, 0)


def test_fill_copy_and_launch_steps_in_order():
    buffers = (
        Buffer("x", "input", "float32", (8,)),
        Buffer("t0", "temporary", "float32", (8,)),
        Buffer("t1", "temporary", "int64", (3,)),
        Buffer("t2", "temporary", "bool", (2,)),
        Buffer("t3", "temporary", "bfloat16", (2,)),
        Buffer("t4", "temporary", "float32", (0,)),
    )
    whole = [View(i, 0, b.shape) for i, b in enumerate(buffers)]
    text = "__global__ void k(float* y) { y[threadIdx.x] += 1; }"
    steps = (
        Fill(whole[1], 2.5, 1),
        Copy(View(0, 4, (2,)), View(1, 1, (2,)), 2),
        Launch(0, "k", (1, 1, 1), (8, 1, 1), 0, (whole[1],), 3),
        Fill(View(1, 7, (1,)), float("-inf"), 4),
        Fill(whole[2], -(2**40), 5),
        Fill(whole[3], 1, 6),
        Fill(whole[4], 1.5, 7),
        Fill(whole[5], 1.0, 8),
    )
    plan = Plan(buffers, (Module(text, (), ("k",)),), steps, tuple(whole[1:]))
    with cpu.Session(cpu.compile(plan, LIMITS), LIMITS) as session:
        report = session.run([np.arange(8, dtype=np.float32)])
    assert report.outputs[0].tolist() == [3.5, 5.0, 6.0, 3.5, 3.5, 3.5, 3.5, float("-inf")]
    assert report.outputs[1].tolist() == [-(2**40)] * 3
    assert report.outputs[2].tolist() == [True, True]
    assert report.outputs[3].astype(np.float32).tolist() == [1.5, 1.5]
    assert report.outputs[4].shape == (0,)
    assert report.unwritten == (0,) * 5


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((5, 7), (7, 3)),
        ((1, 1), (1, 1)),
        ((97, 33), (33, 65)),
        ((3, 10, 6), (3, 6, 20)),
        ((2, 3, 4, 5), (5, 17)),
        ((6, 1000), (4, 1000, 9)),
        ((4, 0), (0, 5)),
        ((0, 4), (4, 5)),
    ],
)
def test_matrix_product_step(dtype, a, b):
    shape = (*np.broadcast_shapes(a[:-2], b[:-2]), a[-2], b[-1])
    buffers = (Buffer("a", "input", dtype, a), Buffer("b", "input", dtype, b), Buffer("t0", "temporary", dtype, shape))
    views = [View(i, 0, buffer.shape) for i, buffer in enumerate(buffers)]
    plan = Plan(buffers, (), (Matmul(*views, transpose_a=False, transpose_b=False, line=1),), (views[2],))
    generator = np.random.default_rng(0)
    numpy_dtype = poison.numpy_dtype(dtype)
    x, y = generator.normal(size=a).astype(numpy_dtype), generator.normal(size=b).astype(numpy_dtype)
    with cpu.Session(cpu.compile(plan, LIMITS), LIMITS) as session:
        report = session.run([x, y])
    exact = x.astype(np.float64) @ y.astype(np.float64)
    tolerance = {"float32": 2e-5, "float64": 1e-12, "float16": 2e-3, "bfloat16": 1e-2}[dtype]
    np.testing.assert_allclose(report.outputs[0].astype(np.float64), exact, rtol=tolerance, atol=tolerance * 30)
    assert report.unwritten == (0,)


def test_plan_without_steps_or_modules():
    buffer = Buffer("x", "input", "float32", (4,))
    plan = Plan((buffer,), (), (), (View(0, 0, (4,)),))
    x = np.arange(4, dtype=np.float32)
    with cpu.Session(cpu.compile(plan, LIMITS), LIMITS) as session:
        assert np.array_equal(session.run([x]).outputs[0], x)


def test_wrong_inputs_are_the_callers_error(session_of, out):
    session, _ = session_of(source("y[i] = x[i];"), [np.zeros(4, np.float32), out((4,)), 4], block=(4,))
    with pytest.raises(ValueError, match=r"input 'x0': expected float32 \(4,\), got float64 \(4,\)"):
        session.run([np.zeros(4)])
    with pytest.raises(ValueError, match="the plan has 1 inputs, got 2"):
        session.run([np.zeros(4, np.float32)] * 2)
    with pytest.raises(RuntimeError, match="run the plan on some inputs"):
        session.time(1)


def test_session_after_a_fault_is_over(session_of, out):
    session, inputs = session_of(source("y[i + 1000] = 0;"), [np.zeros(4, np.float32), out((4,)), 4], block=(4,))
    with pytest.raises(ProgramFault):
        session.run(inputs)
    with pytest.raises(RuntimeError, match="this session is over"):
        session.run(inputs)


def test_fault_names_the_step_of_the_program(session_of, out):
    session, inputs = session_of(source("y[i + 1000] = 0;"), [np.zeros(4, np.float32), out((4,)), 4], block=(4,))
    with pytest.raises(ProgramFault) as caught:
        session.run(inputs)
    assert caught.value.fault.line == 7
    assert caught.value.fault.rung == "memory_safety"


def test_compiled_plan_can_be_sent_to_another_process(plan_of, out):
    plan, (x,) = plan_of(source("y[i] = x[i];"), [np.ones(4, np.float32), out((4,)), 4], block=(4,))
    compiled = pickle.loads(pickle.dumps(cpu.compile(plan, LIMITS)))
    with cpu.Session(compiled, LIMITS) as session:
        assert session.run([x]).outputs[0].tolist() == [1, 1, 1, 1]


def test_slow_replay_is_cut(plan_of, out):
    text = "__global__ void k(float* y) { y[0] = 1; for (volatile int i = 0; i < 2000000000; i++); }"
    plan, _ = plan_of(text, [out((1,))], block=(1,))
    limits = Limits(kernel_s=0.3)
    with cpu.Session(cpu.compile(plan, limits), limits) as session, pytest.raises(ProgramFault) as caught:
        session.run([])
    assert caught.value.fault.outcome is Outcome.TIMEOUT


def test_random_orders_follow_their_seed(run_kernel, out):
    text = """__device__ int next; __global__ void k(int* y) {
      y[blockIdx.x * blockDim.x + threadIdx.x] = atomicAdd(&next, 1); }"""

    def sequence(order, seed):
        return (
            run_kernel(text, [out((60,), "int32")], grid=(6,), block=(10,), order=order, seed=seed).outputs[0].tolist()
        )

    assert sequence("forward", 0) == list(range(60))
    assert sequence("reverse", 0) == list(range(60))[::-1]
    assert sequence("random", 1) == sequence("random", 1)
    assert sequence("random", 1) != sequence("random", 2)
    assert sorted(sequence("random", 3)) == list(range(60))


def test_large_grid_in_three_dimensions_and_many_threads(run_kernel, out):
    text = """__device__ unsigned long long total; __device__ int ended;
    __global__ void k(unsigned long long* y) {
      if (threadIdx.x) return;
      atomicAdd(&total, 1ull + blockIdx.z * 1000000ull); __threadfence();
      if (atomicAdd(&ended, 1) == gridDim.x * gridDim.y * gridDim.z - 1) y[0] = total; }"""
    report = run_kernel(text, [out((1,), "uint64")], grid=(50, 30, 2), block=(2,), threads=2, order="random")
    assert report.outputs[0][0] == 3000 + 1500 * 1000000


def test_nothing_kept_in_the_devices_heap_is_found_by_a_later_replay(plan_of, out):
    source = """extern "C" __global__ void k(int* y) {
      char* first = (char*)malloc(1000); char* second = (char*)malloc(1000); free(first);
      int* kept = (int*)(first + 1008); y[0] = *kept == 4711; y[1] = second != nullptr; *kept = 4711; }"""
    plan, arrays = plan_of(source, [out((2,), "int32")], block=(1,))
    with cpu.Session(cpu.compile(plan, LIMITS), LIMITS) as session:
        for _ in range(2):
            assert session.run(arrays).outputs[0].tolist() == [0, 1]
        session.time(3)
        assert session.outputs()[0].tolist() == [0, 1]


def test_new_blocks_of_the_heap_hold_no_zeros_where_a_run_is_judged(outputs_of, out):
    body = "float* block = (float*)malloc(16); y[0] = block[0]; y[1] = block[3]; free(block);"
    assert np.isnan(outputs_of(source(body), [np.zeros(1, np.float32), out((2,)), 2], block=(1,))[0]).all()


def test_what_a_process_does_after_its_report_is_counted(session_of, out, monkeypatch):
    session, (x,) = session_of(source("if (i < n) y[i] = x[i];"), [np.ones(10, np.float32), out((10,)), 10])
    session.run([x])
    clock_s = [0.0]
    look = session._canaries.disturbed

    def works_on():
        clock_s[0] += 1.0  # while the evaluator looks at the canaries
        return look()

    monkeypatch.setattr(session._runner, "cpu_s", lambda: clock_s[0])
    monkeypatch.setattr(session._canaries, "disturbed", works_on)
    assert session.time(3) == 1e6


def test_the_devices_heap_ends(outputs_of, out):
    source = """extern "C" __global__ void k(int* y) { y[0] = malloc(1 << 27) == nullptr; int blocks = 0;
      while (malloc(1 << 22) != nullptr) blocks++; y[1] = blocks; }"""
    (y,) = outputs_of(source, [out((2,), "int32")], block=(1,))
    assert y.tolist() == [1, 16]
