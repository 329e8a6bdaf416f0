"""Every bug that the emulator can see ends in its own outcome, with a message that says where."""

import numpy as np
import pytest

from evaluator.records import Limits, Outcome


def kernel(body: str, before: str = "") -> str:
    return (
        f"{before}\n__global__ void k(const float* x, float* y, int n) {{\n"
        f"  int i = blockIdx.x * blockDim.x + threadIdx.x;\n{body}\n}}\n"
    )


@pytest.fixture
def fault(fault_of, out):
    def run(body, *, n=256, before="", **launch):
        x = np.arange(n, dtype=np.float32)
        return fault_of(kernel(body, before), [x, out((n,)), n], **launch)

    return run


@pytest.mark.parametrize("access", ["y[i] = x[i + 1];", "y[i + 1] = x[i];"], ids=["read", "write"])
def test_access_past_the_end_names_buffer_element_and_thread(fault, access):
    outcome, message = fault(access)
    assert outcome is Outcome.OUT_OF_BOUNDS
    buffer = "x0" if "x[i + 1]" in access else "y0"
    assert f"buffer '{buffer}' (element 256), 0 bytes past the end" in message
    assert "block (0,0,0), thread (255,0,0)" in message
    assert f"its line 4: {access}" in message


def test_access_before_the_start_is_seen_with_the_guard_on_the_left(fault):
    outcome, message = fault("y[i] = x[i - 1];", guard="left")
    assert outcome is Outcome.OUT_OF_BOUNDS
    assert "read at byte -4 of buffer 'x0' (element -1), 4 bytes before the start" in message
    assert "thread (0,0,0)" in message


@pytest.mark.parametrize("guard", ["left", "right"])
def test_write_into_the_alignment_slack_is_found_by_its_canary(fault, guard):
    outcome, message = fault("if (i < n) y[i] = x[i]; if (i == n) y[i] = 0.0f;", n=255, guard=guard)
    assert outcome is Outcome.OUT_OF_BOUNDS
    assert "write 0 bytes past the end of buffer 'y0', seen after the run" in message


def test_write_before_the_start_is_found_by_its_canary(fault):
    outcome, message = fault("y[i] = x[i]; if (i == 0) y[-1] = 0.0f;")
    assert outcome is Outcome.OUT_OF_BOUNDS
    assert "before the start of buffer 'y0'" in message


def test_huge_index_meets_no_other_buffer(fault):
    outcome, message = fault("y[i] = x[i + 300000000];")
    assert outcome is Outcome.OUT_OF_BOUNDS
    assert "buffer 'x0' (element 300000000)" in message


def test_index_outside_a_static_shared_array(fault):
    outcome, message = fault(
        "__shared__ float s[256]; s[threadIdx.x + 1] = x[i]; __syncthreads(); y[i] = s[threadIdx.x];"
    )
    assert outcome is Outcome.OUT_OF_BOUNDS
    assert "index 256 is outside the array of type 'float[256]'" in message
    assert "its line 4" in message


def test_negative_index_into_a_local_array(fault):
    outcome, message = fault("float a[4] = {x[i], 1, 2, 3}; y[i] = a[(int)x[i] - 1];")
    assert outcome is Outcome.OUT_OF_BOUNDS
    assert "index -1 is outside the array of type 'float[4]'" in message


def test_dynamic_shared_memory_ends_at_a_guard_page(fault):
    outcome, message = fault(
        "extern __shared__ float s[]; s[threadIdx.x + 1] = x[i]; __syncthreads(); y[i] = s[threadIdx.x];", shared=1024
    )
    assert outcome is Outcome.OUT_OF_BOUNDS
    assert "write at byte 1024 of dynamic shared memory, which has 1024 bytes" in message


def test_dynamic_shared_memory_begins_at_a_guard_page_on_the_left(fault):
    outcome, message = fault(
        "extern __shared__ float s[]; s[(int)threadIdx.x - 1] = x[i]; __syncthreads(); y[i] = x[i];",
        shared=1024,
        guard="left",
    )
    assert outcome is Outcome.OUT_OF_BOUNDS
    assert "byte -4 of dynamic shared memory" in message


def test_write_into_the_slack_of_dynamic_shared_memory(fault):
    outcome, message = fault("extern __shared__ float s[]; if (i == 0) s[255] = 1; y[i] = x[i];", shared=1020)
    assert outcome is Outcome.OUT_OF_BOUNDS
    assert "past the end of dynamic shared memory" in message


