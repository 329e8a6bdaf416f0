"""The command on a small folder, end to end, and its refusals."""

import json
import time

import pytest

from evaluator.commands import command_line
from evaluator.judge.baseline import kernels_folder
from evaluator.mutants import command
from evaluator.mutants.crew import Failure
from evaluator.mutants.exposure import Exposure
from evaluator.mutants.trial import Original, State, Trial
from evaluator.program.identity import sha256
from evaluator.records import Outcome

PRODUCT = (kernels_folder() / "1_001" / "plain.py").read_text()
BY_RAMP = Exposure("ramp", 5, "random", "value", 3.25)
KINDS = "temporary_in_half,bound_check_dropped,loop_bound_short,sum_in_half"

pytestmark = pytest.mark.filterwarnings("ignore:.*landlock.*:RuntimeWarning")


def run(capsys, *arguments):
    """Exit code, stdout and stderr of one command."""
    try:
        code = command_line.main(["mutants", *(str(argument) for argument in arguments)])
    except SystemExit as error:  # argparse
        code = error.code
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "1_001").mkdir()
    (tmp_path / "1_001" / "product.py").write_text(PRODUCT)
    return tmp_path


def test_mutants_of_one_program_end_to_end_and_again_from_the_file(folder, capsys):
    arguments = (folder, f"--kinds={KINDS}", "--draws=10", f"--out={folder / 'out.jsonl'}")
    code, out, err = run(capsys, *arguments, "--json")
    assert code == 0, err
    found = {record["kind"]: record for record in map(json.loads, out.splitlines())}
    seen = {kind: (record["state"], record["outcome"], record["exposed"]) for kind, record in found.items()}
    assert seen == {
        "temporary_in_half": ("refused", "wrong_shape", False),
        "bound_check_dropped": ("tried", "out_of_bounds", True),
        "loop_bound_short": ("tried", "wrong_value", True),
        "sum_in_half": ("tried", "precision_downgrade", True),
    }
    assert "caught: 3 of 3 exposed (100.00%)" in err
    kept = (folder / "out.jsonl").read_bytes()

    code, out, _ = run(capsys, *arguments)  # nothing is left to do, and the table is the same
    assert code == 0
    assert "caught: 3 of 3 exposed (100.00%)" in out
    assert (folder / "out.jsonl").read_bytes() == kept


class ScriptedCrew:
    """Hands out what `of_mutant` makes of each mutant, and finds every program fast enough."""

    def __init__(self, of_mutant):
        self._of_mutant = of_mutant

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def records(self, batches, until_s):
        for batch in batches:
            if not batch.mutants:
                yield Original(batch.program, sha256(batch.text), 1.0, None)
            elif time.monotonic() < until_s:
                yield from (self._of_mutant(batch, mutant) for mutant in batch.mutants)


def trial_of(mutant, outcome, exposure):
    kept = {name: value for name, value in vars(mutant).items() if name != "text"}
    return Trial(**kept, state=State.TRIED, outcome=outcome, message="", exposure=exposure, seconds=0.1)


@pytest.mark.parametrize(
    ("of_mutant", "code", "shown"),
    [
        (lambda batch, mutant: trial_of(mutant, Outcome.WRONG_VALUE, None), 0, "caught: 1 of 1"),
        (lambda batch, mutant: trial_of(mutant, Outcome.OK, None), 0, "0 of the 1 that ran are exposed, 1 are not"),
        (lambda batch, mutant: trial_of(mutant, Outcome.OK, BY_RAMP), 1, "exposed by draw 5 (ramp, random order)"),
        (lambda batch, mutant: Failure(batch, "out of luck"), 3, "out of luck"),
    ],
    ids=["caught", "unexposed", "survivor", "failure"],
)
def test_the_exit_code_says_whether_a_mutant_survived(folder, capsys, monkeypatch, of_mutant, code, shown):
    monkeypatch.setattr(command, "Crew", lambda workers, settings: ScriptedCrew(of_mutant))
    seen, out, err = run(capsys, folder, "--kinds=loop_bound_short", "--limit=1")
    assert seen == code
    assert shown in out + err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("no_such_folder",), "is no folder and no file"),
        ((__file__,), "its folder is not called after a task"),
        (("--kinds=frobnicate",), "there is no kind of fault 'frobnicate'"),
        (("--device=tpu",), "invalid choice"),
        (("--size=huge",), "has no size 'huge'"),
    ],
)
def test_wrong_use_is_2_and_says_what_is_wrong(arguments, message, capsys):
    code, out, err = run(capsys, *arguments)
    assert (code, out) == (2, "")
    assert message in err


def test_time_that_is_up_leaves_mutants_for_the_next_run(folder, capsys, monkeypatch):
    monkeypatch.setattr(
        command,
        "Crew",
        lambda workers, settings: ScriptedCrew(lambda batch, mutant: trial_of(mutant, Outcome.WRONG_VALUE, None)),
    )
    out = folder / "out.jsonl"
    arguments = (folder, "--kinds=term_dropped,plus_to_minus", f"--out={out}")
    _, text, _ = run(capsys, *arguments, "--minutes=1e-9")
    assert "not tried yet; see --out" in text
    _, text, _ = run(capsys, *arguments)
    assert "not tried yet" not in text


def test_programs_that_are_left_out_are_named_with_the_reason(folder, capsys, monkeypatch):
    def wrong(batch, mutant):
        return Original(batch.program, sha256(batch.text), 1.5, "wrong_value: seen 1")

    monkeypatch.setattr(command, "Crew", lambda workers, settings: ScriptedCrew(wrong))
    assert "product.py: wrong_value: seen 1" in run(capsys, folder, "--kinds=loop_bound_short")[1]
    code, out, _ = run(capsys, folder, "--kinds=loop_bound_short", "--slowest-ms=0.5")
    assert code == 0
    assert "left out, since a run takes more than 0.5 ms of CPU" in out
    assert "product.py (1)" in out


def test_results_of_another_seed_are_wrong_use(folder, capsys, monkeypatch):
    caught = lambda batch, mutant: trial_of(mutant, Outcome.WRONG_VALUE, None)  # noqa: E731
    monkeypatch.setattr(command, "Crew", lambda workers, settings: ScriptedCrew(caught))
    arguments = (folder, "--kinds=launch_dropped", f"--out={folder / 'out.jsonl'}")
    assert run(capsys, *arguments)[0] == 0
    code, _, err = run(capsys, *arguments, "--seed=1")
    assert code == 2
    assert "name another file" in err


def test_a_file_that_is_no_python_is_wrong_use(folder, capsys):
    (folder / "1_001" / "bad.py").write_text("def forward(:")
    code, _, err = run(capsys, folder)
    assert code == 2
    assert "bad.py: not Python" in err


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_of_a_thousand_mutants_99_in_a_hundred_of_the_exposed_are_caught(tmp_path, capsys):
    _, out, _ = run(capsys, kernels_folder(), "--limit=1060", "--json", f"--out={tmp_path / 'out.jsonl'}")
    records = [json.loads(line) for line in out.splitlines()]
    exposed = [record for record in records if record["exposed"]]
    assert len(records) == 1060
    assert len({record["program"] for record in records}) >= 60
    assert len({record["kind"] for record in exposed}) >= 15
    assert sum(record["caught"] for record in exposed) >= 0.99 * len(exposed)
