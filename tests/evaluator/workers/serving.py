"""What test_remote.py runs as an evaluator: `python serving.py ADDRESS KEY_FILE WORKERS`, with scripted judges."""

import argparse
import sys

import scripted_judges

from evaluator.tasks import catalog
from evaluator.workers import serve_command


def options(address, key_file, workers):
    parser = argparse.ArgumentParser()
    serve_command.add_arguments(parser)
    return parser.parse_args([f"--address={address}", f"--key-file={key_file}", f"--workers={workers}"])


if __name__ == "__main__":
    serve_command.serve(options(*sys.argv[1:]), catalog.TASKS, make_judge=scripted_judges.Obedient)
