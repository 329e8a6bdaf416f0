"""`python -m evaluator serve`: its options, and the server that they make."""

import argparse
import asyncio
import logging
import sys
from collections.abc import Mapping
from pathlib import Path

from evaluator.devices.cuda import machine
from evaluator.judge.ladder import Judge
from evaluator.judge.option_values import at_least
from evaluator.tasks.task import Task
from evaluator.workers import key_file
from evaluator.workers.judging_process import MakeJudge
from evaluator.workers.remote import host_and_port
from evaluator.workers.server import Server


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--address", default="127.0.0.1:0", metavar="HOST:PORT", help="port 0: any (127.0.0.1:0)")
    parser.add_argument("--key-file", default="", metavar="PATH", help="made if absent; or set $CUDAL1_POOL_KEY")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--workers", type=at_least(0), default=0, metavar="N", help="0: one for each GPU, or one")
    parser.add_argument("--compilers", type=at_least(0), default=0, metavar="N", help="of each worker; 0: by the cores")
    parser.add_argument("--tasks-file", type=Path, metavar="FILE", help="a Python file with tasks of your own")


def serve(options: argparse.Namespace, tasks: Mapping[str, Task], make_judge: MakeJudge = Judge) -> None:
    """Serves until told to end; the first line of stdout is the address. PoolError, ValueError, OSError: cannot."""
    host, port = host_and_port(options.address)
    key, is_new = key_file.load_or_create(options.key_file)
    if is_new:
        print(f"made a key: copy {options.key_file} to where the learner runs", file=sys.stderr)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", stream=sys.stderr)
    workers = options.workers or _gpus(options.device)
    server = Server(key, tasks, options.device, workers, make_judge, compilers=options.compilers)

    def listening(address: str) -> None:
        print(f"{address} judges on {options.device} with {workers} worker{'s' * (workers > 1)}", flush=True)

    asyncio.run(server.run(host, port, listening))


def _gpus(device: str) -> int:
    driver = machine.driver() if device == "cuda" else None
    return max(1, len(driver.gpus)) if driver is not None else 1
