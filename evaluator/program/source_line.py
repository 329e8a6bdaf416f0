"""Finds where a line of assembled CUDA text stands in the program's own text."""


def program_line(program: str, source: str, line: int) -> int | None:
    """Line of `program` that holds line `line` of `source`, where exactly one does; else None.

    A source may be joined from several strings, so its lines have no fixed place in the file.
    """
    wanted = (source.split("\n")[line - 1 : line] or [""])[0].strip()
    if not wanted:
        return None
    places = [number for number, text in enumerate(program.split("\n"), start=1) if wanted in text]
    return places[0] if len(places) == 1 else None
