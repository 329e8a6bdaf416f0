"""Gives up, for good, what a trace does not need: files, processes, network, more than its share of memory."""

from importlib.machinery import ExtensionFileLoader, ModuleSpec


def confine(core_path: str, cpu_s: int, memory_bytes: int, layers: list[str]) -> list[str]:
    """Confines this process by `layers` and returns those that are not in force.

    `core_path` is the file of `evaluator._core`, because the interpreter runs without site-packages. It is loaded
    without importlib.util, whose own imports would double the child's start-up time.
    """
    loader = ExtensionFileLoader("evaluator._core", core_path)
    spec = ModuleSpec("evaluator._core", loader, origin=core_path)
    core = loader.create_module(spec)
    core.__spec__ = spec  # pybind11 reads it while the module initialises
    loader.exec_module(core)
    limits = {"cpu_s": cpu_s, "memory_bytes": memory_bytes, "file_bytes": 0, "open_files": 3, "processes": 0}
    return list(core.confine("tracer", limits=limits, layers=layers)["missing"])
