"""The search: what differs is exposed by some input, what does not is not, and rounding is no difference."""

import numpy as np
import pytest

from evaluator import _core
from evaluator.devices import cpu
from evaluator.judge.accuracy import accuracies
from evaluator.judge.expected import evaluate
from evaluator.judge.oracle import Oracle
from evaluator.mutants import distributions
from evaluator.mutants.exposure import ORDERS, Search, draws, excess
from evaluator.mutants.machine_code import fingerprint
from evaluator.program.trace import Tracer
from evaluator.records import Limits
from evaluator.tasks import catalog
from evaluator.tasks.task import Array, Task

TASK = Task(
    id="row_sums",
    name="row sums",
    family="reduction",
    source="def forward(nn, x):\n    return nn.sum(x, 1)\n",
    sizes={"cpu": (Array("x", (6, 64), init="normal(0,1)"),)},
)
PROGRAM = '''
import cupy as cp

source = r"""
extern "C" __global__ void row_sums(const float* x, float* out, int n) {
  __shared__ float part[64];
  int t = threadIdx.x;
  part[t] = x[blockIdx.x * n + t];
  __syncthreads();
  for (int s = 32; s > 0; s /= 2) {
    if (t < s) part[t] += part[t + s];
    __syncthreads();
  }
  if (t == 0) out[blockIdx.x] = part[0];
}
"""
row_sums = cp.RawKernel(source, "row_sums")


def forward(x):
    out = cp.empty((x.shape[0],), cp.float32)
    row_sums((x.shape[0],), (64,), (x, out, x.shape[1]))
    return out
'''
LIMITS = Limits(kernel_s=3.0)

pytestmark = pytest.mark.filterwarnings("ignore:.*landlock.*:RuntimeWarning")


@pytest.fixture(scope="module")
def oracle():
    with Oracle() as started:
        yield started


@pytest.fixture(scope="module")
def compiled():
    with Tracer(LIMITS) as tracer:
        yield lambda text: cpu.compile(tracer.trace(text, TASK.arrays_at("cpu"), [((6,), "float32")]), LIMITS)


def changed(before, after):
    assert PROGRAM.count(before) == 1
    return PROGRAM.replace(before, after)


# Another order of the sum; a term of zero; an input that is read twice.
EQUIVALENT = [
    changed(
        "for (int s = 32; s > 0; s /= 2) {\n    if (t < s) part",
        "for (int s = 1; s < 64; s *= 2) {\n    if (t % (2 * s) == 0) part",
    ),
    changed("out[blockIdx.x] = part[0]", "out[blockIdx.x] = part[0] + 1e-30f"),
    changed("part[t] = x[blockIdx.x * n + t]", "part[t] = 0.5f * (x[blockIdx.x * n + t] + x[blockIdx.x * n + t])"),
]
# What shows at once; what shows where values are large, where they are tied, in another order of threads; a fault.
FAULTY = {
    changed("s = 32; s > 0", "s = 32; s > 1"): "value",
    changed("= part[0]", "= fminf(part[0], 500.0f)"): "value",
    changed("= part[0]", "= part[0] == -3.5f ? 0.0f : part[0]"): "value",
    changed("  __syncthreads();\n  for", "  for"): "value",
    changed("out[blockIdx.x] =", "out[blockIdx.x + 1] ="): "out_of_bounds",
    changed("if (t == 0) out", "if (t == 0 && part[0] < 300.0f) out"): "unwritten_output",
}


def test_equivalent_programs_are_not_exposed(compiled, oracle):
    found = Search(oracle, LIMITS, seed=0).expose(TASK, "cpu", compiled(PROGRAM), [compiled(t) for t in EQUIVALENT])
    assert found == [None] * len(EQUIVALENT)


def test_hidden_faults_are_exposed_each_by_its_own_input(compiled, oracle):
    found = Search(oracle, LIMITS, seed=0).expose(TASK, "cpu", compiled(PROGRAM), [compiled(t) for t in FAULTY])
    assert [exposure and exposure.how for exposure in found] == list(FAULTY.values())
    assert all(exposure.error is None or exposure.error > 1 for exposure in found)
    first = found[0]
    assert (first.draw, first.distribution, first.order) == (0, "own", "forward")
    assert all(exposure.draw > 0 for exposure in (found[1], found[2], found[5]))


