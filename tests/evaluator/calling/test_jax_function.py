"""Programs under jax.jit: values, repetition, company, transformations, threads and errors."""

import concurrent.futures
import functools
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from evaluator.calling import jax_function
from evaluator.calling.jax_function import jax_call
from evaluator.calling.preparation import Preparation
from evaluator.calling.source import Unverified, find
from evaluator.devices.cuda import toolkit
from evaluator.judge.oracle import Oracle
from evaluator.records import Limits
from evaluator.tasks import catalog

# What a handler reports: jaxlib makes one or the other of it, depending on whether the call was asynchronous.
FAILED = (jax.errors.JaxRuntimeError, ValueError)
ON = [pytest.param("cpu"), pytest.param("cuda", marks=pytest.mark.gpu)]


@pytest.fixture(params=ON)
def device(request):
    """A device to call on, where JAX puts arrays as well."""
    backend = {"cpu": "cpu", "cuda": "gpu"}[request.param]
    try:
        first = jax.devices(backend)[0]
    except RuntimeError:
        pytest.skip("JAX sees no GPU: install the extra cuda12 or cuda13 and set JAX_PLATFORMS=cuda,cpu")
    with jax.default_device(first):
        yield request.param


@pytest.fixture
def row_sums(made, device):
    program = made("row_sums", device)
    return jax_call(program.text, **program.options)


def expected(x, factor):
    return np.asarray(factor)[0] * np.asarray(x).sum(axis=1)


def test_a_jitted_program_gives_what_it_computes(row_sums, numbers):
    x, factor = numbers.normal(size=(8, 32)).astype(np.float32), np.float32([3.0])
    np.testing.assert_allclose(jax.jit(row_sums)(x, factor), expected(x, factor), rtol=1e-5, atol=1e-5)


def test_a_program_can_be_called_without_jit(row_sums):
    found = row_sums(jnp.ones((8, 32)), jnp.full((1,), 0.5))
    np.testing.assert_array_equal(found, np.full(8, 16.0, np.float32))


def test_arguments_may_be_named_as_in_forward(row_sums):
    found = jax.jit(row_sums)(norm_factor=jnp.full((1,), 2.0), x=jnp.ones((8, 32)))
    np.testing.assert_array_equal(found, np.full(8, 64.0, np.float32))


def test_each_call_begins_with_temporaries_of_its_own(row_sums, numbers):
    """The sums are kept in a temporary: what an earlier call left there would be added once more."""
    jitted, factor = jax.jit(row_sums), np.float32([1.0])
    for _ in range(5):
        x = numbers.normal(size=(8, 32)).astype(np.float32)
        np.testing.assert_allclose(jitted(x, factor), expected(x, factor), rtol=1e-5, atol=1e-5)


def test_programs_mix_with_one_another_and_with_xla(made, device, row_sums, numbers):
    several = made("several_outputs", device, allow_unverified=True)
    split = jax_call(several.text, **several.options)

    @jax.jit
    def mixed(x, factor):
        with jax.enable_x64(True):
            twice, *_ = split(x.reshape(-1), jnp.zeros(x.size, jnp.int32))
        return row_sums(twice.reshape(x.shape) + 1.0, factor) + row_sums(x, 2 * factor)

    x, factor = numbers.normal(size=(8, 32)).astype(np.float32), np.float32([0.25])
    wanted = expected(2 * x + 1, factor) + expected(x, 2 * factor)
    np.testing.assert_allclose(mixed(x, factor), wanted, rtol=1e-5, atol=1e-5)


def test_outputs_keep_their_dtypes_and_may_be_parts_of_arrays_and_inputs(made, device, numbers):
    program = made("several_outputs", device)
    x, n = numbers.normal(size=100).astype(np.float32), np.arange(100, dtype=np.int32)
    with jax.enable_x64(True):
        twice, count, negative, same = jax.jit(jax_call(program.text, **program.options))(x, n)
    np.testing.assert_array_equal(twice, 2 * x)
    np.testing.assert_array_equal(count, n.astype(np.int64) + 1)
    assert count.dtype == np.int64
    np.testing.assert_array_equal(negative, -x)
    np.testing.assert_array_equal(same, x)


def test_64_bit_results_need_64_bit_jax(made):
    program = made("several_outputs")
    with pytest.raises(TypeError, match="returns int64: set jax_enable_x64"):
        jax_call(program.text, **program.options)(np.zeros(100, np.float32), np.zeros(100, np.int32))


