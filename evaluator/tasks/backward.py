"""Gradients of level 1 tasks as tasks of their own: `1_019_backward` is the backward pass of `1_019`.

Inputs are those of the forward task and `grad_output`, the gradient of a loss with respect to its output; outputs are
the gradients with respect to the forward task's arrays, in their order. The formulas are explicit, so that one text
runs in every backend and a prompt shows what is computed; the tests hold them against automatic differentiation.
"""

import dataclasses
import inspect
from collections.abc import Callable

from evaluator.tasks import activations, losses, matmul, rowwise
from evaluator.tasks.notation import Shape, forward_text
from evaluator.tasks.task import Array, Task


def product(nn, A, B, grad_output):
    return nn.matmul(grad_output, B.T), nn.matmul(A.T, grad_output)


def relu(nn, x, grad_output):
    return nn.where(x > 0, grad_output, 0.0)


def sigmoid(nn, x, grad_output):
    y = nn.sigmoid(x)
    return grad_output * y * (1 - y)


def tanh(nn, x, grad_output):
    return grad_output * (1 - nn.tanh(x) ** 2)


def swish(nn, x, grad_output):
    gate = nn.sigmoid(x)
    return grad_output * gate * (1 + x * (1 - gate))


def gelu(nn, x, grad_output):
    cumulative = 0.5 * (1 + nn.erf(x * 0.7071067811865476))
    density = 0.3989422804014327 * nn.exp(-0.5 * x**2)
    return grad_output * (cumulative + x * density)


def softmax(nn, x, grad_output):
    y = nn.softmax(x, dim=1)
    return y * (grad_output - nn.sum(grad_output * y, dim=1, keepdim=True))


def log_softmax(nn, x, grad_output):
    return grad_output - nn.softmax(x, dim=1) * nn.sum(grad_output, dim=1, keepdim=True)


def rms_norm(nn, x, grad_output):
    rms = nn.sqrt(nn.mean(x**2, dim=1, keepdim=True) + 1e-5)
    y = x / rms
    return (grad_output - y * nn.mean(grad_output * y, dim=1, keepdim=True)) / rms


def l1_norm(nn, x, grad_output):
    size = nn.mean(nn.abs(x), dim=1, keepdim=True)
    y = x / size
    return (grad_output - nn.sign(x) * nn.mean(grad_output * y, dim=1, keepdim=True)) / size


def l1_norm_by_sum(nn, x, grad_output):
    size = nn.sum(nn.abs(x), dim=1, keepdim=True)
    y = x / size
    return (grad_output - nn.sign(x) * nn.sum(grad_output * y, dim=1, keepdim=True)) / size


def layer_norm(nn, x, grad_output, ln_weight):
    features = (1, 2, 3)
    centred = x - nn.mean(x, dim=features, keepdim=True)
    scale = nn.rsqrt(nn.mean(centred**2, dim=features, keepdim=True) + 1e-5)
    y = centred * scale
    grad_y = grad_output * ln_weight
    along_y = y * nn.mean(grad_y * y, dim=features, keepdim=True)
    grad_x = scale * (grad_y - nn.mean(grad_y, dim=features, keepdim=True) - along_y)
    return grad_x, nn.sum(grad_output * y, dim=0), nn.sum(grad_output, dim=0)


def mse_loss(nn, predictions, targets, grad_output):
    rows, columns = predictions.shape
    grad_predictions = (predictions - targets) * (grad_output * 2 / (rows * columns))
    return grad_predictions, -grad_predictions


def like_the_first(arrays: tuple[Array, ...]) -> Shape:
    """Shape of the output where it is the first input's."""
    return arrays[0].shape


def rows_by_columns(arrays: tuple[Array, ...]) -> Shape:
    """Shape of the product of two matrices."""
    return arrays[0].shape[0], arrays[1].shape[1]


def one_number(arrays: tuple[Array, ...]) -> Shape:
    """Shape of a loss."""
    return ()


def backward(
    of: Task,
    gradients: Callable,
    output_shape: Callable[[tuple[Array, ...]], Shape] = like_the_first,
    sources_at: dict[str, str] | None = None,
) -> Task:
    """The task of the gradients of `of`, at its sizes; arrays that `gradients` does not take, biases, are left out.

    `output_shape` gives the shape of the forward task's output from its arrays at a size. Family, precision, cases
    and what is degenerate are the forward task's.
    """
    read = inspect.signature(gradients).parameters

    def with_cotangent(arrays: tuple[Array, ...]) -> tuple[Array, ...]:
        cotangent = Array("grad_output", output_shape(arrays), init="normal(0,1)")
        inputs = [array for array in arrays if not array.parameter]
        return (*inputs, cotangent, *(array for array in arrays if array.parameter and array.argument in read))

    return dataclasses.replace(
        of,
        id=f"{of.id}_backward",
        name=f"{of.name}_backward",
        source=forward_text(gradients),
        sizes={size: with_cotangent(arrays) for size, arrays in of.sizes.items()},
        notes=(f"Gradients of {of.id} with respect to its arrays, in their order.",),
        sources_at=sources_at or {},
    )


TASKS: dict[str, Task] = {
    task.id: task
    for task in (
        backward(matmul.RECTANGULAR, product, rows_by_columns),
        backward(activations.RELU, relu),
        backward(activations.SIGMOID, sigmoid),
        backward(activations.TANH, tanh),
        backward(rowwise.SOFTMAX, softmax),
        backward(rowwise.LOG_SOFTMAX, log_softmax),
        backward(activations.SWISH, swish),
        backward(activations.GELU, gelu),
        backward(rowwise.RMS_NORM, rms_norm),
        backward(rowwise.L1_NORM, l1_norm, sources_at={"kb_v0": forward_text(l1_norm_by_sum)}),
        backward(rowwise.LAYER_NORM, layer_norm),
        backward(losses.MSE_LOSS, mse_loss, one_number),
    )
}
