"""The C++ text that the host compiler sees: a plan's modules, side by side, and an entry for every kernel."""

import re
from collections.abc import Mapping, Sequence

from evaluator.devices.lowering import Lowered
from evaluator.program.plan import Module

_STANDARDS = {"11": "c++17", "14": "c++17", "17": "c++17", "20": "c++20"}  # the shim itself is C++17

# Words that a program can spell with ## past the screen. Macros of the shim, made before this, still may use them.
POISONED = (
    *("asm", "__asm", "__asm__", "__has_include", "__has_include_next", "emulator_context", "emulator_thread_ended"),
    *("emulator_yield", "emulator_barrier", "emulator_warp", "emulator_warp_collective", "__builtin_frame_address"),
    *("__builtin_return_address", "__builtin_apply", "__builtin_setjmp", "__builtin_longjmp"),
)
_ATTRIBUTE = ("__attribute__", "__attribute")  # where they stand in the text, the screen has read what they say

Kernel = tuple[int, str]  # index of the module, name or name expression


def standard(module: Module) -> str:
    """The C++ standard to compile a module by."""
    for option in module.options:
        if match := re.fullmatch(r"-{1,2}std=c\+\+(\d\d)", option):
            return _STANDARDS.get(match[1], "c++17")
    return "c++17"


def _definitions(module: Module) -> list[str]:
    """-D options as preprocessor lines."""
    matches = (re.fullmatch(r"(?:-D|--define-macro=)(\w+)(?:=([^\n]*))?", option) for option in module.options)
    return [f"#define {match[1]} {1 if match[2] is None else match[2]}" for match in matches if match]


def write(modules: Mapping[int, Module], lowered: Sequence[Lowered], numbers: Mapping[Kernel, int]) -> str:
    """One unit. Each module stands in a namespace of its own, and its macros are undefined behind it."""
    lines = list(dict.fromkeys(include for index in modules for include in lowered[index].includes))
    poisoned = POISONED + tuple(word for word in _ATTRIBUTE if not any(word in lowered[i].text for i in modules))
    lines.append("#define EMULATOR_DYNAMIC_SHARED emulator_context.dynamic_shared")
    lines.append("#pragma GCC poison " + " ".join(poisoned))
    entries = []
    for index, module in modules.items():
        definitions = _definitions(module)
        lines += [*definitions, f"namespace {{ namespace emulator_module_{index} {{", f'#line 1 "kernel_{index}.cu"']
        lines.append(lowered[index].text)
        for kernel in dict.fromkeys(module.kernels):
            number = numbers[index, kernel]
            lines += [f'#line {number + 1} "exports"', f"constexpr auto emulator_target_{number} = &{kernel};"]
            if re.fullmatch(r"[\w:]+", kernel):
                lines += [f'#line {number + 1} "exports"', f"EMULATOR_CHECK_KERNEL({kernel})"]
            entries.append(f"EMULATOR_EXPORT_KERNEL({number}, emulator_module_{index}::emulator_target_{number})")
        lines.append("}}")
        macros = [*lowered[index].macros, *(line.split()[1] for line in definitions)]
        lines += [f"#undef {macro}" for macro in dict.fromkeys(macros)]
    return "\n".join([*lines, '#line 1 "entries"', *entries, ""])
