"""Where the files lie that the build installed beside this package."""

import pathlib

from evaluator import devices
from evaluator.records import Outcome, ProgramFault, Rung


def path(name: str) -> pathlib.Path:
    """Absolute path of an installed file or folder: `emulator-runner`, `confined-exec` or `include`.

    Raises ProgramFault `evaluator_error` where the package was never built.
    """
    # An editable install keeps built files apart from the sources, as a second entry of the package's path.
    for folder in devices.__path__:
        candidate = pathlib.Path(folder) / name
        if candidate.exists():
            return candidate.resolve()
    message = f"{name} is missing beside {list(devices.__path__)}: build the package with `pip install .`"
    raise ProgramFault(Outcome.EVALUATOR_ERROR, Rung.COMPILE, message)
