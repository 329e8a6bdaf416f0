"""Attempts to break out of a confined process, each a function that returns only where it has succeeded.

`escape.py` makes them, one process each; `expectations.py` says which layer must stop which.
"""

import ctypes
import dataclasses
import mmap
import os
import resource
import signal
import socket
import struct
import threading

libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long

X86 = os.uname().machine == "x86_64"
# name: numbers on x86-64 and aarch64; those above 423 are the same everywhere
NUMBERS = {
    "clone": (56, 220),
    "process_vm_readv": (310, 270),
    "ptrace": (101, 117),
    "personality": (135, 92),
    "userfaultfd": (323, 282),
    "perf_event_open": (298, 241),
    "bpf": (321, 280),
    "add_key": (248, 217),
    "unshare": (272, 97),
    "mount": (165, 40),
    "umount2": (166, 39),
    "mprotect": (10, 226),
    "shmget": (29, 194),
    "msgget": (68, 186),
    "inotify_init1": (294, 26),
    "ioctl": (16, 29),
    "setsid": (112, 157),
    "prlimit64": (302, 261),
    "io_uring_setup": (425, 425),
    "pidfd_send_signal": (424, 424),
    "pidfd_open": (434, 434),
    "clone3": (435, 435),
    "getpid": (39, 172),
}


@dataclasses.dataclass(frozen=True)
class Scene:
    """What lies outside the confinement, made before it."""

    folder: str  # holds the file `secret`, the file `other` and the socket `unix`
    port: int  # a listening TCP port
    abstract: str  # the name of a listening abstract socket
    victim: int  # a process of the same user
    victim_address: int  # of memory that it has
    true_program: bytes  # contents of /bin/true
    file: int  # an open, empty file

    def path(self, name: str) -> str:
        return os.path.join(self.folder, name)


def call(name: str, *arguments: object) -> int:
    """A raw system call. OSError where it fails."""
    ctypes.set_errno(0)
    result = libc.syscall(ctypes.c_long(NUMBERS[name][0 if X86 else 1]), *arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), name)
    return result


def long(value: int) -> ctypes.c_long:
    return ctypes.c_long(value)


def read_file(scene: Scene) -> None:
    os.close(os.open(scene.path("secret"), os.O_RDONLY))


def create_file(scene: Scene) -> None:
    os.close(os.open(scene.path("new"), os.O_WRONLY | os.O_CREAT, 0o600))


def write_file(scene: Scene) -> None:
    os.close(os.open(scene.path("secret"), os.O_WRONLY))


def truncate_file(scene: Scene) -> None:
    os.truncate(scene.path("other"), 0)


def unlink_file(scene: Scene) -> None:
    os.unlink(scene.path("other"))


def rename_file(scene: Scene) -> None:
    os.rename(scene.path("other"), scene.path("renamed"))


def link_file(scene: Scene) -> None:
    os.link(scene.path("secret"), scene.path("linked"))


def make_folder(scene: Scene) -> None:
    os.mkdir(scene.path("folder"))


def make_symbolic_link(scene: Scene) -> None:
    os.symlink("/etc/passwd", scene.path("symbolic"))


def list_folder(scene: Scene) -> None:
    os.listdir(scene.folder)


def change_mode(scene: Scene) -> None:
    os.chmod(scene.path("secret"), 0o666)


def change_owner(scene: Scene) -> None:
    os.chown(scene.path("secret"), os.getuid(), os.getgid())


def change_times(scene: Scene) -> None:
    os.utime(scene.path("secret"), (1, 1))


def set_attribute(scene: Scene) -> None:
    os.setxattr(scene.path("secret"), "user.note", b"here")


def write_proc(scene: Scene) -> None:
    with open("/proc/self/oom_score_adj", "w") as file:
        file.write("0")


def read_environment_of_another(scene: Scene) -> None:
    with open(f"/proc/{scene.victim}/environ", "rb") as file:
        file.read()


def read_memory_through_proc(scene: Scene) -> None:
    descriptor = os.open(f"/proc/{scene.victim}/mem", os.O_RDONLY)
    os.pread(descriptor, 8, scene.victim_address)


def read_memory_of_another(scene: Scene) -> None:
    buffer = ctypes.create_string_buffer(8)
    here = struct.pack("NN", ctypes.addressof(buffer), 8)
    there = struct.pack("NN", scene.victim_address, 8)
    call("process_vm_readv", long(scene.victim), here, long(1), there, long(1), long(0))


def trace_another(scene: Scene) -> None:
    call("ptrace", long(0x4206), long(scene.victim), long(0), long(0))  # PTRACE_SEIZE: it need not stop


def signal_another(scene: Scene) -> None:
    os.kill(scene.victim, signal.SIGCONT)


def signal_parent(scene: Scene) -> None:
    os.kill(os.getppid(), signal.SIGCONT)


def signal_through_descriptor(scene: Scene) -> None:
    descriptor = call("pidfd_open", long(scene.victim), long(0))
    call("pidfd_send_signal", long(descriptor), long(signal.SIGCONT), long(0), long(0))


def limit_another(scene: Scene) -> None:
    resource.prlimit(scene.victim, resource.RLIMIT_NOFILE, (20, 20))


def set_own_limits(scene: Scene) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def fork(scene: Scene) -> None:
    if os.fork() == 0:
        os._exit(0)


def clone_raw(scene: Scene) -> None:
    if call("clone", long(signal.SIGCHLD), long(0), long(0), long(0), long(0)) == 0:
        os._exit(0)


