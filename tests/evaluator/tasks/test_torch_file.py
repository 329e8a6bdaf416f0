"""PyTorch files of KernelBench's form as tasks: arrays, distributions, values, and what is refused."""

import numpy as np
import pytest

from evaluator.tasks import torch_file
from evaluator.tasks.arrays import draw, parse_init
from evaluator.tasks.user import TaskFileError

pytestmark = pytest.mark.torch
pytest.importorskip("torch")

PRODUCT = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self, features, classes):
        super().__init__()
        self.fc = nn.Linear(features, classes)

    def forward(self, x):
        return torch.relu(self.fc(x))

rows = 64
features = 128

def get_inputs():
    return [torch.rand(rows, features)]

def get_init_inputs():
    return [features, 100]
"""
BATCH_NORM = """
import torch

class Model(torch.nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.bn = torch.nn.BatchNorm2d(channels)

    def forward(self, x):
        return self.bn(x)

def get_inputs():
    return [torch.randn(4, 6, 15, 15)]

def get_init_inputs():
    return [6]
"""
CLASSES = """
import torch

class Model(torch.nn.Module):
    def forward(self, logits, targets, scale):
        return scale * torch.nn.functional.cross_entropy(logits, targets)

def get_inputs():
    return [torch.randn(500, 10), torch.randint(0, 10, (500,)), 2.5]

def get_init_inputs():
    return []
"""


@pytest.fixture
def load(tmp_path):
    def loaded(text, **constants):
        path = tmp_path / "7_Name.py"
        path.write_text(text)
        return torch_file.load(path, constants)

    return loaded


def run(task, arrays):
    from evaluator.nn.torch_module import TorchModule

    return TorchModule(task.source).run(arrays)


def test_inputs_come_first_and_parameters_keep_their_names(load):
    task = load(PRODUCT)
    assert (task.id, task.reference) == ("7_Name", "torch")
    seen = [(array.argument, array.shape, array.parameter) for array in task.arrays_at("cpu")]
    assert seen == [("x", (64, 128), False), ("fc_weight", (100, 128), True), ("fc_bias", (100,), True)]


def test_the_distributions_are_those_of_the_file(load):
    x, weight, bias = load(PRODUCT).arrays_at("cpu")
    assert parse_init(x.init).terms[0].numbers == (0, 1)
    bound = 128**-0.5
    for array in (weight, bias):
        (term,) = parse_init(array.init).terms
        assert term.kind == "uniform"
        assert term.numbers == pytest.approx((-bound, bound), rel=0.02)
    logits, targets, scale = load(CLASSES).arrays_at("cpu")
    (term,) = parse_init(logits.init).terms
    assert (term.kind, term.numbers) == ("normal", pytest.approx((0, 1), abs=0.05))
    assert (targets.init, targets.dtype, scale.init, scale.shape) == ("integers(0,10)", "int64", "constant(2.5)", ())


def test_values_are_the_models_at_the_precision_of_the_arrays(load):
    task = load(PRODUCT)
    x, weight, bias = draw(task, "cpu", seed=3)
    (single,) = run(task, [x, weight, bias])
    (double,) = run(task, [array.astype(np.float64) for array in (x, weight, bias)])
    assert (single.dtype, double.dtype) == (np.float32, np.float64)
    exact = np.maximum(x.astype(np.float64) @ weight.astype(np.float64).T + bias, 0)
    np.testing.assert_allclose(double, exact, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(single, exact, rtol=1e-5, atol=1e-5)


def test_a_batch_norm_takes_the_statistics_of_its_batch_and_keeps_nothing(load):
    from evaluator.nn.torch_module import TorchModule

    task = load(BATCH_NORM)
    x, weight, bias = draw(task, "cpu", seed=3)
    module = TorchModule(task.source)
    first, _, again = (module.run([each, weight, bias])[0] for each in (x, 5 * x + 1, x))
    np.testing.assert_array_equal(first, again)
    np.testing.assert_allclose(first.mean(axis=(0, 2, 3)), 0, atol=1e-5)
    np.testing.assert_array_equal(module._single.bn.running_mean.numpy(), 0)


def test_constants_have_other_values_where_they_are_set(load):
    task = load(PRODUCT, rows=3, features=300)
    assert [array.shape for array in task.arrays_at("cpu")] == [(3, 300), (100, 300), (100,)]
    assert "rows = 3\n" in task.source
    pair = load(PRODUCT.replace("rows = 64\nfeatures = 128", "rows, features = 64, 2 * 64"), features=300)
    assert "rows, features = 64, 300\n" in pair.source


@pytest.mark.parametrize(
    ("text", "constants", "complaint"),
    [
        (PRODUCT, {"columns": 3}, "assigns no 'columns'; its constants are rows, features"),
        ("x = (", {}, "SyntaxError"),
        ("import torch\n", {}, "defines no Model"),
        (PRODUCT.replace("torch.relu(", "torch.rand_like("), {}, "two calls of Model give different outputs"),
        (PRODUCT.replace("torch.rand(rows, features)", "torch.rand(rows, features) ** 3"), {}, "distribution of x is"),
        (PRODUCT.replace("return [torch", "return ['text', torch"), {}, "get_inputs gives 2 inputs"),
    ],
)
def test_a_file_that_cannot_be_used_says_why(load, text, constants, complaint):
    with pytest.raises(TaskFileError, match=complaint):
        load(text, **constants)


def test_triangles_scales_and_signs_are_recognised():
    rng = np.random.default_rng(0)
    upper = [np.triu(rng.random((90, 90), np.float32)) for _ in range(3)]
    assert torch_file.recognise(upper) == "triu(uniform(0,1))"
    scaled = [rng.random((50, 70), np.float32) * rng.random(dtype=np.float32) for _ in range(16)]
    assert torch_file.recognise(scaled) == "uniform(0,1)*scalar:uniform(0,1)"
    signs = [rng.integers(0, 2, 5000).astype(np.float32) * 2 - 1 for _ in range(2)]
    assert torch_file.recognise(signs) == "sign(uniform(-1,1))"


RELU = PRODUCT.replace("torch.relu(self.fc(x))", "torch.relu(x - 0.5)")
PROGRAM = """
import cupy as cp

source = r'''
extern "C" __global__ void shifted_relu(const float* x, float* out, int size) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < size) out[i] = fmaxf(x[i] - 0.5f, 0.0f);
}
'''
shifted_relu = cp.RawKernel(source, "shifted_relu")


def forward(x, fc_weight, fc_bias):
    out = cp.empty(x.shape, cp.float32)
    shifted_relu(((x.size + 255) // 256,), (256,), (x, out, x.size))
    return out
"""


@pytest.mark.slow
def test_programs_are_judged_against_the_model(tmp_path, capsys):
    from evaluator.commands.command_line import main

    (tmp_path / "relu.py").write_text(RELU)
    (tmp_path / "right.py").write_text(PROGRAM)
    (tmp_path / "wrong.py").write_text(PROGRAM.replace("- 0.5f", "- 0.51f"))
    endings = {}
    for name in ("right", "wrong"):
        arguments = ["check", str(tmp_path / f"{name}.py"), f"--task={tmp_path / 'relu.py'}", "--set=rows=30"]
        endings[name] = main([*arguments, "--mode=quick"]), capsys.readouterr().out
    assert endings["right"][0] == 0
    assert "right.py: ok" in endings["right"][1]
    assert endings["wrong"][0] != 0
    assert "wrong.py: ok" not in endings["wrong"][1]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--task=1_019", "--set=dim=3"], "--task=1_019 is not the path of one"),
        (["--task=absent.py"], "absent.py: no such file"),
        (["--task=absent.py", "--set=dim"], "expected NAME=VALUE"),
    ],
)
def test_a_wrong_use_is_said(tmp_path, capsys, arguments, said):
    from evaluator.commands.command_line import main

    (tmp_path / "right.py").write_text(PROGRAM)
    assert main(["check", str(tmp_path / "right.py"), *arguments]) == 2
    assert said in capsys.readouterr().err