def test_a_search_ends_with_its_draws(compiled, oracle):
    rare = compiled(changed("= part[0]", "= part[0] == -3.5f ? 0.0f : part[0]"))
    assert Search(oracle, LIMITS, seed=0, count=3).expose(TASK, "cpu", compiled(PROGRAM), [rare]) == [None]


def test_a_faulty_original_is_a_mistake_of_the_caller(compiled, oracle):
    faulty = compiled(changed("out[blockIdx.x] =", "out[blockIdx.x + 1] ="))
    with pytest.raises(RuntimeError, match="the original faults"):
        Search(oracle, LIMITS, seed=0).expose(TASK, "cpu", faulty, [compiled(PROGRAM)])


def test_two_hundred_draws_mix_ten_distributions_three_orders_and_both_guards():
    made = list(draws(TASK, seed=5))
    assert len(made) == 200
    assert len({(draw.distribution, draw.order) for draw in made}) == 10 * len(ORDERS)
    assert len({(draw.distribution, draw.guard) for draw in made}) == 20
    assert len({draw.seed for draw in made}) == 200


@pytest.mark.parametrize("name", distributions.DISTRIBUTIONS)
def test_a_distribution_is_a_function_of_its_seed_with_the_task_s_shapes(name):
    task = Task(
        id="t",
        name="t",
        family="chain",
        source="",
        sizes={
            "cpu": (
                Array("x", (7, 33)),
                Array("i", (5,), "int64", "integers(0,7)"),
                Array("empty", (0, 3)),
                Array("scale", ()),
                Array("w", (33,), init="normal(0,1)", parameter=True),
                Array("gain", (33,), init="constant(1)", parameter=True),
            )
        },
    )
    one, two, other = (distributions.inputs(task, "cpu", name, seed) for seed in (3, 3, 4))
    assert [(x.shape, str(x.dtype)) for x in one] == [(spec.shape, spec.dtype) for spec in task.arrays_at("cpu")]
    assert all(np.array_equal(a, b) for a, b in zip(one, two, strict=True))
    assert not np.array_equal(one[0], other[0])
    assert all(np.isfinite(x).all() for x in one)
    assert (one[1] >= 0).all()
    assert np.ptp(one[5]) > 0.1
    assert (one[5] > 0).all()


@pytest.mark.parametrize("name", distributions.DISTRIBUTIONS)
def test_inputs_of_every_distribution_have_the_structure_that_their_task_promises(name):
    a, b = distributions.inputs(catalog.get("1_014"), "cpu", name, 2)
    assert not np.tril(a, -1).any()
    assert not np.tril(b, -1).any()
    (symmetric, _) = distributions.inputs(catalog.get("1_013"), "cpu", name, 2)
    np.testing.assert_array_equal(symmetric, symmetric.T)
    for x in distributions.inputs(catalog.get("1_098"), "cpu", name, 2):
        np.testing.assert_allclose(x.sum(axis=-1), 1, rtol=1e-4)
    assert set(np.unique(distributions.inputs(catalog.get("1_100"), "cpu", name, 2)[1])) <= {-1, 1}


def expected_of(x, exact):
    found = evaluate([x], lambda arrays: [exact.astype(arrays[0].dtype)], _core.compare, integral=False)
    assert found.accuracies == accuracies([exact.astype(np.float32)], [exact], _core.compare)
    return found


def test_only_a_mutant_beyond_the_bound_where_its_original_is_within_counts():
    exact = np.linspace(1.0, 2.0, 100)
    expected = expected_of(np.ones(3, np.float32), exact)
    right = (exact.astype(np.float32),)
    slightly, badly = (((exact * (1 + by)).astype(np.float32),) for by in (2e-5, 1e-3))
    assert excess(TASK, expected, right, slightly) is None  # 512 spacings are 6e-5
    assert excess(TASK, expected, right, badly) == pytest.approx(1e-3 / (512 * 2.0**-23), rel=0.6)
    assert excess(TASK, expected, badly, badly) is None
    assert excess(TASK, expected, badly, right) is None


def test_a_change_that_the_compiler_removes_leaves_the_machine_code_alone(compiled):
    same, other = changed("part[t + s]", "part[t + s + 0]"), changed("part[t + s]", "part[t + s + 1]")
    assert fingerprint(compiled(same)) == fingerprint(compiled(PROGRAM))
    assert fingerprint(compiled(other)) != fingerprint(compiled(PROGRAM))


def test_another_grid_is_another_program(compiled):
    assert fingerprint(compiled(changed("(64,)", "(32,)"))) != fingerprint(compiled(PROGRAM))
