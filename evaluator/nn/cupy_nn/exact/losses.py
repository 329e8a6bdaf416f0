"""Pointwise parts of the losses by their definitions, for the oracle."""

import cupy as cp

from evaluator.nn.cupy_nn.exact.rows import log_softmax


def mse_loss(input: cp.ndarray, target: cp.ndarray) -> cp.ndarray:
    return (input - target) ** 2


def l1_loss(input: cp.ndarray, target: cp.ndarray) -> cp.ndarray:
    return cp.absolute(input - target)


def smooth_l1_loss(input: cp.ndarray, target: cp.ndarray, beta: float) -> cp.ndarray:
    distance = cp.absolute(input - target)
    return cp.where(distance < beta, 0.5 * distance**2 / beta, distance - 0.5 * beta)


def kl_div(input: cp.ndarray, target: cp.ndarray, log_target: bool) -> cp.ndarray:
    if log_target:
        return cp.exp(target) * (target - input)
    return cp.where(target == 0, 0, target * cp.log(cp.where(target == 0, 1, target))) - target * input


def cross_entropy(input: cp.ndarray, target: cp.ndarray) -> cp.ndarray:
    return -cp.take_along_axis(log_softmax(input, 1), target[:, None], axis=1)[:, 0]
