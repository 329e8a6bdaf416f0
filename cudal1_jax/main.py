"""Train a policy: `python -m cudal1_jax.main --config=configs/crl.py[:smoke] [--run=NAME] [--fresh] [--config.K=V]`.

With --dry_run it trains nothing and says what the run would take of each device's memory.

The same command continues a run that was stopped or killed, and prints the table of one that has finished. Exit code 0:
finished; 1: the run cannot go on, with the cure on stderr and nothing recorded lost; 2: wrong flags.
"""

import errno
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from absl import app, flags, logging
from ml_collections import ConfigDict, config_flags

if TYPE_CHECKING:
    from cudal1_jax.report.run_directory import RunDirectory

# Judging processes import this module again when they start: whatever needs JAX is imported where it is used.

INTERRUPTED = 130  # exit code, as of shells

CONFIG = config_flags.DEFINE_config_file("config", help_string="page of configs/; `:smoke` after it makes a small run")
RUN = flags.DEFINE_string("run", None, "name of the run; default: the config's name")
RUNS = flags.DEFINE_string("runs", "runs", "folder that holds the runs")
FRESH = flags.DEFINE_bool("fresh", False, "set an earlier run of this name aside and begin again")
DRY_RUN = flags.DEFINE_bool("dry_run", False, "print what the run would take of each device's memory, and end")
MEMORY_GB = flags.DEFINE_float("memory_gb", 80.0, "of a device, for --dry_run", lower_bound=0.0)
TOPOLOGY = flags.DEFINE_string("topology", "", "of a TPU, as v5e:4x4, for --dry_run; needs libtpu and no TPU")


def main(argv: Sequence[str]) -> None:
    started_s = time.monotonic()
    logging.set_verbosity(logging.FATAL)  # Orbax tells of every step of a checkpoint, and logs the errors it raises
    from cudal1_jax.contrastive.store import StoreError
    from cudal1_jax.report.run_directory import RunError

    name = RUN.value or CONFIG.value.name
    if name != Path(name).name or name.startswith("."):
        _fail(2, f"--run={name}: a run's name is a folder's, without slashes and not beginning with a dot")
    path = Path(RUNS.value) / name
    try:
        if DRY_RUN.value:
            sys.exit(dry_run(CONFIG.value))
        print(train(CONFIG.value, path, fresh=FRESH.value, started_s=started_s))
    except (RunError, StoreError) as error:
        _fail(1, str(error))
    except OSError as error:
        cure = "; free some space and give the same command again" if error.errno == errno.ENOSPC else ""
        _fail(1, f"{error}{cure}")
    except KeyboardInterrupt:
        _fail(INTERRUPTED, "stopped; the same command continues the run")


def train(config: ConfigDict, path: Path, *, fresh: bool, started_s: float) -> str:
    """Begin, continue or look up the run in `path`, and give its final table."""
    from cudal1_jax.report import run_directory, summary
    from cudal1_jax.stages import checks, pipeline

    # A judge on this machine needs most of the GPU that JAX would take for itself.
    if config.get("device") == "cuda" and config.pool.kind == "local":
        os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
        os.environ.setdefault("XLA_PYTHON_CLIENT_MEM_FRACTION", f"{1 - config.judge.gpu_share:g}")
    checks.check(config)
    _keep_compiled()
    if fresh and path.exists():
        with run_directory.RunLock(path):
            print(f"the earlier run lies in {run_directory.set_aside(path)}", file=sys.stderr)
    directory = run_directory.open_run(path, config.to_dict())
    with run_directory.RunLock(path):
        if _left(config, directory):
            pipeline.run(config, directory, now=time.monotonic, started_s=started_s)
        left = _left(config, directory)
        note = f"\nstopped at its time limit, {left} iterations before the end: the same command goes on"
        return summary.table(summary.load(directory)) + (note if left else "")


def dry_run(config: ConfigDict) -> int:
    """Prints a table of bytes on each device of the config's mesh. Exit code 0: the run fits there, 1: it does not."""
    from cudal1_jax.stages import dry_run, policy

    dry_run.simulate(TOPOLOGY.value)
    model = policy.load_shape(config.policy.model)
    text, fits = dry_run.run(config, model, topology=TOPOLOGY.value, bytes_per_device=int(MEMORY_GB.value * 1e9))
    print(text)
    return 0 if fits else 1


def _keep_compiled() -> None:
    """What XLA compiles for an accelerator, tens of seconds a program, is kept for the next run."""
    import jax

    from evaluator.devices import object_cache

    if jax.default_backend() != "cpu":
        jax.config.update("jax_compilation_cache_dir", str(object_cache.folder("xla")))


def _left(config: ConfigDict, directory: "RunDirectory") -> int:
    """Iterations that a run has still to make; 1 where it has not ended and is counted otherwise."""
    from cudal1_jax.report import summary

    if not directory.is_finished():
        return config.get("iterations", 1)
    return max(0, config.get("iterations", 0) - summary.load(directory).iterations)


def parse_flags(argv: Sequence[str]) -> list[str]:
    """Flags as absl parses them; whatever is wrong with them is one line on stderr and exit code 2."""
    try:
        rest = flags.FLAGS(list(argv))
        if len(rest) > 1:
            raise ValueError(f"unexpected argument {rest[1]!r}: every option begins with --")
        if CONFIG.value is None:
            raise ValueError("--config is missing: give a page, for example --config=configs/crl.py")
        if "name" not in CONFIG.value or "stage" not in CONFIG.value:
            raise ValueError("the page of --config has no `name` or no `stage`: begin with a copy of configs/crl.py")
        CONFIG.value.lock()
    except (flags.Error, ValueError, TypeError, KeyError, AttributeError, OSError) as error:
        _fail(2, _innermost(error))
    return rest


def _innermost(error: BaseException) -> str:
    """The text of an error of the config library, which wraps errors in errors."""
    while error.args and isinstance(error.args[0], BaseException):
        error = error.args[0]
    lines = str(error.args[0] if error.args else error).strip().splitlines()
    if any(line.startswith("Traceback") for line in lines):  # a config page that raised: its last line says why
        return lines[-1].partition(": ")[2]
    text = " ".join(line.strip() for line in lines)
    return f"no such config key: {text}" if isinstance(error, KeyError | AttributeError) else text


def _fail(code: int, text: str) -> NoReturn:
    print(f"error: {text}", file=sys.stderr)
    sys.exit(code)


if __name__ == "__main__":
    try:
        app.run(main, flags_parser=parse_flags)
    except SystemExit as end:
        if end.code != INTERRUPTED:
            raise
        sys.stderr.flush()
        os._exit(INTERRUPTED)  # XLA ends no computation that runs, and the interpreter would wait for it