def test_dynamic_shared_memory_that_the_launch_does_not_give(fault):
    outcome, message = fault("extern __shared__ float s[]; s[threadIdx.x] = x[i]; y[i] = s[threadIdx.x];")
    assert outcome is Outcome.OUT_OF_BOUNDS
    assert "dynamic shared memory, which has 0 bytes" in message


def test_misaligned_vector_access(fault):
    outcome, message = fault("if (i < 60) { float4 v = *(const float4*)(x + i); y[i] = v.x + v.w; }")
    assert outcome is Outcome.MISALIGNED
    assert "float4" in message
    assert "no multiple of 16" in message
    assert "thread (1,0,0)" in message


def test_misaligned_access_through_an_intrinsic_names_the_kernels_line(fault):
    outcome, message = fault("if (i < 60) {\n float4 v = __ldg((const float4*)(x + i));\n y[i] = v.x; }")
    assert outcome is Outcome.MISALIGNED
    assert "its line 5" in message


def test_uninitialised_shared_memory_reads_as_nan(run_kernel, out):
    body = (
        "__shared__ float s[256]; if (threadIdx.x < 255) s[threadIdx.x] = x[i]; __syncthreads(); y[i] = s[threadIdx.x];"
    )
    (y,) = run_kernel(kernel(body), [np.arange(256, dtype=np.float32), out((256,)), 256]).outputs
    assert np.isnan(y[255])
    assert not np.isnan(y[:255]).any()


def test_shared_memory_is_poisoned_again_before_every_block(run_kernel, out):
    body = "__shared__ float s; if (blockIdx.x == 0) s = 1.0f; __syncthreads(); y[i] = s;"
    (y,) = run_kernel(kernel(body), [np.zeros(64, np.float32), out((64,)), 64], grid=(2,), block=(32,)).outputs
    assert (y[:32] == 1).all()
    assert np.isnan(y[32:]).all()


@pytest.mark.parametrize("order", ["forward", "reverse", "random"])
def test_missing_barrier_changes_the_result_in_every_order(run_kernel, out, order):
    body = "__shared__ float s[256]; s[threadIdx.x] = x[i]; y[i] = s[(threadIdx.x + 128) & 255];"
    x = np.arange(256, dtype=np.float32)
    (y,) = run_kernel(kernel(body), [x, out((256,)), 256], order=order, seed=3).outputs
    assert np.isnan(y).any()


@pytest.mark.parametrize("order", ["forward", "reverse", "random"])
def test_missing_barrier_in_a_tree_reduction_changes_the_sum(run_kernel, out, order):
    body = """__shared__ float s[256]; s[threadIdx.x] = x[i]; __syncthreads();
    for (int o = 128; o; o >>= 1) if (threadIdx.x < o) s[threadIdx.x] += s[threadIdx.x + o];
    if (!threadIdx.x) y[0] = s[0];"""
    x = np.arange(256, dtype=np.float32)
    results = [run_kernel(kernel(body), [x, out((1,)), 256], order=order, seed=seed).outputs[0][0] for seed in range(3)]
    assert any(result != x.sum() for result in results)


def test_barrier_that_ended_threads_do_not_meet(fault):
    outcome, message = fault("if (i >= 100) return;\n__syncthreads();\ny[i] = x[i];")
    assert outcome is Outcome.BAD_BARRIER
    assert "100 threads wait at __syncthreads of line 5, 156 ended without meeting it" in message


def test_barrier_in_a_divergent_branch(fault):
    outcome, message = fault("if (threadIdx.x < 100) __syncthreads(); y[i] = 1;")
    assert outcome is Outcome.BAD_BARRIER
    assert "156 ended without meeting it" in message


def test_different_barriers_in_the_two_branches(fault):
    outcome, message = fault("if (threadIdx.x < 100) {\n __syncthreads();\n} else {\n __syncthreads();\n}\n y[i] = 1;")
    assert outcome is Outcome.BAD_BARRIER
    assert "line 7" in message
    assert "line 5" in message


def test_two_barriers_on_one_line_are_told_apart(fault):
    outcome, _ = fault("if (threadIdx.x < 100) { __syncthreads(); } else { __syncthreads(); } y[i] = 1;")
    assert outcome is Outcome.BAD_BARRIER


