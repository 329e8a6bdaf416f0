"""`python -m cudal1_jax.corpus`: make, measure, verify or describe the corpus of stage 1."""

import argparse
import dataclasses
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from cudal1_jax.corpus import folder, make, statistics
from cudal1_jax.corpus.folder import CorpusError, Recipe
from cudal1_jax.policy import tokenizer
from evaluator.judge.baseline import kernels_folder

SHARD = 500  # examples drawn at a time


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status: 0 done, 1 a program of the corpus is not ok, 2 wrong use."""
    options = _parser().parse_args(arguments)
    try:
        if options.command == "verify":
            return _verify(options)
        return _make(options)
    except CorpusError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m cudal1_jax.corpus", description=__doc__)
    parser.add_argument("command", nargs="?", choices=("make", "verify"), default="make")
    parser.add_argument("--out", type=Path, default=Path("data/corpus"), help="folder of the corpus")
    parser.add_argument("--singles", type=_positive, default=24_000, help="examples without exemplars")
    parser.add_argument("--contests", type=_count, default=900, help="tasks whose programs are measured")
    parser.add_argument("--per_contest", type=_positive, default=12, help="contrastive examples of a contest, at most")
    parser.add_argument("--kernel_contests", type=_count, default=5, help="contests for each task of kernels/")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=_positive, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--most_tokens", type=_positive, default=436, help="tokens of a program")
    parser.add_argument("--measure", action="store_true", help="time contests and write the contrastive examples")
    parser.add_argument("--share", type=_share, default=0.02, help="verify: share of every family and form")
    return parser


def _make(options: argparse.Namespace) -> int:
    kernels = kernels_folder()
    if options.kernel_contests and kernels is None:
        raise CorpusError("no kernels/ to draw contests from: run from a full checkout, or with --kernel_contests=0")
    recipe = Recipe(
        seed=options.seed,
        singles=options.singles,
        contests=options.contests,
        per_contest=options.per_contest,
        kernel_contests=options.kernel_contests,
        most_tokens=options.most_tokens,
        shard=min(SHARD, options.singles),
        version=folder.generator_version(kernels if options.kernel_contests else None),
    )
    make.make(options.out, recipe, options.workers, kernels if options.kernel_contests else None)
    not_ok = 0
    if options.measure:
        from cudal1_jax.corpus import measure  # starts processes that judge

        not_ok = measure.measure(options.out, options.workers, options.per_contest)
    _describe(options.out, recipe, measured=options.measure)
    if not_ok:
        print(f"{not_ok} measured programs are not ok; their outcomes are in {options.out / 'measured.jsonl'}")
    return 1 if not_ok else 0


def _describe(out: Path, recipe: Recipe, measured: bool) -> None:
    """Write the manifest with the corpus' figures, and print them."""
    examples = list(folder.read_examples(out))
    tokens = tokenizer.load()
    lengths = statistics.lengths(
        [*examples, *folder.read_held_out(out)],
        lambda text: len(tokens.render_chat(text)),
        lambda text: len(tokens.encode(text)),
    )
    figures = statistics.counts(examples)
    manifest = {
        "recipe": dataclasses.asdict(recipe),
        "complete": measured or recipe.contests + recipe.kernel_contests == 0,
        **figures,
        "tokens": {kind: dataclasses.asdict(length) for kind, length in lengths.items()},
    }
    folder.write_manifest(out, manifest)
    for kind, length in lengths.items():
        print(
            f"{kind:<12}{length.examples:>7} examples, tokens of a prompt {length.prompt_mean:.0f} "
            f"(most {length.prompt_most}), of a completion {length.completion_mean:.0f} (most {length.completion_most})"
        )
    families = ", ".join(f"{name} {count}" for name, count in figures["by_family"].items())
    print(f"{figures['distinct_programs']} distinct programs, {figures['distinct_step_lists']} step lists: {families}")
    if not manifest["complete"]:
        print("contests await their figures: run the same command with --measure")


def _verify(options: argparse.Namespace) -> int:
    from cudal1_jax.corpus import verify  # as `measure`

    folder.read_manifest(options.out)
    found = verify.verify(options.out, options.share, options.seed, options.workers)
    print(verify.table(found))
    return 0 if all(ok == judged for ok, judged, _ in found.values()) else 1


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a positive number")
    return value


def _count(text: str) -> int:
    value = int(text)
    if value < 0:
        raise argparse.ArgumentTypeError(f"{text} is negative")
    return value


def _share(text: str) -> float:
    value = float(text)
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"{text} is not between 0 and 1")
    return value


if __name__ == "__main__":
    sys.exit(main())
