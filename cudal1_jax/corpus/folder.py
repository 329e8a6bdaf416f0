"""A corpus on disk: shards of JSON lines and a manifest, written whole or not at all, so that a killed run goes on."""

import dataclasses
import hashlib
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from cudal1_jax.corpus import example
from cudal1_jax.corpus.example import Contest, Example
from evaluator.whole_file import write_whole

MANIFEST = "manifest.json"
HELD_OUT = "heldout.jsonl"


class CorpusError(Exception):
    """A folder that cannot be used as asked; the message says what to do."""


@dataclasses.dataclass(frozen=True)
class Recipe:
    """What a corpus is made from; equal recipes give equal bytes, the measured figures apart."""

    seed: int
    singles: int  # examples without exemplars
    contests: int  # tasks whose programs are measured
    per_contest: int  # contrastive examples of a contest, at most
    kernel_contests: int  # contests for each task of `kernels/` that is not kept out
    most_tokens: int  # of a program
    shard: int  # candidates drawn at a time; programs that an earlier shard holds are then left out
    version: str  # of the generator: digest of its source and of the programs of `kernels/`


def generator_version(kernels: Path | None) -> str:
    """Digest of the source of this package and of the programs under `kernels`."""
    digest = hashlib.sha256()
    for path in (*sorted(Path(__file__).parent.glob("*.py")), *sorted(kernels.glob("*/*.py") if kernels else ())):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def open_for(folder: Path, recipe: Recipe) -> None:
    """Make the folder, or check that what lies in it was made by the same recipe."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / MANIFEST
    wanted = dataclasses.asdict(recipe)
    if not path.exists():
        if any(folder.iterdir()):
            raise CorpusError(f"{folder} holds files but no {MANIFEST}: choose an empty folder with --out")
        write_manifest(folder, {"recipe": wanted, "complete": False})
        return
    found = read_manifest(folder)["recipe"]
    differing = [
        f"{key} {found.get(key)!r} there, {value!r} asked" for key, value in wanted.items() if found.get(key) != value
    ]
    if differing:
        raise CorpusError(
            f"{folder} was made by another recipe ({'; '.join(differing)}): "
            "remove it or choose another folder with --out"
        )


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest; CorpusError where there is none or it cannot be read."""
    try:
        manifest: dict[str, Any] = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise CorpusError(
            f"{folder} holds no corpus: make one with `python -m cudal1_jax.corpus --out={folder}`"
        ) from None
    except ValueError as error:
        raise CorpusError(f"{folder / MANIFEST} is damaged ({error}): remove the folder and make it again") from None
    return manifest


def write_manifest(folder: Path, manifest: dict[str, Any]) -> None:
    write_lines(folder / MANIFEST, [json.dumps(manifest, indent=2)])


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """Write a file, and its folder if need be, so that it is never seen half written."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, (f"{line}\n" for line in lines))


def shard_path(folder: Path, kind: str, shard: int) -> Path:
    return folder / kind / f"{shard:05d}.jsonl"


def shards(folder: Path, kind: str) -> list[Path]:
    return sorted((folder / kind).glob("?????.jsonl"))


def read_examples(folder: Path, kinds: tuple[str, ...] = ("single", "variant", "contrastive")) -> Iterator[Example]:
    """The examples of a corpus in order. CorpusError where a line is damaged."""
    for kind in kinds:
        for path in shards(folder, kind):
            yield from (_parsed(path, number, line) for number, line in _lines(path))


def read_held_out(folder: Path) -> list[Example]:
    """The tasks kept out of training, each with its plain program."""
    path = folder / HELD_OUT
    return [_parsed(path, number, line) for number, line in _lines(path)]


def read_contests(folder: Path) -> Iterator[Contest]:
    """The tasks whose programs are measured for contrastive examples."""
    for path in (*shards(folder, "contest"), *shards(folder, "kernels")):
        yield from (example.contest_from_json(line) for _, line in _lines(path))


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    with path.open(encoding="utf-8") as file:
        yield from enumerate(file, start=1)


def _parsed(path: Path, number: int, line: str) -> Example:
    try:
        return example.from_json(line)
    except (ValueError, KeyError, TypeError) as error:
        raise CorpusError(
            f"{path}, line {number} is damaged ({error}): remove the file and run the same command again"
        ) from None
