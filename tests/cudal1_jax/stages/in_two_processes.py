"""Run twice by test_processes.py: COORDINATOR COUNT NUMBER. Prints what was done, in order, as JSON."""

import json
import sys

from cudal1_jax.stages import processes


def main(coordinator: str, count: str, number: str) -> list:
    processes.start(coordinator, int(count), int(number))
    done = []

    def roll_out(step: int, prompts: list[str]) -> int:
        done.append(["roll_out", step, prompts])
        return len(prompts)

    def save(step: int) -> None:
        done.append(["save", step])

    if processes.leads():
        there = processes.announced("roll_out", roll_out)(0, ["a prompt", "another" * 1000])
        processes.announced("save", save)(there)
        processes.dismiss()
    else:
        processes.follow({"roll_out": roll_out, "save": save})
    return done


if __name__ == "__main__":
    print(json.dumps(main(*sys.argv[1:])))
