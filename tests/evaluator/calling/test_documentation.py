"""The examples of docs/calling.md run as they are written there."""

import pathlib
import re
import subprocess
import sys

PAGE = pathlib.Path(__file__).parents[3] / "docs" / "calling.md"


def test_the_examples_run(tmp_path):
    example, check = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.M | re.S)
    assert len(example.strip().splitlines()) <= 11  # ten lines, and a blank one
    script = "\n".join((example, check))
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("ok ")
