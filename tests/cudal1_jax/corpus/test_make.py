import hashlib
from pathlib import Path

import pytest

from cudal1_jax.corpus import folder
from cudal1_jax.corpus.__main__ import main
from cudal1_jax.corpus.folder import CorpusError, Recipe
from cudal1_jax.corpus.make import make

RECIPE = Recipe(
    seed=0, singles=45, contests=15, per_contest=4, kernel_contests=0, most_tokens=420, version="test", shard=20
)


def digests(out: Path) -> dict[str, str]:
    files = sorted(path for path in out.rglob("*") if path.is_file())
    return {str(path.relative_to(out)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    out = tmp_path_factory.mktemp("corpus") / "whole"
    make(out, RECIPE, workers=1)
    return out


def test_a_corpus_has_the_examples_asked_for(whole):
    assert len(list(folder.read_examples(whole))) == RECIPE.singles == 45
    assert len(list(folder.read_contests(whole))) == RECIPE.contests == 15
    assert len(folder.read_held_out(whole)) == 40


def test_a_run_that_was_killed_goes_on_to_the_same_bytes(whole, tmp_path):
    out = tmp_path / "corpus"
    make(out, RECIPE, workers=1)
    folder.shard_path(out, "single", 2).unlink()
    folder.shard_path(out, "contest", 7).unlink()
    (out / "single" / ".00002.jsonl.partial").write_text('{"kind": "sing')  # what a kill in the middle leaves
    make(out, RECIPE, workers=1)
    (out / "single" / ".00002.jsonl.partial").unlink(missing_ok=True)
    assert digests(out) == digests(whole)


@pytest.mark.slow  # the start of two processes takes most of a minute on busy cores
def test_the_number_of_processes_does_not_show(whole, tmp_path):
    make(tmp_path / "corpus", RECIPE, workers=2)
    assert digests(tmp_path / "corpus") == digests(whole)


def test_another_recipe_is_refused_with_what_differs(whole):
    with pytest.raises(CorpusError, match=r"singles 45 there, 80 asked.*remove it or choose another folder"):
        make(whole, Recipe(**{**vars(RECIPE), "singles": 80}), workers=1)


def test_a_folder_that_holds_something_else_is_left_alone(tmp_path):
    (tmp_path / "thesis.tex").write_text("important")
    with pytest.raises(CorpusError, match="choose an empty folder"):
        make(tmp_path, RECIPE, workers=1)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_damaged_line_is_named(whole, tmp_path):
    path = folder.shard_path(tmp_path, "single", 0)
    line = folder.shard_path(whole, "single", 0).read_text().splitlines()[0]
    folder.write_lines(path, [line, line[:100]])
    with pytest.raises(CorpusError, match=r"00000\.jsonl, line 2 is damaged"):
        list(folder.read_examples(tmp_path))


def test_the_command_describes_what_it_made(tmp_path, capsys):
    arguments = [f"--out={tmp_path / 'c'}", "--singles=8", "--contests=0", "--kernel_contests=0", "--workers=1"]
    assert main(arguments) == 0
    manifest = folder.read_manifest(tmp_path / "c")
    assert manifest["complete"]
    assert manifest["examples"] == manifest["distinct_programs"] == 8
    assert sum(manifest["by_family"].values()) == 8
    assert "8 distinct programs" in capsys.readouterr().out


def test_wrong_use_of_the_command_exits_with_2(tmp_path, capsys):
    assert main(["verify", f"--out={tmp_path / 'nothing'}"]) == 2
    assert "holds no corpus: make one with" in capsys.readouterr().err
    with pytest.raises(SystemExit) as stop:
        main(["--singles=0"])
    assert stop.value.code == 2
