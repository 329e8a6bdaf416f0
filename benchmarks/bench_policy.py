"""How often a policy writes a right program, and how often a new one, with no exemplar in the prompt.

    python benchmarks/bench_policy.py --corpus=data/corpus [--adapter=shipped] [--samples=8] [--temperature=0.9]

Asks for the corpus' held-out tasks and for the benchmark tasks that have a plain program, judges every completion for
correctness on the emulator, and prints one row per family. `novel` counts right programs whose token stream (comments
out, identifiers renumbered) is that of no training program and of no program under kernels/. Reports, never fails.
"""

import argparse
import collections
import dataclasses
import json
from collections.abc import Iterable, Sequence
from pathlib import Path

import jax
import numpy as np
from tqdm import tqdm

from cudal1_jax.contrastive import prompt
from cudal1_jax.corpus import folder
from cudal1_jax.corpus.example import stream_digest
from cudal1_jax.policy import lora
from cudal1_jax.rollout.options import SamplingOptions
from cudal1_jax.rollout.sampler import sample
from cudal1_jax.stages import policy
from evaluator.judge import table
from evaluator.judge.baseline import kernels_folder
from evaluator.program.extract import extract
from evaluator.records import Outcome, ProgramFault, Verdict
from evaluator.tasks import catalog
from evaluator.tasks.task import Task
from evaluator.workers.local import Job, LocalPool

SIZE = "cpu"


@dataclasses.dataclass(frozen=True)
class Completion:
    """One answer of the policy."""

    task: Task
    group: str  # "held out" or "benchmark"
    text: str


def complete(tasks: Iterable[tuple[str, Task]], options: argparse.Namespace) -> list[Completion]:
    """`--samples` completions of every task."""
    chosen = policy.load(
        gguf_path="",
        adapter=options.adapter,
        rank=32,
        targets=tuple(lora.TARGETS),
        seed=0,
        rollout_dtype=options.dtype,
        update_dtype=options.dtype,
    )
    params = lora.merge(chosen.rollout_params, chosen.adapter)
    sampling = SamplingOptions(
        temperature=options.temperature, max_new_tokens=options.tokens, stop_ids=chosen.tokenizer.stop_ids
    )
    found = []
    for number, (group, task) in enumerate(tqdm(list(tasks), desc="sampling", unit=" task")):
        ids = chosen.tokenizer.render_chat(prompt.render(task, SIZE, [], "cpu"))
        key = jax.random.key(options.seed)
        rollout = sample(chosen.config, params, [ids], options.samples, key, sampling, prompt_numbers=[number])
        rows = zip(rollout.tokens, rollout.lengths, strict=True)
        found += [Completion(task, group, chosen.tokenizer.decode(t[:n].tolist())) for t, n in rows]
    return found


def judge(completions: Sequence[Completion], workers: int) -> list[Verdict]:
    """Correctness verdicts, in order."""
    verdicts: dict[int, Verdict] = {}
    with LocalPool(workers, {"device": "cpu", "mode": "quick"}) as pool:
        for number, each in enumerate(completions):
            pool.submit(Job(key=number, text=each.text, task=each.task, size=SIZE, completion=True, timing=False))
        for job, verdict in tqdm(pool.completed(), total=len(completions), desc="judging", unit=" program"):
            verdicts[job.key] = verdict
    return [verdicts[number] for number in range(len(completions))]


def stream_of(completion: str) -> str | None:
    """Digest of the program in a completion; None where there is none."""
    try:
        return stream_digest(extract(completion))
    except ProgramFault:
        return None


def report(completions: Sequence[Completion], verdicts: Sequence[Verdict], known: set[str]) -> str:
    """One row per group and family, and one per benchmark task."""
    rows: dict[tuple[str, str], list[tuple[bool, bool, Outcome]]] = collections.defaultdict(list)
    for each, verdict in zip(completions, verdicts, strict=True):
        stream = stream_of(each.text)
        fact = (verdict.ok, verdict.ok and stream is not None and stream not in known, verdict.outcome)
        for key in ("all", each.task.id if each.group == "benchmark" else each.task.family):
            rows[each.group, key].append(fact)
    lines = [("group", "family or task", "samples", "ok", "novel of ok", "other outcomes")]
    for (group, key), facts in sorted(rows.items(), key=lambda item: (item[0][0], item[0][1] != "all", item[0][1])):
        ok, novel = sum(f[0] for f in facts), sum(f[1] for f in facts)
        other = collections.Counter(str(f[2]) for f in facts if not f[0])
        named = ", ".join(f"{name} {count}" for name, count in other.most_common(4))
        share = f"{novel / ok:.0%}" if ok else "-"
        lines.append((group, key, str(len(facts)), f"{ok / len(facts):.0%}", share, named))
    return table.columns(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path, default=Path("data/corpus"))
    parser.add_argument("--adapter", default="shipped", help="shipped, a PEFT folder, or empty for the base model")
    parser.add_argument("--samples", type=int, default=8)
    parser.add_argument("--temperature", type=float, default=0.9)
    parser.add_argument("--tokens", type=int, default=512)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=Path, help="JSON lines of completions and outcomes")
    options = parser.parse_args()
    kernels = kernels_folder()
    programs = sorted(kernels.glob("*/*.py"))
    held_out = [("held out", example.task) for example in folder.read_held_out(options.corpus)]
    benchmark = [("benchmark", catalog.get(name)) for name in sorted({path.parent.name for path in programs})]
    completions = complete([*held_out, *benchmark], options)
    verdicts = judge(completions, options.workers)
    if options.out:
        with options.out.open("w", encoding="utf-8") as file:
            for each, verdict in zip(completions, verdicts, strict=True):
                row = {"task": each.task.id, "family": each.task.family, "outcome": verdict.outcome}
                file.write(json.dumps(row | {"message": verdict.message, "text": each.text}) + "\n")
    known = {example.stream for example in folder.read_examples(options.corpus)}
    known |= {stream_digest(path.read_text(encoding="utf-8")) for path in programs}
    print(report(completions, verdicts, known))
    lengths = [len(each.text) for each in completions]
    print(f"{len(completions)} completions, mean length {np.mean(lengths):.0f} characters; {options}")


if __name__ == "__main__":
    main()
