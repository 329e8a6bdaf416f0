"""Which layer must stop which attempt when it stands alone, by the profile of the process."""

import dataclasses
from collections.abc import Callable

import attempts

ALL = frozenset({"tracer", "program", "nvrtc", "compiler", "gpu"})
COMPUTING = frozenset({"tracer", "program", "nvrtc"})
BUT_GPU = ALL - {"gpu"}
BUT_COMPILER = ALL - {"compiler"}
NONE: frozenset[str] = frozenset()


@dataclasses.dataclass(frozen=True)
class Attempt:
    """What to try, and the profiles in which each layer must stop it when it stands alone."""

    act: Callable[[attempts.Scene], None]
    seccomp: frozenset[str] = NONE
    landlock: frozenset[str] = NONE
    rlimits: frozenset[str] = NONE
    landlock_abi: int = 1  # from which landlock knows such things


ATTEMPTS = {
    attempt.act.__name__: attempt
    for attempt in (
        Attempt(attempts.read_file, seccomp=frozenset({"tracer", "program"}), landlock=BUT_GPU),
        Attempt(attempts.create_file, seccomp=COMPUTING, landlock=ALL),
        Attempt(attempts.write_file, seccomp=COMPUTING, landlock=ALL),
        Attempt(attempts.truncate_file, seccomp=BUT_GPU, landlock=ALL, landlock_abi=3),
        Attempt(attempts.unlink_file, seccomp=COMPUTING, landlock=ALL),
        Attempt(attempts.rename_file, seccomp=COMPUTING, landlock=ALL),
        Attempt(attempts.link_file, seccomp=BUT_GPU, landlock=ALL),
        Attempt(attempts.make_folder, seccomp=COMPUTING, landlock=ALL),
        Attempt(attempts.make_symbolic_link, seccomp=BUT_GPU, landlock=ALL),
        Attempt(attempts.list_folder, seccomp=frozenset({"tracer", "program"}), landlock=BUT_GPU),
        Attempt(attempts.change_mode, seccomp=ALL),
        Attempt(attempts.change_owner, seccomp=ALL),
        Attempt(attempts.change_times, seccomp=ALL),
        Attempt(attempts.set_attribute, seccomp=ALL),
        Attempt(attempts.write_proc, seccomp=COMPUTING, landlock=ALL),
        Attempt(
            attempts.read_environment_of_another, seccomp=frozenset({"tracer", "program"}), landlock=BUT_GPU
        ),  # root may
        Attempt(attempts.read_memory_through_proc, seccomp=frozenset({"tracer", "program"}), landlock=ALL),
        Attempt(attempts.read_memory_of_another, seccomp=ALL, landlock=ALL),
        Attempt(attempts.trace_another, seccomp=ALL, landlock=ALL),
        Attempt(attempts.signal_another, seccomp=ALL, landlock=ALL, landlock_abi=6),
        Attempt(attempts.signal_parent, seccomp=ALL, landlock=ALL, landlock_abi=6),
        Attempt(attempts.signal_through_descriptor, seccomp=ALL, landlock=ALL, landlock_abi=6),
        Attempt(attempts.limit_another, seccomp=ALL),
        Attempt(attempts.set_own_limits, seccomp=ALL),
        Attempt(attempts.fork, seccomp=BUT_COMPILER),
        Attempt(attempts.clone_raw, seccomp=BUT_COMPILER),
        Attempt(attempts.clone_hidden, seccomp=ALL),
        Attempt(attempts.clone_into_namespace, seccomp=ALL),
        Attempt(attempts.enter_namespace, seccomp=ALL),
        Attempt(attempts.start_thread, seccomp=frozenset({"tracer", "program"})),
        Attempt(attempts.execute, seccomp=BUT_COMPILER, landlock=ALL),
        Attempt(attempts.execute_descriptor, seccomp=ALL, landlock=ALL),
        Attempt(attempts.make_memory_file, seccomp=BUT_GPU),
        Attempt(attempts.execute_memory_file, seccomp=ALL),
        Attempt(attempts.map_code, seccomp=COMPUTING),
        Attempt(attempts.make_memory_code, seccomp=COMPUTING),
        Attempt(attempts.connect_tcp, seccomp=ALL, landlock=ALL, landlock_abi=4),
        Attempt(attempts.bind_tcp, seccomp=ALL, landlock=ALL, landlock_abi=4),
        Attempt(attempts.send_udp, seccomp=ALL),
        Attempt(attempts.connect_unix, seccomp=ALL),
        Attempt(attempts.connect_abstract, seccomp=ALL, landlock=ALL, landlock_abi=6),
        Attempt(attempts.ask_the_kernels_network, seccomp=ALL),
        Attempt(attempts.make_socket_pair, seccomp=ALL),
        Attempt(attempts.mount, seccomp=ALL, landlock=ALL),
        Attempt(attempts.change_root, seccomp=ALL),
        Attempt(attempts.change_personality, seccomp=ALL),
        Attempt(attempts.set_up_io_uring, seccomp=ALL),
        Attempt(attempts.handle_page_faults, seccomp=ALL),
        Attempt(attempts.count_events, seccomp=ALL),
        Attempt(attempts.load_kernel_code, seccomp=ALL),
        Attempt(attempts.keep_a_key, seccomp=ALL),
        Attempt(attempts.share_memory, seccomp=BUT_GPU),
        Attempt(attempts.make_message_queue, seccomp=BUT_GPU),
        Attempt(attempts.watch_files, seccomp=BUT_GPU),
        Attempt(attempts.command_a_device, seccomp=BUT_GPU),
        Attempt(attempts.leave_the_session, seccomp=BUT_GPU),
        Attempt(attempts.write_to_standard_error, seccomp=frozenset({"program"})),
        Attempt(attempts.change_process_control, seccomp=BUT_GPU),
        Attempt(attempts.call_by_another_abi, seccomp=ALL),
        Attempt(attempts.map_too_much, rlimits=BUT_GPU),
        Attempt(attempts.fill_the_disk, rlimits=ALL),
        Attempt(attempts.open_many_files, rlimits=ALL),
        Attempt(attempts.compute_for_ever, rlimits=frozenset({"tracer"})),
        Attempt(attempts.fork_as_ordinary_user, seccomp=BUT_COMPILER, rlimits=ALL),
        Attempt(attempts.raise_a_limit_as_ordinary_user, seccomp=ALL, rlimits=ALL),
    )
}
