import dataclasses
from pathlib import Path
from random import Random

import pytest

from cudal1_jax.corpus import canonical, generate, kernel_contests
from cudal1_jax.corpus.respelling import respelled
from evaluator.judge.baseline import kernels_folder
from evaluator.nn import run
from evaluator.program.identity import token_stream
from evaluator.tasks import catalog

PROGRAM = """import cupy as cp

source = r'''
extern "C" __global__ void relu(const float* x, float* out, long long size) {
  long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < size) out[i] = fmaxf(x[i], 0.0f);
}
'''
relu = cp.RawKernel(source, "relu")


def forward(x):
    out = cp.empty(x.shape, cp.float32)
    relu(((x.size + 255) // 256,), (256,), (x, out, x.size))
    return out
"""


def test_other_words_leave_the_token_stream_as_it_is():
    texts = {respelled(PROGRAM, Random(seed), kept=("x",)) for seed in range(20)}
    assert len(texts) > 10
    assert {token_stream(text) for text in texts} == {token_stream(PROGRAM)}
    assert all("x.size + 255" in text and "def forward(x):" in text for text in texts)


def test_programs_of_the_corpus_and_of_kernels_keep_their_token_streams():
    made = [each.program for each in generate.singles(3, 0, 60, frozenset(), lambda text: True)]
    written = [path.read_text(encoding="utf-8") for path in Path(kernels_folder()).glob("*/*.py")]
    for text in (*made, *written):
        assert token_stream(respelled(text, Random(len(text)))) == token_stream(text)
    assert sum(respelled(text, Random(0)) != text for text in made) >= 55


@pytest.fixture(scope="module")
def contests():
    folder = kernels_folder()
    assert folder is not None
    return kernel_contests.contests(0, folder, 2, lambda text: len(text) < 1_600)


def test_no_program_of_a_real_task_is_in_a_contest(contests):
    tasks = {contest.key.removeprefix("kernels ") for contest in contests}
    assert not tasks & canonical.KEPT_OUT
    assert len(tasks) >= 15


def test_contests_between_kernels_hold_no_docstring_and_no_program_as_it_stands(contests):
    known = {path.read_text(encoding="utf-8") for path in Path(kernels_folder()).glob("*/*.py")}
    for contest in contests:
        assert contest.kernels
        assert 1 <= len(contest.candidates) <= kernel_contests.PROGRAMS
        for program in contest.candidates:
            assert program.text.startswith("import cupy")
            assert program.text not in known


def test_a_block_size_is_changed_where_the_launch_alone_knows_it():
    texts = {kernel_contests._other_block(Random(seed), PROGRAM) for seed in range(20)}
    assert len(texts) == 4
    for text in texts:
        (block,) = [size for size in kernel_contests.BLOCKS if f"({size},)" in text]
        assert f"(x.size + {block - 1}) // {block}," in text
    fixed = PROGRAM.replace("blockDim.x", "256")
    assert kernel_contests._other_block(Random(1), fixed) == fixed


WITH_PROGRAMS = {folder.name for folder in kernels_folder().iterdir() if folder.is_dir()}


@pytest.mark.parametrize("task_id", sorted(WITH_PROGRAMS - canonical.KEPT_OUT))
def test_other_extents_still_make_a_task(task_id):
    task = catalog.get(task_id)
    arrays = kernel_contests._resized(Random(3), task.arrays_at("cpu"))
    changed = dataclasses.replace(task, sizes={"cpu": arrays})
    assert run.abstract(changed, "cpu")
    assert arrays[0].shape != task.arrays_at("cpu")[0].shape
