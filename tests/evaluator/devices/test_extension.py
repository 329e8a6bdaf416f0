"""The extension beside other people's."""

import subprocess
import sys


def test_another_extension_is_imported_after_it():
    """Where libstdc++ is linked statically, symbols that get out break the streams of whoever comes next."""
    code = "import evaluator._core, ml_dtypes; print(ml_dtypes.finfo('float4_e2m1fn').tiny)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "1"
