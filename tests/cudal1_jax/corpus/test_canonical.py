import ast
from random import Random

import pytest

from cudal1_jax.corpus import canonical, elementwise, families, workload
from cudal1_jax.corpus.workload import Workload
from evaluator.tasks import split
from evaluator.tasks.catalog import TASKS

REAL = ("1_001", "1_004", "1_012", "1_019", "1_023", "1_026", "1_040", "1_047", "1_051", "1_089", "1_094", "2_014")


def shape_of(source: str, ranks: tuple[int, ...]) -> str:
    """A forward with its names numbered, its statements folded into one expression, and the ranks of its arrays."""
    function = ast.parse(source).body[0]
    assert isinstance(function, ast.FunctionDef)
    arguments = [argument.arg for argument in function.args.args[1:]]
    values: dict[str, ast.expr] = {name: ast.Name(f"a{i}") for i, name in enumerate(arguments)}

    class Names(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.expr:
            return values.get(node.id, node)

    for statement in function.body:
        if isinstance(statement, ast.Assign):
            values[statement.targets[0].id] = Names().visit(statement.value)  # type: ignore[attr-defined]
        elif isinstance(statement, ast.Return):
            return f"{ast.dump(Names().visit(statement.value))} {ranks}"
    raise AssertionError(source)


def ranks_of(task) -> tuple[int, ...]:
    return tuple(len(array.shape) for array in task.arrays_at("cpu"))


def test_no_example_has_the_text_of_a_real_task():
    real = {shape_of(TASKS[name].source_at("cpu"), ranks_of(TASKS[name])) for name in canonical.REAL.values()}
    rng = Random(3)
    workloads = [families.draw(rng, (4_000, 40_000)) for _ in range(4_000)]
    texts = [(shape_of(each.task.source, ranks_of(each.task)), each) for each in workloads]
    caught = [each for text, each in texts if text in real]
    assert len(caught) >= 20  # the generator does draw them; so what follows says something
    # Of the same text, a matrix product of a matrix with one column is the matrix-vector product: both are real tasks.
    assert [canonical.key(each) for each in caught if not canonical.is_real(each)] == []


def test_every_real_task_is_named():
    assert set(canonical.REAL.values()) == {*REAL, "1_005", "1_024", "1_052", "1_088"}


def test_what_the_generator_draws_of_the_held_out_tasks_is_kept_out():
    """All that are elementwise, row-wise, reductions, losses or scalings."""
    families = ("elementwise", "rowwise", "reduction", "loss", "matmul", "scan")
    drawn = {task_id for task_id in split.HELD_OUT if TASKS[task_id].family in families}
    assert drawn <= set(canonical.REAL.values())


def make(family: str, *words: str) -> Workload:
    return Workload(workload.task(family, "", ()), words, "", ())


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (make("loss", "sub:full", "square", "mean@all"), make("loss", "rsub:full", "mean_square@all")),
        (
            make("matmul", "matmul_nt", "div_c", "sum@2d1", "mul_c"),
            make("matmul", "matmul_nt", "rmul_c", "sum@2d1", "div_c"),
        ),
        (make("elementwise", "mul:column"), make("elementwise", "rmul:column")),
        (make("reduction", "l2@3d1"), make("reduction", "norm@3d1")),
        (make("elementwise", "swish"), make("elementwise", "silu")),
    ],
    ids=lambda each: " ".join(each.canonical),
)
def test_ways_to_write_the_same_steps_have_one_key(first, second):
    assert canonical.key(first) == canonical.key(second)


def test_the_order_of_a_difference_counts_unless_an_even_function_follows():
    assert canonical.key(make("loss", "sub:full", "relu")) != canonical.key(make("loss", "rsub:full", "relu"))


def test_where_a_reduction_runs_is_part_of_the_key():
    assert canonical.key(make("reduction", "sum@3d1")) != canonical.key(make("reduction", "sum@3d2"))


def test_a_draw_of_one_family_is_in_that_family():
    assert canonical.key(elementwise.draw(Random(0), (1_000, 4_000))).startswith("elementwise ")