def test_full_mask_shuffle_in_a_divergent_branch_is_a_deadlock(fault):
    outcome, message = fault("if (threadIdx.x < 16)\n y[i] = __shfl_down_sync(~0u, x[i], 1);\n __syncthreads();")
    assert outcome is Outcome.BAD_BARRIER
    assert "deadlock" in message
    assert "240 threads wait at the barrier of line 6" in message
    assert "16 threads wait at the warp operation of line 5" in message


def test_lanes_that_meet_at_different_warp_operations(fault):
    outcome, message = fault(
        "float v = x[i];\nif (i & 1)\n v = __shfl_sync(~0u, v, 0);\nelse\n v = __shfl_sync(~0u, v, 1);\ny[i] = v;",
        block=(32,),
    )
    assert outcome is Outcome.BAD_BARRIER
    assert "with the same mask" in message


def test_lane_outside_its_own_mask(fault):
    outcome, message = fault("y[i] = __shfl_sync(0xffffu, x[i], 0);")
    assert outcome is Outcome.BAD_BARRIER
    assert "lane 16 calls a warp operation whose mask 0x0000ffff leaves it out" in message


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("((float*)0)[i] = 1;", "write through a null pointer"),
        ("y[i] = ((const float*)nullptr)[i];", "read through a null pointer"),
        ("y[i] = *(const float*)0x123456789abc0000ull;", "pointer to nowhere"),
    ],
)
def test_pointer_that_points_to_nothing(fault, body, words):
    outcome, message = fault(body)
    assert outcome is Outcome.OUT_OF_BOUNDS
    assert words in message


def test_write_to_constant_memory(fault):
    outcome, message = fault(
        "((float*)table)[i] = x[i]; y[i] = table[i];", before="__constant__ const float table[256] = {1, 2, 3};"
    )
    assert outcome is Outcome.OUT_OF_BOUNDS
    assert "constant memory" in message


@pytest.mark.parametrize(
    "body",
    [
        "volatile float a[100000]; for (int j = 0; j < 100000; j++) a[j] = j; y[i] = a[i];",
        "y[i] = deep(i + 1, x);",
    ],
    ids=["large array", "recursion"],
)
def test_stack_overflow(fault, body):
    before = "__device__ __noinline__ float deep(int i, const float* x) { volatile float a[64]; a[i & 63] = x[0]; "
    before += "return i ? deep(i + 1, x) + a[i & 63] : 0; }"
    outcome, message = fault(body, before=before)
    assert outcome is Outcome.CRASHED
    assert "stack overflow: a thread's local arrays and calls exceed 256 kB" in message


def test_integer_division_by_zero(fault):
    outcome, message = fault("y[i] = n / (int)x[0];")
    assert outcome is Outcome.CRASHED
    assert "integer division by zero" in message
    assert "its line 4" in message


def test_trap_and_assertion(fault):
    assert fault("if (i == 3) __trap(); y[i] = 1;")[0] is Outcome.CRASHED
    outcome, message = fault("assert(x[i] < 100.0f); y[i] = 1;")
    assert outcome is Outcome.CRASHED
    assert "assertion failed: x[i] < 100.0f" in message
    assert "thread (100,0,0)" in message


@pytest.mark.parametrize("condition", ["*flag == 0", "atomicAdd(flag, 0) == 0"], ids=["volatile", "atomic"])
def test_spin_wait_that_never_ends_is_cut(fault_of, out, condition):
    source = f"__global__ void k(volatile int* f, int* y) {{ int* flag = (int*)f; while ({condition}); y[0] = 1; }}"
    source = source.replace("*flag", "*f") if "atomic" not in condition else source
    outcome, message = fault_of(source, [np.zeros(1, np.int32), out((1,), "int32")], limits=Limits(kernel_s=0.5))
    assert outcome is Outcome.TIMEOUT
    assert "still running after 0.5 s" in message


def test_out_of_memory_in_a_kernel_does_not_hang(fault_of, out):
    source = """__global__ void k(float* y) {
      for (;;) { char* p = (char*)malloc(1 << 26); if (!p) __trap(); p[0] = 1; y[0] = 1;
      } }"""
    outcome, message = fault_of(source, [out((1,))], block=(1,))
    assert outcome is Outcome.CRASHED
    assert "__trap()" in message
