"""How often a policy writes a right program, and how often a new one, with and without exemplars in the prompt.

    python benchmarks/bench_policy.py --corpus=data/corpus [--adapter=shipped] [--samples=8] [--temperature=0.7]
    python benchmarks/bench_policy.py --corpus=data/corpus --exemplars=2       # as a run's first prompts

Asks for the corpus' held-out tasks and for the benchmark tasks that have a plain program; with --exemplars for the
latter alone, showing programs of kernels/ with their recorded speed-ups, the slowest and the fastest first. Judges
every completion for correctness on the emulator, and prints one row per family. `novel` counts right programs whose
token stream (comments out, identifiers renumbered) is that of no training program and of no program under kernels/.
Reports, never fails.
"""

import argparse
import collections
import dataclasses
import itertools
import json
from collections.abc import Sequence
from pathlib import Path

import jax
import numpy as np
from tqdm import tqdm

from cudal1_jax.contrastive import prompt
from cudal1_jax.contrastive.exemplars import Exemplar
from cudal1_jax.corpus import folder
from cudal1_jax.corpus.example import stream_digest
from cudal1_jax.policy import lora
from cudal1_jax.rollout.options import SamplingOptions
from cudal1_jax.rollout.sampler import sample
from cudal1_jax.stages import policy
from evaluator.judge import table
from evaluator.judge.baseline import kernels_folder
from evaluator.judge.verdict_json import from_json
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


def complete(tasks: Sequence[tuple[str, Task]], options: argparse.Namespace) -> list[Completion]:
    """`--samples` completions of every task, whose prompts show up to `--exemplars` programs."""
    chosen = policy.load(
        model="",
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
    with tqdm(total=len(tasks), desc="sampling", unit=" task") as bar:
        for start in range(0, len(tasks), options.batch):
            batch = tasks[start : start + options.batch]
            shown = [verified(task.id, options.exemplars) for _, task in batch]
            texts = [prompt.render(task, SIZE, some, "cpu") for (_, task), some in zip(batch, shown, strict=True)]
            ids = [chosen.tokenizer.render_chat(text) for text in texts]
            numbers = range(start, start + len(batch))
            key = jax.random.key(options.seed)
            rollout = sample(chosen.config, params, ids, options.samples, key, sampling, prompt_numbers=numbers)
            for row, (tokens, length) in enumerate(zip(rollout.tokens, rollout.lengths, strict=True)):
                group, task = batch[row // options.samples]
                found.append(Completion(task, group, chosen.tokenizer.decode(tokens[:length].tolist())))
            bar.update(len(batch))
    return found


def verified(task_id: str, count: int) -> list[Exemplar]:
    """Up to `count` programs of kernels/ for a task with their recorded speed-ups: slowest, fastest, then the rest."""
    folder = kernels_folder()
    if not count or folder is None:
        return []
    found = []
    for path in (folder / task_id).glob("*.py"):
        verdict = from_json(path.with_suffix(".cpu.json").read_text(encoding="utf-8"))
        found.append(Exemplar(path.read_text(encoding="utf-8"), verdict.speedups["plain"]))
    found.sort(key=lambda exemplar: exemplar.speedup.value)
    return [*found[:1], *found[:0:-1]][:count]


def judge(completions: Sequence[Completion], workers: int) -> list[Verdict]:
    """Correctness verdicts, in order."""
    verdicts: dict[int, Verdict] = {}
    with LocalPool(workers, {"device": "cpu", "mode": "quick"}, deadline_s=60.0) as pool:
        for number, each in enumerate(completions):
            pool.submit(Job(key=number, text=each.text, task=each.task, size=SIZE, completion=True, timing=False))
        for job, verdict in tqdm(pool.completed(), total=len(completions), desc="judging", unit=" program"):
            verdicts[job.key] = verdict
    return [verdicts[number] for number in range(len(completions))]


def write(out: Path | None, completions: Sequence[Completion], verdicts: Sequence[Verdict]) -> None:
    """JSON lines of the completions, with what is known of each; before judging that is the text alone."""
    if out is None:
        return
    with out.open("w", encoding="utf-8") as file:
        for each, verdict in itertools.zip_longest(completions, verdicts):
            row = {"task": each.task.id, "family": each.task.family, "text": each.text}
            if verdict is not None:
                row |= {"outcome": verdict.outcome, "message": verdict.message}
            file.write(json.dumps(row) + "\n")


def read(path: Path, tasks: Sequence[tuple[str, Task]]) -> list[Completion]:
    """Completions that an earlier call wrote, for those of `tasks`."""
    known = {task.id: (group, task) for group, task in tasks}
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [
        Completion(known[row["task"]][1], known[row["task"]][0], row["text"]) for row in rows if row["task"] in known
    ]


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
    parser.add_argument("--batch", type=int, default=12, help="tasks whose samples are drawn together")
    parser.add_argument("--only", default="", help="task ids with commas between")
    parser.add_argument("--exemplars", type=int, default=0, help="programs shown for each benchmark task")
    parser.add_argument("--temperature", type=float, default=0.7)
    parser.add_argument("--tokens", type=int, default=512)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--completions", type=Path, help="judge those that an earlier call wrote with --out")
    parser.add_argument("--out", type=Path, help="JSON lines of completions and outcomes")
    options = parser.parse_args()
    kernels = kernels_folder()
    if kernels is None or not (options.corpus / folder.HELD_OUT).is_file():
        print(f"no kernels/, or no corpus in {options.corpus}: `python -m cudal1_jax.corpus --out={options.corpus}`")
        return
    programs = sorted(kernels.glob("*/*.py"))
    held_out = [("held out", example.task) for example in folder.read_held_out(options.corpus)]
    benchmark = [("benchmark", catalog.get(name)) for name in sorted({path.parent.name for path in programs})]
    only = set(filter(None, options.only.split(",")))
    asked = benchmark if options.exemplars else [*held_out, *benchmark]
    tasks = [(group, task) for group, task in asked if not only or task.id in only]
    completions = read(options.completions, tasks) if options.completions else complete(tasks, options)
    write(options.out, completions, [])
    verdicts = judge(completions, options.workers)
    write(options.out, completions, verdicts)
    known = {example.stream for example in folder.read_examples(options.corpus)}
    known |= {stream_digest(path.read_text(encoding="utf-8")) for path in programs}
    print(report(completions, verdicts, known))
    lengths = [len(each.text) for each in completions]
    print(f"{len(completions)} completions, mean length {np.mean(lengths):.0f} characters; {options}")


if __name__ == "__main__":
    main()
