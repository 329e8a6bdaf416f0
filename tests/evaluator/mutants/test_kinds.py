"""Each kind of fault: what it makes of a small program, and what it leaves alone."""

import pytest

from evaluator.mutants.derive import KINDS
from evaluator.mutants.program import Program

KERNEL = '''import cupy as cp

source = r"""
extern "C" __global__ void kernel(const float* x, float* out, int n, int m) {
  {body}
}
"""
kernel = cp.RawKernel(source, "kernel")
'''
FORWARD = '''import cupy as cp

source = r"""
extern "C" __global__ void kernel(const float* x, float* out, int n) {}
"""
kernel = cp.RawKernel(source, "kernel")


def forward(x, y):
    {body}
'''


def changed(kind, template, body):
    """What the kind makes of `body`, one text for each of its edits."""
    text = template.replace("{body}", body)
    before, behind = template.split("{body}")
    made = []
    for edit in KINDS[kind](Program(text)):
        mutant = text[: edit.start] + edit.replacement + text[edit.end :]
        assert mutant.startswith(before)
        assert mutant.endswith(behind)
        made.append(mutant[len(before) : len(mutant) - len(behind)])
    return made


CUDA = [
    ("loop_bound_short", "for (int i = 0; i < n; ++i) f(i);", ["for (int i = 0; i < (n) - 1; ++i) f(i);"]),
    ("loop_bound_short", "for (int i = n; i > m && g; --i) f(i);", ["for (int i = n; i > (m) + 1 && g; --i) f(i);"]),
    ("loop_bound_short", "for (int s = 64; s > 0; s /= 2) f(s);", []),  # that is reduction_step_missing
    ("loop_bound_far", "for (int i = 0; i < n; ++i) f(i);", ["for (int i = 0; i <= n; ++i) f(i);"]),
    ("loop_bound_far", "for (int i = n; i >= 0; --i) f(i);", ["for (int i = n; i > 0; --i) f(i);"]),
    ("loop_starts_late", "for (int i = t; i < n; i += 32) f(i);", ["for (int i = t + 32; i < n; i += 32) f(i);"]),
    ("loop_starts_late", "for (int i = 0; i < n; ++i) f(i);", ["for (int i = 0 + 1; i < n; ++i) f(i);"]),
    ("loop_starts_late", "for (int i = n; i > 0; --i) f(i);", []),
    (
        "reduction_step_missing",
        "for (int s = 64; s > 0; s /= 2) f(s);",
        ["for (int s = (64) / 2; s > 0; s /= 2) f(s);"],
    ),
    (
        "reduction_step_missing",
        "for (int d = 1; d < 32; d <<= 1) f(d);",
        ["for (int d = (1) * 2; d < 32; d <<= 1) f(d);"],
    ),
    ("reduction_step_missing", "for (int i = 0; i < n; ++i) f(i);", []),
    ("guard_boundary", "if (i < n) f(i);", ["if (i <= n) f(i);"]),
    ("guard_boundary", "int k = i >= n ? 0 : 1;", ["int k = i > n ? 0 : 1;"]),
    ("guard_boundary", "for (int i = 0; i < n; ++i) f(static_cast<int>(i), g<4>(i));", []),
    ("guard_boundary", "float v = x[i]; if (v < 0.0f) f(i);", []),  # that is tie_breaking
    ("tie_breaking", "float v = x[i]; if (v > best) best = v;", ["float v = x[i]; if (v >= best) best = v;"]),
    ("tie_breaking", "if (p.x < n) f();", []),  # a member called x is not the array
    ("bound_check_dropped", "if (i < n) f(i);", ["if (true) f(i);"]),
    ("bound_check_dropped", "if (i >= n) return;", ["if (false) return;"]),
    ("bound_check_dropped", "if (flag) f(i);", []),
    (
        "barrier_missing",
        "f(); __syncthreads(); g(); __syncwarp();",
        ["f(); ; g(); __syncwarp();", "f(); __syncthreads(); g(); ;"],
    ),
    (
        "statement_dropped",
        "int i = 0; out[i] = x[i]; s += 2.0f; f(i);",
        ["int i = 0; ; s += 2.0f; f(i);", "int i = 0; out[i] = x[i]; ; f(i);"],
    ),
    ("statement_dropped", "if (i < n) out[i] = 1.0f;", ["if (i < n) ;"]),
    ("branch_swapped", "out[i] = v < 0.0f ? 0.0f : v;", ["out[i] = v < 0.0f ? v : 0.0f;"]),
    ("branch_swapped", "f(a ? b : c, d);", ["f(a ? c : b, d);"]),
    ("tail_dropped", "int piece = (n + 127) / 128;", ["int piece = (n) / 128;"]),
    ("tail_dropped", "int piece = (n + 126) / 128;", []),
    ("plus_to_minus", "s += a + b;", ["s -= a + b;", "s += a - b;"]),
    ("plus_to_minus", "f(+a); ++i;", []),
    ("minus_to_plus", "s -= a - b;", ["s += a - b;", "s -= a + b;"]),
    ("minus_to_plus", "f(-a); return -b;", []),
    ("operands_swapped", "float a = x[i] * 2.0f - y[j];", ["float a = y[j] - (x[i] * 2.0f);"]),
    ("operands_swapped", "out[i] = x[i] / s[t] * b;", ["out[i] = s[t] / (x[i]) * b;"]),
    ("operands_swapped", "int k = n - m;", []),
    ("term_dropped", "out[i] = a + b * c - d;", ["out[i] = a  - d;", "out[i] = a + b * c ;"]),
    ("factor_dropped", "out[i] = x[i] * w[i] / 3.0f;", ["out[i] = x[i]  / 3.0f;", "out[i] = x[i] * w[i] ;"]),
    ("factor_dropped", "int k = n * m;", []),
    ("divisor_off_by_one", "float v = x[i] / n;", ["float v = x[i] / (n - 1);"]),
    ("divisor_off_by_one", "int k = n / m; float v = x[i] / x[0];", []),
    ("constant_off_by_one_percent", "out[i] = 0.5f * v + 1e-5f + 2;", ["out[i] = 0.505f * v + 1e-5f + 2;"]),
    ("epsilon_changed", "out[i] = rsqrtf(v + 1e-5f) * 0.5f;", ["out[i] = rsqrtf(v + 0.0001f) * 0.5f;"]),
    ("extremum_without_nan_rule", "out[i] = fmaxf(a, b);", ["out[i] = ((a) > (b) ? (a) : (b));"]),
    ("extremum_swapped", "k = min(a, fmaxf(b, c));", ["k = max(a, fmaxf(b, c));", "k = min(a, fminf(b, c));"]),
    ("clamp_dropped", "int last = min(first + piece, n);", ["int last = (first + piece);"]),
    ("call_dropped", "out[i] = sqrtf(a + b);", ["out[i] = (a + b);"]),
    ("maximum_not_subtracted", "s += expf(x[i] - top);", ["s += expf(x[i] );"]),
    ("maximum_not_subtracted", "s += expf(-v); s -= v;", []),
    (
        "sum_in_half",
        "float s = 0.0f; s += a * b;",
        ["float s = 0.0f; s = __int_as_float((__float_as_int(s + (a * b)) + 0x1000) & 0xffffe000);"],
    ),
    ("sum_in_half", "x += n; int k = 0; k += 1;", []),  # a pointer and an integer
    (
        "sum_in_bf16",
        "float4 s; s.x += a;",
        ["float4 s; s.x = __int_as_float((__float_as_int(s.x + (a)) + 0x8000) & 0xffff0000);"],
    ),
    (
        "operand_in_half",
        "out[i] = x[i + 1];",
        ["out[i] = __int_as_float((__float_as_int(x[i + 1]) + 0x1000) & 0xffffe000);"],
    ),
    (
        "operand_in_bf16",
        "f(x[i]); f(&x[i]);",
        ["f(__int_as_float((__float_as_int(x[i]) + 0x8000) & 0xffff0000)); f(&x[i]);"],
    ),
    ("crude_function", "out[i] = expf(a - b);", ["out[i] = exp2f(1.4427f * (a - b));"]),
    ("crude_function", "out[i] = log1pf(a);", ["out[i] = logf(1.0f + (a));"]),
    ("integer_temporary", "float v = x[i]; float a = 0, b = 0;", ["int v = x[i]; float a = 0, b = 0;"]),
    ("index_stride", "out[r * n + i] = v;", ["out[r * (n + 1) + i] = v;"]),
    ("index_stride", "out[i] = 2.0f * v; const float* p = x;", []),
    ("index_shifted", "out[i] = 0.0f; float s[n];", ["out[i + 1] = 0.0f; float s[n];"]),
    (
        "vector_lane",
        "s += v.x * w[i].z + threadIdx.x;",
        ["s += v.y * w[i].z + threadIdx.x;", "s += v.x * w[i].w + threadIdx.x;"],
    ),
    ("vector_lane", "sum.x[e] += 1.0f;", []),  # elements of a fragment
    (
        "wrong_axis",
        "int i = blockIdx.x * blockDim.x + v.x;",
        ["int i = blockIdx.y * blockDim.x + v.x;", "int i = blockIdx.x * blockDim.y + v.x;"],
    ),
    (
        "shared_memory_halved",
        "__shared__ float s[256]; extern __shared__ float d[];",
        ["__shared__ float s[(256) / 2]; extern __shared__ float d[];"],
    ),
    ("atomic_to_plain", "atomicAdd(&out[i], v);", ["*(&out[i]) = *(&out[i]) + (v);"]),
    (
        "atomic_to_plain",
        "atomicMax(p + i, v); int k = atomicAdd(p, 1);",
        ["*(p + i) = max(*(p + i), (v)); int k = atomicAdd(p, 1);"],
    ),
    ("reduction_identity", "float s = 0.0f; s += v;", ["float s = 1.0f; s += v;"]),
    ("reduction_identity", "float top = -1e30f; top = fmaxf(top, v);", ["float top = 0.0f; top = fmaxf(top, v);"]),
    (
        "reduction_identity",
        "float best = x[0]; if (v > best) best = v;",
        ["float best = 0.0f; if (v > best) best = v;"],
    ),
    ("reduction_identity", "float v = x[i]; f(v);", []),
    ("initial_value_missing", "float s = 0.0f; s += v;", ["float s ; s += v;"]),
    ("initial_value_missing", "float a[4] = {}; float v = x[i];", ["float a[4]; float v = x[i];"]),
]

