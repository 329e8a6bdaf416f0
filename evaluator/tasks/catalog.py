"""Every task of the benchmark that is built so far, by id."""

import difflib
from collections.abc import Mapping

from evaluator.tasks import (
    activations,
    attention,
    chains,
    conv_chains,
    convolutions,
    losses,
    matmul,
    models,
    norms,
    pooling,
    reductions,
    rowwise,
    scans,
)
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
    "1_033": norms.BATCH_NORM,
    "1_034": norms.INSTANCE_NORM,
    "1_035": norms.GROUP_NORM,
    "1_036": rowwise.RMS_NORM,
    "1_037": rowwise.FROBENIUS_NORM,
    "1_038": rowwise.L1_NORM,
    "1_039": rowwise.L2_NORM,
    "1_040": rowwise.LAYER_NORM,
    "1_041": pooling.MAX_1D,
    "1_042": pooling.MAX_2D,
    "1_043": pooling.MAX_3D,
    "1_044": pooling.AVG_1D,
    "1_045": pooling.AVG_2D,
    "1_046": pooling.AVG_3D,
    "1_047": reductions.SUM,
    "1_048": reductions.MEAN,
    "1_049": reductions.MAX,
    "1_051": reductions.ARGMAX,
    "1_052": reductions.ARGMIN,
    "1_053": reductions.MIN,
    "1_054": convolutions.CONV_3D,
    "1_057": convolutions.CONV_TRANSPOSED_2D,
    "1_061": convolutions.CONV_TRANSPOSED_3D,
    "1_063": convolutions.CONV_2D,
    "1_064": convolutions.CONV_TRANSPOSED_1D,
    "1_067": convolutions.CONV_1D,
    "1_088": activations.NEW_GELU,
    "1_089": scans.CUMSUM,
    "1_090": scans.CUMPROD,
    "1_091": scans.REVERSE_CUMSUM,
    "1_094": losses.MSE_LOSS,
    "1_096": losses.HUBER_LOSS,
    "1_097": attention.SCALED_DOT_PRODUCT,
    "1_099": losses.TRIPLET_MARGIN_LOSS,
    "2_001": conv_chains.CONV_RELU_BIAS,
    "2_005": conv_chains.CONV_TRANSPOSED_SUBTRACT_TANH,
    "2_012": chains.GEMM_MULTIPLY_LEAKY_RELU,
    "2_014": chains.GEMM_DIVIDE_SUM_SCALING,
    "2_017": conv_chains.CONV_INSTANCE_NORM_DIVIDE,
    "2_018": chains.MATMUL_SUM_MAX_MEAN_LOGSUMEXP,
    "2_030": chains.GEMM_GROUP_NORM_HARDTANH,
    "2_054": conv_chains.CONV_MULTIPLY_LEAKY_RELU_GELU,
    "2_061": conv_chains.CONV_TRANSPOSED_RELU_GROUP_NORM,
    "2_063": chains.GEMM_RELU_DIVIDE,
    "2_076": chains.GEMM_ADD_RELU,
    "2_083": conv_chains.CONV_GROUP_NORM_MIN_CLAMP_DROPOUT,
    "2_086": chains.MATMUL_DIVIDE_GELU,
    "2_099": chains.MATMUL_GELU_SOFTMAX,
    "3_001": models.MLP,
    "3_004": models.LENET,
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
