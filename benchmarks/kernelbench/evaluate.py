"""One program, evaluated by a checkout of KernelBench in this process: `evaluate.py CHECKOUT TASK BUILD_FOLDER`.

Prints one line of JSON: outcome and the seconds of its evaluation, without the imports before. As its scripts do, with
5 trials of correctness and 100 of time.
"""

import json
import sys
import time
from pathlib import Path

CORRECT_TRIALS, TIMED_TRIALS = 5, 100


def program_of(task_id: str) -> str:
    """The extension of a task, with the kernel of our plain program for it."""
    here = Path(__file__).parent
    plain = (here.parents[1] / "kernels" / task_id / "plain.py").read_text()
    kernel = plain.partition("source = r'''\n")[2].partition("'''")[0]
    return (here / f"{task_id}.py").read_text().replace("// THE KERNEL\n", kernel.replace('extern "C" ', ""))


def main(checkout: Path, task_id: str, build: str) -> None:
    sys.path.insert(0, str(checkout / "src"))
    from kernelbench.eval import eval_kernel_against_ref

    level, number = task_id.split("_")
    (reference,) = (checkout / "KernelBench" / f"level{level}").glob(f"{int(number)}_*.py")
    program = program_of(task_id)
    began_s = time.perf_counter()
    found = eval_kernel_against_ref(
        reference.read_text(),
        program,
        num_correct_trials=CORRECT_TRIALS,
        num_perf_trials=TIMED_TRIALS,
        measure_performance=True,
        build_dir=build,
    )
    seconds = time.perf_counter() - began_s
    outcome = "no result" if found is None else "ok" if found.correctness else "wrong" if found.compiled else "no build"
    print(json.dumps({"outcome": outcome, "seconds": seconds}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