def test_a_library_step_stands_between_kernels(made, device, numbers):
    program = made("product", device)
    a, b = numbers.normal(size=(4, 8)).astype(np.float32), numbers.normal(size=(8, 5)).astype(np.float32)
    found = jax.jit(jax_call(program.text, **program.options))(a, b)
    np.testing.assert_allclose(found, (a + 1) @ b - 1, rtol=1e-4, atol=1e-5)


def test_donated_arguments_do_no_harm(row_sums, numbers):
    x, factor = numbers.normal(size=(8, 32)).astype(np.float32), np.float32([1.5])

    @functools.partial(jax.jit, donate_argnums=0)
    def step(x, factor):
        return x + row_sums(x, factor)[:, None]

    np.testing.assert_allclose(step(jnp.asarray(x), factor), x + expected(x, factor)[:, None], rtol=1e-5, atol=1e-5)


def test_a_loop_carries_a_program(row_sums):
    def body(x, _):
        sums = row_sums(x, jnp.full((1,), 1 / 32))
        return jnp.broadcast_to(sums[:, None] + 1.0, x.shape), sums

    _, sums = jax.lax.scan(body, jnp.ones((8, 32)), length=3)
    np.testing.assert_allclose(sums, [[1.0] * 8, [2.0] * 8, [3.0] * 8], rtol=1e-6)


def test_vmap_calls_the_program_for_every_element(row_sums, numbers):
    xs, factor = numbers.normal(size=(3, 8, 32)).astype(np.float32), np.float32([2.0])
    found = jax.jit(jax.vmap(row_sums, in_axes=(0, None)))(xs, factor)
    np.testing.assert_allclose(found, [expected(x, factor) for x in xs], rtol=1e-5, atol=1e-5)


def test_a_derivative_is_refused_until_one_is_given(row_sums):
    x, factor = jnp.ones((8, 32)), jnp.ones((1,))
    with pytest.raises(ValueError, match="cannot be differentiated"):
        jax.grad(lambda x: row_sums(x, factor).sum())(x)

    with_gradient = jax.custom_vjp(row_sums)
    with_gradient.defvjp(
        lambda x, factor: (row_sums(x, factor), factor),
        lambda factor, g: (jnp.broadcast_to(factor * g[:, None], (8, 32)), jnp.zeros(1)),
    )
    np.testing.assert_array_equal(jax.grad(lambda x: with_gradient(x, 3 * factor).sum())(x), np.full((8, 32), 3.0))


def test_many_threads_may_call_at_once(row_sums, numbers):
    jitted, factor = jax.jit(row_sums), np.float32([1.0])
    xs = numbers.normal(size=(24, 8, 32)).astype(np.float32)
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda x: np.asarray(jitted(x, factor)), xs))
    np.testing.assert_allclose(found, [expected(x, factor) for x in xs], rtol=1e-5, atol=1e-5)


def test_a_program_outlives_the_thread_that_called_it_first(row_sums):
    jitted, x, factor = jax.jit(row_sums), jnp.ones((8, 32)), jnp.ones((1,))
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        pool.submit(lambda: jitted(x, factor).block_until_ready()).result()
    np.testing.assert_array_equal(jitted(x, factor), np.full(8, 32.0))


def test_devices_of_a_mesh_may_call_at_once(made, numbers):
    """Eight simulated CPU devices: XLA calls the handler from the thread of each."""
    program = made("row_sums")
    row_sums = jax_call(program.text, **program.options)
    axis = (jax.sharding.AxisType.Auto,)
    mesh = jax.make_mesh((8,), ("data",), axis_types=axis, devices=jax.devices("cpu"))
    spec = jax.sharding.PartitionSpec
    xs, factor = numbers.normal(size=(64, 32)).astype(np.float32), np.float32([1.0])
    sharded = jax.shard_map(row_sums, mesh=mesh, in_specs=(spec("data"), spec()), out_specs=spec("data"))
    np.testing.assert_allclose(jax.jit(sharded)(xs, factor), expected(xs, factor), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("x", "seen"),
    [
        (np.ones((8, 31), np.float32), r"verified with x of float32\[8, 32\], and is called with float32\[8, 31\]"),
        (np.ones((8, 32), np.int32), r"is called with int32\[8, 32\]"),
        (np.ones(256, np.float32), r"is called with float32\[256\]"),
    ],
)
def test_other_shapes_and_dtypes_than_the_verified_are_refused(row_sums, x, seen):
    with pytest.raises(Unverified, match=seen):
        jax.jit(row_sums)(x, np.ones(1, np.float32))


def test_other_shapes_can_be_allowed(made, device):
    program = made("row_sums", device, allow_unverified=True)
    found = jax.jit(jax_call(program.text, **program.options))(jnp.ones((3, 64)), jnp.ones((1,)))
    np.testing.assert_array_equal(found, [64.0] * 3)


