"""Every task of the benchmark that is built so far, by id."""

import difflib
from collections.abc import Mapping

from evaluator.tasks import activations, chains, losses, matmul, reductions, rowwise, scans
from evaluator.tasks.task import Task

TASKS: dict[str, Task] = {
    "1_001": matmul.SQUARE,
    "1_002": matmul.RECTANGULAR,
    "1_003": matmul.BATCHED,
    "1_004": matmul.MATRIX_VECTOR,
    "1_012": matmul.ROW_SCALING,
    "1_019": activations.RELU,
    "1_020": activations.LEAKY_RELU,
    "1_021": activations.SIGMOID,
    "1_022": activations.TANH,
    "1_023": rowwise.SOFTMAX,
    "1_024": rowwise.LOG_SOFTMAX,
    "1_025": activations.SWISH,
    "1_026": activations.GELU,
    "1_027": activations.SELU,
    "1_028": activations.HARD_SIGMOID,
    "1_029": activations.SOFTPLUS,
    "1_030": activations.SOFTSIGN,
    "1_031": activations.ELU,
    "1_032": activations.HARD_TANH,
    "1_036": rowwise.RMS_NORM,
    "1_037": rowwise.FROBENIUS_NORM,
    "1_038": rowwise.L1_NORM,
    "1_039": rowwise.L2_NORM,
    "1_040": rowwise.LAYER_NORM,
    "1_047": reductions.SUM,
    "1_048": reductions.MEAN,
    "1_049": reductions.MAX,
    "1_051": reductions.ARGMAX,
    "1_052": reductions.ARGMIN,
    "1_053": reductions.MIN,
    "1_088": activations.NEW_GELU,
    "1_089": scans.CUMSUM,
    "1_090": scans.CUMPROD,
    "1_091": scans.REVERSE_CUMSUM,
    "1_094": losses.MSE_LOSS,
    "1_096": losses.HUBER_LOSS,
    "2_014": chains.GEMM_DIVIDE_SUM_SCALING,
}


def get(task_id: str) -> Task:
    """The task called `task_id`; an unknown id raises `KeyError` that names close ones."""
    return find(task_id, TASKS)


def find(task_id: str, tasks: Mapping[str, Task]) -> Task:
    """The task called `task_id` among `tasks`; an unknown id raises `KeyError` that names close ones."""
    if task_id in tasks:
        return tasks[task_id]
    names = {**{task.name.lower(): task.id for task in tasks.values()}, **{known: known for known in tasks}}
    close = difflib.get_close_matches(task_id.lower(), names, n=3, cutoff=0.5)
    hint = ", ".join(dict.fromkeys(names[name] for name in close)) or "none is close"
    raise KeyError(f"no task {task_id!r}; close ids: {hint}; `python -m evaluator tasks` lists all {len(tasks)}")
