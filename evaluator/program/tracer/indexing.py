"""NumPy's basic indexing on a contiguous array: which elements, under which shape, and whether they are one run."""

import math


def select(shape: tuple[int, ...], key: object) -> tuple[int, tuple[int, ...]]:
    """Offset in elements and shape of `array[key]`, for integers, slices of step 1 and one ellipsis.

    Raises IndexError and TypeError as NumPy does, and ValueError where the elements are not contiguous.
    """
    entries = _complete(shape, key if isinstance(key, tuple) else (key,))
    strides = contiguous_strides(shape)
    offset, kept_shape, kept_strides = 0, [], []
    for axis, (entry, extent, stride) in enumerate(zip(entries, shape, strides, strict=True)):
        if isinstance(entry, slice):
            start, stop = _bounds(entry, extent)
            offset += start * stride
            kept_shape.append(stop - start)
            kept_strides.append(stride)
        else:
            offset += _index(entry, axis, extent) * stride
    result = tuple(kept_shape)
    if not is_contiguous(result, tuple(kept_strides)):
        raise ValueError(
            f"the slice has shape {result} but its elements are not contiguous in an array of shape {shape}; "
            "pass the whole array and offsets to the kernel"
        )
    return (offset if math.prod(result) else 0), result


def contiguous_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides in elements of a C-contiguous array."""
    return tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))


def is_contiguous(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    """Whether C order walks the elements one after another; axes of length 1 do not count."""
    if math.prod(shape) == 0:
        return True
    expected = contiguous_strides(shape)
    return all(extent == 1 or seen == want for extent, seen, want in zip(shape, strides, expected, strict=True))


def _complete(shape: tuple[int, ...], entries: tuple) -> tuple:
    """One entry per axis: the ellipsis, or the end where there is none, becomes full slices."""
    ellipses = [i for i, entry in enumerate(entries) if entry is Ellipsis]
    if len(ellipses) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    missing = len(shape) - (len(entries) - len(ellipses))
    if missing < 0:
        raise IndexError(f"too many indices: {len(entries) - len(ellipses)} for an array of shape {shape}")
    at = ellipses[0] if ellipses else len(entries)
    return entries[:at] + (slice(None),) * missing + entries[at + len(ellipses) :]


def _bounds(entry: slice, extent: int) -> tuple[int, int]:
    for value in (entry.start, entry.stop, entry.step):
        if value is not None and type(value) is not int:
            raise TypeError(f"slice indices must be integers, seen {type(value).__name__}")
    start, stop, step = entry.indices(extent)
    if step != 1:
        raise ValueError(f"a slice of step {step} is not contiguous; pass the whole array and the step to the kernel")
    return start, max(start, stop)


def _index(entry: object, axis: int, extent: int) -> int:
    if type(entry) is not int:
        raise TypeError(f"index {axis} is a {type(entry).__name__}; integers, slices and ... are supported")
    if not -extent <= entry < extent:
        raise IndexError(f"index {entry} is out of bounds for axis {axis} with size {extent}")
    return entry % extent
