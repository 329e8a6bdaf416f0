"""The command on a small folder, end to end, and its refusals."""

import json
import time

import pytest

from evaluator import __main__ as command_line
from evaluator.judge.baseline import kernels_folder
from evaluator.mutants import command
from evaluator.mutants.crew import Failure
from evaluator.mutants.derive import Mutant
from evaluator.mutants.exposure import Exposure
from evaluator.mutants.trial import Original, Settings, State, Trial, Trials
from evaluator.program.identity import sha256
from evaluator.records import Outcome
from evaluator.tasks import catalog

RELU = (kernels_folder() / "1_019" / "plain.py").read_text()
BY_RAMP = Exposure("ramp", 5, "random", "value", 3.25)
KINDS = "temporary_in_half,bound_check_dropped,tie_breaking,operand_in_bf16"

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
    (tmp_path / "1_019").mkdir()
    (tmp_path / "1_019" / "relu.py").write_text(RELU)
    return tmp_path


def test_mutants_of_one_program_end_to_end_and_again_from_the_file(folder, capsys):
    arguments = (folder, f"--kinds={KINDS}", "--draws=10", f"--out={folder / 'out.jsonl'}")
    code, out, err = run(capsys, *arguments, "--json")
    assert code == 0
    found = {record["kind"]: record for record in map(json.loads, out.splitlines())}
    seen = {kind: (record["state"], record["outcome"], record["exposed"]) for kind, record in found.items()}
    assert seen == {
        "temporary_in_half": ("refused", "wrong_shape", False),
        "bound_check_dropped": ("tried", "out_of_bounds", True),
        "tie_breaking": ("tried", "ok", False),  # zero from either side is zero
        "operand_in_bf16": ("tried", "precision_downgrade", True),
    }
    assert "caught: 2 of 2 exposed (100.00%)" in err
    kept = (folder / "out.jsonl").read_bytes()

    code, out, _ = run(capsys, *arguments)  # nothing is left to do, and the table is the same
    assert code == 0
    assert "caught: 2 of 2 exposed (100.00%)" in out
    assert (folder / "out.jsonl").read_bytes() == kept


def test_states_of_mutants_and_one_that_only_the_search_exposes():
    """Where sixteen neighbours agree on a value that is no half and no integer, no case of the judge looks."""
    changes = {
        "same": ("if (i < size)", "if (i + 0 < size)"),
        "refused": ("float v", "flout v"),
        "crude": ("out[i] = v < 0.0f", "out[i] = v < 0.01f"),
        "hidden": (
            "out[i] = v",
            "out[i] = i + 16 < size && x[i + 16] == v && x[i + 8] == v && rintf(2.0f * v) != 2.0f * v ? 0.1f : v",
        ),
    }
    mutants = [
        Mutant(name, "relu.py", "1_019", "by hand", 1, *change, RELU.replace(*change))
        for name, change in changes.items()
    ]
    with Trials(Settings(draws=20)) as trials:
        found = {trial.id: trial for trial in trials.attempt(RELU, catalog.get("1_019"), mutants)}
    assert (found["same"].state, found["same"].outcome) == (State.SAME_CODE, None)
    assert (found["refused"].state, found["refused"].outcome) == (State.REFUSED, Outcome.COMPILE_ERROR)
    assert (found["crude"].caught, found["crude"].exposed) == (True, True)
    hidden = found["hidden"]
    assert (hidden.outcome, hidden.exposed, hidden.caught) == (Outcome.OK, True, False)
    assert hidden.exposure.distribution == "plateaus"


def test_a_program_that_is_slow_or_wrong_is_left_out_with_the_reason(folder, capsys):
    (folder / "1_019" / "wrong.py").write_text(RELU.replace("0.0f : v", "1.0f : v"))
    _, out, _ = run(capsys, folder / "1_019" / "wrong.py", "--kinds=tie_breaking", "--draws=1")
    assert "left out: " in out
    assert "wrong_value" in out
    code, out, _ = run(capsys, folder / "1_019" / "relu.py", "--kinds=tie_breaking", "--slowest-ms=0.001")
    assert code == 0
    assert "left out, since a run takes more than 0.001 ms of CPU" in out
    assert "1_019/relu.py (" in out


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
    seen, out, err = run(capsys, folder, "--kinds=tie_breaking", "--limit=1")
    assert seen == code
    assert shown in out + err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("no_such_folder",), "its folder is not called after a task"),
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
    _, text, _ = run(capsys, *arguments, "--minutes=0")
    assert "not tried yet; see --out" in text
    _, text, _ = run(capsys, *arguments)
    assert "not tried yet" not in text


def test_results_of_another_seed_are_wrong_use(folder, capsys):
    out = folder / "out.jsonl"
    arguments = (folder, "--kinds=launch_dropped", "--slowest-ms=0.001", f"--out={out}")
    assert run(capsys, *arguments)[0] == 0
    code, _, err = run(capsys, *arguments, "--seed=1")
    assert code == 2
    assert "name another file" in err
    assert out.exists()


def test_a_file_that_is_no_python_is_wrong_use(folder, capsys):
    (folder / "1_019" / "bad.py").write_text("def forward(:")
    code, _, err = run(capsys, folder)
    assert code == 2
    assert "bad.py: not Python" in err


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_of_a_thousand_exposed_mutants_99_in_a_hundred_are_caught(tmp_path, capsys):
    _, out, _ = run(capsys, kernels_folder(), "--limit=1300", "--json", f"--out={tmp_path / 'out.jsonl'}")
    records = [json.loads(line) for line in out.splitlines()]
    exposed = [record for record in records if record["exposed"]]
    assert len(records) == 1300
    assert len({record["program"] for record in records}) >= 60
    assert len({record["kind"] for record in exposed}) >= 15
    assert sum(record["caught"] for record in exposed) >= 0.99 * len(exposed)