def clone_hidden(scene: Scene) -> None:
    arguments = struct.pack("8Q", 0, 0, 0, 0, signal.SIGCHLD, 0, 0, 0)
    if call("clone3", arguments, long(len(arguments))) == 0:
        os._exit(0)


def clone_into_namespace(scene: Scene) -> None:
    if call("clone", long(0x10000000 | signal.SIGCHLD), long(0), long(0), long(0), long(0)) == 0:  # CLONE_NEWUSER
        os._exit(0)


def enter_namespace(scene: Scene) -> None:
    call("unshare", long(0x10000000))


def start_thread(scene: Scene) -> None:
    try:
        threading.Thread(target=int).start()
    except RuntimeError as error:
        raise OSError(1, str(error)) from error


def execute(scene: Scene) -> None:
    os.execv("/bin/true", ["true"])


def execute_descriptor(scene: Scene) -> None:
    os.execve(os.open("/bin/true", os.O_RDONLY), ["true"], {})


def make_memory_file(scene: Scene) -> None:
    os.memfd_create("x")


def execute_memory_file(scene: Scene) -> None:
    descriptor = os.memfd_create("x")
    os.write(descriptor, scene.true_program)
    os.execve(descriptor, ["true"], {})


def map_code(scene: Scene) -> None:
    mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_EXEC)


def make_memory_code(scene: Scene) -> None:
    memory = mmap.mmap(-1, mmap.PAGESIZE)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    call("mprotect", ctypes.c_void_p(address), long(mmap.PAGESIZE), long(5))


def connect_tcp(scene: Scene) -> None:
    socket.create_connection(("127.0.0.1", scene.port), timeout=5).close()


def bind_tcp(scene: Scene) -> None:
    with socket.socket() as own:
        own.bind(("127.0.0.1", 0))


def send_udp(scene: Scene) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as own:
        own.sendto(b"x", ("127.0.0.1", 9))


def connect_unix(scene: Scene) -> None:
    with socket.socket(socket.AF_UNIX) as own:
        own.connect(scene.path("unix"))


def connect_abstract(scene: Scene) -> None:
    with socket.socket(socket.AF_UNIX) as own:
        own.connect("\0" + scene.abstract)


def ask_the_kernels_network(scene: Scene) -> None:
    socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0).close()


def make_socket_pair(scene: Scene) -> None:
    for each in socket.socketpair():
        each.close()


def mount(scene: Scene) -> None:
    call("mount", b"none", scene.folder.encode(), b"tmpfs", long(0), long(0))
    call("umount2", scene.folder.encode(), long(0))


def change_root(scene: Scene) -> None:
    os.chroot("/")


def change_personality(scene: Scene) -> None:
    call("personality", long(0x0040000))  # ADDR_NO_RANDOMIZE


def set_up_io_uring(scene: Scene) -> None:
    call("io_uring_setup", long(4), ctypes.create_string_buffer(120))


def handle_page_faults(scene: Scene) -> None:
    call("userfaultfd", long(0))


def count_events(scene: Scene) -> None:
    attributes = ctypes.create_string_buffer(struct.pack("IIQ", 1, 64, 1) + bytes(48))  # a software clock
    call("perf_event_open", attributes, long(0), long(-1), long(-1), long(0))


def load_kernel_code(scene: Scene) -> None:
    attributes = struct.pack("IIII", 2, 4, 4, 1) + bytes(104)  # BPF_MAP_CREATE: an array
    call("bpf", long(0), attributes, long(len(attributes)))


def keep_a_key(scene: Scene) -> None:
    call("add_key", b"user", b"note", b"x", long(1), long(-2))


def share_memory(scene: Scene) -> None:
    call("shmget", long(0), long(4096), long(0o600 | 0o1000))


def make_message_queue(scene: Scene) -> None:
    call("msgget", long(0), long(0o600 | 0o1000))


def watch_files(scene: Scene) -> None:
    call("inotify_init1", long(0))


def command_a_device(scene: Scene) -> None:
    call("ioctl", long(scene.file), long(0x541B), ctypes.create_string_buffer(8))  # FIONREAD


def leave_the_session(scene: Scene) -> None:
    call("setsid")


def write_to_standard_error(scene: Scene) -> None:
    os.write(2, b"\n")


def change_process_control(scene: Scene) -> None:
    if libc.prctl(4, 1, 0, 0, 0) != 0:  # PR_SET_DUMPABLE
        raise OSError(ctypes.get_errno(), "prctl")


def call_by_another_abi(scene: Scene) -> None:
    if libc.syscall(ctypes.c_long(0x40000000 | NUMBERS["getpid"][0])) < 0:
        raise OSError(38, "x32")


# Rlimits.


def map_too_much(scene: Scene) -> None:
    mmap.mmap(-1, 8 << 30)


def fill_the_disk(scene: Scene) -> None:
    for _ in range(4):
        os.write(scene.file, bytes(1 << 20))


def open_many_files(scene: Scene) -> None:
    for _ in range(64):
        os.dup(scene.file)


def compute_for_ever(scene: Scene) -> None:
    while resource.getrusage(resource.RUSAGE_SELF).ru_utime < 1.6:
        sum(range(100_000))


def _as_ordinary_user() -> None:
    """The kernel counts no processes of root and lets it raise its limits."""
    if os.getuid() == 0:
        os.setresuid(65534, 65534, 65534)


def fork_as_ordinary_user(scene: Scene) -> None:
    _as_ordinary_user()
    fork(scene)


def raise_a_limit_as_ordinary_user(scene: Scene) -> None:
    _as_ordinary_user()
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
