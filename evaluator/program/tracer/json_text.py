"""Writes JSON. The json package would be most of the child's start-up time, because it imports re."""

_ESCAPES = {ord('"'): '\\"', ord("\\"): "\\\\", **{code: f"\\u{code:04x}" for code in range(32)}}


def dumps(value: object) -> str:
    """JSON of dicts with text keys, lists, tuples, text, integers, bools and None; floats do not occur in a plan."""
    parts: list[str] = []
    _write(value, parts)
    return "".join(parts)


def _write(value: object, parts: list[str]) -> None:
    if isinstance(value, str):
        parts.append(f'"{value.translate(_ESCAPES)}"')
    elif value is None or isinstance(value, bool):
        parts.append({None: "null", True: "true", False: "false"}[value])
    elif isinstance(value, int):
        parts.append(str(int(value)))
    elif isinstance(value, dict):
        parts.append("{")
        for i, (key, entry) in enumerate(value.items()):
            parts.append(("," if i else "") + f'"{key}":')
            _write(entry, parts)
        parts.append("}")
    elif isinstance(value, list | tuple):
        parts.append("[")
        for i, entry in enumerate(value):
            if i:
                parts.append(",")
            _write(entry, parts)
        parts.append("]")
    else:
        raise TypeError(f"a {type(value).__name__} in a plan")
