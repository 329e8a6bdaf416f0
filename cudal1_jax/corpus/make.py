"""Makes a corpus in a folder: held-out tasks, single examples, contests; goes on where it was stopped."""

import functools
import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import TypeVar

from tqdm import tqdm

from cudal1_jax.corpus import example, folder, generate, kernel_contests
from cudal1_jax.corpus.example import Contest, Example
from cudal1_jax.corpus.folder import Recipe
from cudal1_jax.policy import tokenizer

CONTESTS_SHARE = 10  # a shard holds this many times fewer contests than examples: each takes a dozen programs to draw
Item = TypeVar("Item", Example, Contest)


def make(out: Path, recipe: Recipe, workers: int, kernels: Path | None = None) -> None:
    """Write everything that needs no measurement. The same recipe gives the same bytes, stopped or not, however many
    processes draw. `kernels` is the folder of verified programs, None to do without contests between them."""
    folder.open_for(out, recipe)
    held_out = generate.held_out(recipe.seed, _fits(recipe.most_tokens))
    if not (out / folder.HELD_OUT).exists():
        folder.write_lines(out / folder.HELD_OUT, map(example.to_json, held_out))
    banned = frozenset(each.key for each in held_out)
    seen = {each.stream for each in held_out}

    def unseen(batch: Sequence[Example]) -> list[Example]:
        new = [each for each in batch if each.stream not in seen]
        seen.update(each.stream for each in new)
        return new

    draw_single = functools.partial(_singles, recipe, banned)
    _fill(out, "single", recipe.singles, workers, draw_single, unseen, example.to_json, example.from_json)
    draw_contest = functools.partial(_contests, recipe, banned)
    _fill(out, "contest", recipe.contests, workers, draw_contest, list, example.contest_json, example.contest_from_json)
    path = folder.shard_path(out, "kernels", 0)
    if kernels is not None and not path.exists():
        fits = _fits(recipe.most_tokens)
        made = kernel_contests.contests(recipe.seed, kernels, recipe.kernel_contests, fits)
        folder.write_lines(path, map(example.contest_json, made))


def _fill(
    out: Path,
    kind: str,
    count: int,
    workers: int,
    draw: Callable[[int], list[Item]],
    choose: Callable[[Sequence[Item]], list[Item]],
    write: Callable[[Item], str],
    read: Callable[[str], Item],
) -> None:
    """Shards of `kind` until there are `count` items. Shards are drawn in parallel and chosen from in order."""
    there = folder.shards(out, kind)
    done = 0
    for path in there:
        lines = path.read_text(encoding="utf-8").splitlines()
        done += len(choose([read(line) for line in lines]))
    with tqdm(total=count, initial=done, desc=f"{kind} examples", unit=" ex", disable=count == 0) as bar:
        for shard, batch in _drawn(draw, len(there), workers):
            if done >= count:
                break
            chosen = choose(batch)[: count - done]
            folder.write_lines(folder.shard_path(out, kind, shard), map(write, chosen))
            done += len(chosen)
            bar.update(len(chosen))


def _drawn(draw: Callable[[int], list[Item]], first: int, workers: int) -> Iterator[tuple[int, list[Item]]]:
    """Shards from `first` on, in order, `workers` of them drawn at a time."""
    if workers == 1:
        shard = first
        while True:
            yield shard, draw(shard)
            shard += 1
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context) as pool:
        waiting = [(shard, pool.submit(draw, shard)) for shard in range(first, first + 2 * workers)]
        try:
            while True:
                shard, future = waiting.pop(0)
                batch = future.result()
                waiting.append((waiting[-1][0] + 1, pool.submit(draw, waiting[-1][0] + 1)))
                yield shard, batch
        finally:
            for _, future in waiting:
                future.cancel()


def _singles(recipe: Recipe, banned: frozenset[str], shard: int) -> list[Example]:
    return generate.singles(recipe.seed, shard, recipe.shard, banned, _fits(recipe.most_tokens))


def _contests(recipe: Recipe, banned: frozenset[str], shard: int) -> list[Contest]:
    count = max(1, recipe.shard // CONTESTS_SHARE)
    return generate.contests(recipe.seed, shard, count, banned, _fits(recipe.most_tokens))


def _fits(most_tokens: int) -> Callable[[str], bool]:
    encode = tokenizer.load().encode
    return lambda text: len(encode(text)) <= most_tokens