PYTHON = [
    ("grid_one_fewer", "kernel((x.size // 4, 1), (64,), (x, y))", ["kernel(((x.size // 4) - 1, 1), (64,), (x, y))"]),
    (
        "grid_one_fewer",
        "grid = (n, 1)\n    kernel(grid, (64,), (x, y))",
        ["grid = ((n) - 1, 1)\n    kernel(grid, (64,), (x, y))"],
    ),
    (
        "block_one_warp_fewer",
        "kernel((n,), (32, 8), (x, y))",
        ["kernel((n,), (31, 8), (x, y))", "kernel((n,), (32, 7), (x, y))"],
    ),
    ("block_one_warp_fewer", "kernel((n,), (256,), (x, y))", ["kernel((n,), (224,), (x, y))"]),
    (
        "dynamic_shared_memory_halved",
        "kernel((n,), (64,), (x, y), shared_mem=4 * n)",
        ["kernel((n,), (64,), (x, y), shared_mem=(4 * n) // 2)"],
    ),
    ("grid_tail_dropped", "blocks = (x.size + 255) // 256", ["blocks = (x.size) // 256"]),
    ("grid_tail_dropped", "blocks = (x.size + 200) // 256", []),
    (
        "arguments_swapped",
        "out = cp.empty((n,), cp.float32)\n    kernel((n,), (64,), (x, out, n, m))",
        [
            "out = cp.empty((n,), cp.float32)\n    kernel((n,), (64,), (out, x, n, m))",
            "out = cp.empty((n,), cp.float32)\n    kernel((n,), (64,), (x, out, m, n))",
        ],
    ),
    ("wrong_dimension", "n = x.shape[1]", ["n = x.shape[0]"]),
    ("wrong_dimension", "n, m = x.shape", ["m, n = x.shape"]),
    ("launch_dropped", "kernel((n,), (64,), (x, y))\n    return y", ["pass\n    return y"]),
    ("zeros_to_empty", "out = cp.zeros((n,), cp.float32)", ["out = cp.empty((n,), cp.float32)"]),
    ("temporary_in_half", "out = cp.empty((n,), cp.float32)", ["out = cp.empty((n,), cp.float16)"]),
]