@pytest.mark.parametrize(
    ("arguments", "named", "seen"),
    [
        ((1,), {}, "takes 2 arrays; norm_factor missing"),
        ((1, 2, 3), {}, r"takes 2 arrays \(x, norm_factor\), got 3"),
        ((1, 2), {"x": 3}, "argument 'x' is given twice"),
        ((1,), {"factor": 3}, "has no argument 'factor'; it takes x, norm_factor"),
    ],
)
def test_a_wrong_number_of_arguments_is_a_type_error(row_sums, arguments, named, seen):
    with pytest.raises(TypeError, match=seen):
        row_sums(*arguments, **named)


def test_a_kernel_that_fails_is_an_error_that_says_where_and_the_next_call_works(made):
    program = made("faulty")
    jitted = jax.jit(jax_call(program.text, **program.options))
    good, bad = np.arange(64, dtype=np.float32), np.full(64, -1.0, np.float32)
    np.testing.assert_array_equal(jitted(good), good)
    with pytest.raises(FAILED, match=r"out_of_bounds \(line 14\): read at byte .* of buffer 'x'"):
        jitted(bad).block_until_ready()
    np.testing.assert_array_equal(jitted(good), good)


@pytest.fixture
def for_a_gpu(made, monkeypatch):
    """A function for `cuda` on a machine that may have no GPU."""
    if not toolkit.installed():
        pytest.skip("no NVRTC: pip install 'cudal1-jax[dev]'")
    monkeypatch.setattr("evaluator.calling.preparation._architecture", lambda: 90)
    program = made("several_outputs", "cuda")
    return jax_call(program.text, **program.options)


def test_a_function_for_a_gpu_is_lowered_without_one(for_a_gpu):
    with jax.enable_x64(True):
        x, n = jax.ShapeDtypeStruct((100,), np.float32), jax.ShapeDtypeStruct((100,), np.int32)
        text = jax.jit(for_a_gpu).trace(x, n).lower(lowering_platforms=("cuda",)).as_text()
    (call,) = re.findall(r"custom_call @cudal1_cuda.*", text)
    assert re.search(r'program = "[0-9a-f]{64}"', call)
    # Three arrays of their own, the input again, and as the last one scratch memory for the array that is cut.
    results = "tensor<100xf32>, tensor<100xi64>, tensor<100xf32>, tensor<100xf32>, tensor<1024xui8>"
    assert call.endswith(f"-> ({results})")


def test_a_function_for_a_gpu_says_so_on_a_cpu(for_a_gpu):
    arrays = np.zeros(100, np.float32), np.zeros(100, np.int32)
    refused = pytest.raises(FAILED, match="made for another kind of device than XLA runs it on: pass device='cpu'")
    with jax.default_device(jax.devices("cpu")[0]), jax.enable_x64(True), refused:
        jax.block_until_ready(jax.jit(for_a_gpu)(*arrays))


def test_an_executable_of_another_process_names_no_program_here(made, monkeypatch):
    """Keys are digests of the plan, so that a cached executable never calls what merely has the same number."""
    monkeypatch.setattr(jax_function, "_kept", lambda preparation, prepared: "0" * 64)
    program = made("row_sums")
    with pytest.raises(FAILED, match="000 is not known to this process"):
        jax.jit(jax_call(program.text, **program.options))(jnp.ones((8, 32)), jnp.ones((1,))).block_until_ready()


def test_keys_are_those_of_plans_devices_and_times(made):
    def key(name, **options):
        program = made(name, allow_unverified=True)
        source = find(program.text, task=program.options["task"], device="cpu", allow_unverified=True)
        preparation = Preparation(source, **options)
        return preparation.key_of(preparation.of(tuple((a.shape, np.dtype(a.dtype)) for a in source.arrays)))

    assert key("row_sums") == key("row_sums")
    others = [key("several_outputs"), key("row_sums", limits=Limits(kernel_s=20.0))]
    assert len({key("row_sums"), *others}) == 3


@pytest.fixture(scope="module")
def oracle():
    with Oracle() as oracle:
        yield oracle


@pytest.mark.parametrize(("task_id", "name"), [("1_001", "register_tile"), ("1_047", "plain")])
def test_a_program_of_the_library_agrees_with_the_oracle(device, oracle, task_id, name):
    case = oracle.expected(catalog.get(task_id), "cpu", "plain", 3)
    program = jax_call(f"kernels/{task_id}/{name}.py", device=device, allow_unverified=device == "cuda")
    found = jax.jit(program)(*case.inputs)
    np.testing.assert_allclose(np.asarray(found, np.float64), case.exact[0], rtol=1e-4, atol=1e-5)
