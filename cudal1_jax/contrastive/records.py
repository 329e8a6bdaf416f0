"""What the store keeps: prompts, samples, verdicts and hack cases."""

import dataclasses

import numpy as np

from evaluator.records import Verdict

SEED_STEP = -1  # the "iteration" to which programs from kernels/ belong


@dataclasses.dataclass(frozen=True)
class Prompt:
    """One request of an iteration. Its lineage is the list of programs that it showed."""

    prompt: int  # number within the iteration, 0 <= prompt < N
    task: str  # task id
    text: str  # user message, before the chat template
    exemplars: tuple[str, ...]  # sha256 of each program shown


@dataclasses.dataclass(frozen=True)
class Sample:
    """One completion of an iteration, with what the loss needs to use it again after a crash."""

    sample: int  # number within the iteration, 0 <= sample < B
    prompt: int  # number of the prompt it answers
    text: str  # completion, decoded
    tokens: np.ndarray  # [length] int32, end-of-turn token included where it was sampled
    logprobs: np.ndarray  # [length] float32, under the policy that sampled it, at the sampling temperature
    finished: bool  # ended by itself rather than by the token limit


@dataclasses.dataclass(frozen=True)
class Judged:
    """A verdict in its place: which sample of which iteration, and the program it is about."""

    step: int  # iteration; SEED_STEP for programs from kernels/
    sample: int
    task: str
    program: str  # "" where no program was found in the completion
    name: str  # where it came from: a file for seeds, "" for samples
    verdict: Verdict


@dataclasses.dataclass(frozen=True)
class HackCase:
    """A program that scored without earning it, kept so that later ones can be compared with it."""

    task: str
    sha256: str
    program: str
    reason: str