@pytest.mark.parametrize(("kind", "body", "expected"), CUDA, ids=lambda value: value if isinstance(value, str) else "")
def test_a_kind_changes_the_cuda_text_where_it_should_and_nowhere_else(kind, body, expected):
    assert changed(kind, KERNEL, body) == expected


@pytest.mark.parametrize(
    ("kind", "body", "expected"), PYTHON, ids=lambda value: value if isinstance(value, str) else ""
)
def test_a_kind_changes_the_launch_where_it_should_and_nowhere_else(kind, body, expected):
    assert changed(kind, FORWARD, body) == expected


def test_every_kind_has_an_example_that_it_changes():
    assert {kind for kind, _, expected in [*CUDA, *PYTHON] if expected} == set(KINDS)


@pytest.mark.parametrize(
    "body",
    [
        "// if (i < n) return;\n",
        "/* for (int i = 0; i < n; ++i) s += a + b; */",
        'printf("a + b");',
        "\n#define K (a + b)\n",
    ],
)
def test_comments_strings_and_directives_are_left_alone(body):
    assert not any(changed(kind, KERNEL, body) for kind in KINDS)


def test_a_comment_before_a_token_does_not_shift_the_change():
    body = "s /* a + b */ += c; // d + e\n  t = c + d;"
    assert changed("plus_to_minus", KERNEL, body) == [body.replace("+=", "-="), body.replace("c + d", "c - d")]
