"""One thing that judging needs, as it was found on this machine."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Finding:
    """One line of the doctor's report."""

    name: str
    seen: str
    cure: str | None = None  # what to do where something is missing; None where all is well
