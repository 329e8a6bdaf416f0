"""Two real processes on this machine: one leads, the other follows."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

from cudal1_jax.stages import processes

CHILD = Path(__file__).with_name("in_two_processes.py")


def test_a_follower_does_what_the_leader_announces_and_returns_at_its_end():
    with socket.socket() as free:
        free.bind(("localhost", 0))
        address = f"localhost:{free.getsockname()[1]}"
    command = [sys.executable, str(CHILD), address, "2"]
    environment = os.environ | {"JAX_PLATFORMS": "cpu"}
    children = [
        subprocess.Popen([*command, str(number)], env=environment, stdout=subprocess.PIPE, text=True)
        for number in range(2)
    ]
    leader, follower = (json.loads(child.communicate(timeout=120)[0].splitlines()[-1]) for child in children)
    assert leader == follower == [["roll_out", 0, ["a prompt", "another" * 1000]], ["save", 2]]


def test_a_process_alone_leads_and_announces_nothing():
    def action() -> None: ...

    assert processes.leads()
    assert processes.announced("action", action) is action
    processes.dismiss()
