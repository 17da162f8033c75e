"""Starts, stops and shows a Flink cluster on this machine, with Beam's job server and a pool of Python workers.

`up` starts one JobManager, the TaskManagers as separate processes, the job server and the worker pool, waits until
all slots are registered, and prints on its last line the options for a semrank command. If the cluster runs already,
`up` starts the processes that are missing. `down` stops the processes that `up` started, and no others. `status` lists
what is running; its exit status is 0 only if all processes are.

Every process listens on the loopback address only.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

HOST = "127.0.0.1"
HERE = Path(__file__).resolve().parent
POM = HERE / "pom.xml"
JOB_SERVER_SOURCE = HERE / "JobServer.java"

JOB_MANAGER, JOB_SERVER, WORKER_POOL = "jobmanager", "jobserver", "workerpool"
STATE_FILE = "cluster.json"

WAIT_SECONDS = 90.0
"""Time limit of `up` for all slots: Java and Flink start in some 10 s on an idle machine."""

END_SECONDS = 15.0
"""Time limit for a process to stop before it is killed."""

LOG_LINES = 15
"""Number of lines of a process's log in a message about its early end."""

ADD_OPENS = (
    "java.base/java.lang",
    "java.base/java.lang.invoke",
    "java.base/java.lang.reflect",
    "java.base/java.net",
    "java.base/java.io",
    "java.base/java.nio",
    "java.base/sun.nio.ch",
    "java.base/java.text",
    "java.base/java.time",
    "java.base/java.util",
    "java.base/java.util.concurrent",
    "java.base/java.util.concurrent.atomic",
    "java.base/java.util.concurrent.locks",
)
"""Packages of the JDK that Flink's serialisation reflects on."""

FRAMEWORK_MEGABYTES = 128
"""Heap that Flink reserves for itself in a TaskManager, and as much off-heap memory."""

EXCHANGE_MEGABYTES = 256
"""Off-heap memory for a slot's exchange with its Python worker. Without any left gRPC ends the exchange and the job, as
happened with 64 MB a slot at a million pages."""

METASPACE_MEGABYTES = 256
OVERHEAD_MEGABYTES = 192
"""Memory for classes and threads of a TaskManager, which Flink needs for its sums only."""

WORKER_CACHE_MILLISECONDS = 60_000
"""Time for which an idle worker of a job is kept."""

SORTED_EXCHANGE_PARALLELISM = 64
"""Parallelism from which one sorted file per task is faster than one file per pair of tasks."""

CONTAINER_LIMIT = Path("/sys/fs/cgroup/memory.max")

RESTART_DELAY = "5 s"
"""Delay before a failed job is restarted."""

QUICK_COMPILER = "-XX:TieredStopAtLevel=1"
"""Java's C1 compiler only. Python does the arithmetic; C2, the optimising compiler, took half of a small job's time."""

SERVER_HEAP_MEGABYTES = 512
"""Heap of the JobManager and of the job server: they hold graphs of jobs, no data."""


class ClusterError(Exception):
    """The cluster can't be started or stopped; the message says why."""


@dataclass(frozen=True)
class Sizes:
    """Sizes of the cluster; memory in MB.

    Attributes:
        task_managers: processes that run a job's tasks.
        slots: tasks that each of them runs at a time.
        heap: Java heap of a TaskManager for tasks; each group of a shuffle is held there.
        managed: memory of a TaskManager for sorting, shared by all slots and all sorts of a job.
        network: memory of a TaskManager for exchanges.
    """

    task_managers: int = 2
    slots: int = 2
    heap: int = 768
    managed: int = 512
    network: int = 256

    @property
    def exchange(self) -> int:
        """Off-heap memory of a TaskManager for the exchange of its slots with their workers."""
        return EXCHANGE_MEGABYTES * self.slots

    @classmethod
    def of_machine(cls, megabytes: int, processors: int) -> Sizes:
        """The sizes for a machine with this memory: a quarter is for the TaskManagers, most is for the workers.

        There is one slot per processor: more cost start-up time and memory without a gain.
        """
        slots = max(1, processors // cls.task_managers)
        return cls(slots=slots, heap=max(cls.heap, megabytes // 12), managed=max(cls.managed, megabytes // 24))


@dataclass(frozen=True)
class Ports:
    """Ports of the loopback address."""

    rest: int
    rpc: int
    blob: int
    job: int
    artifact: int
    pool: int


@dataclass(frozen=True)
class Process:
    """A process that `up` started.

    Attributes:
        pid: its process id, which is also that of its process group.
        started: start time as in /proc/PID/stat, which tells it from a later process with the same id.
    """

    pid: int
    started: str


@dataclass(frozen=True)
class Cluster:
    """The content of a cluster's state file."""

    sizes: Sizes
    ports: Ports
    processes: dict[str, Process]


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command and returns the exit status."""
    parser = _parser()
    parsed = parser.parse_args(arguments)
    state: Path = parsed.state.expanduser().absolute()
    try:
        with _locked(state):
            if parsed.command == "up":
                return _up(state, parsed)
            return _down(state) if parsed.command == "down" else _status(state)
    except ClusterError as error:
        sys.stderr.write(f"cluster {parsed.command}: error: {error}\n")
        return 1


def _parser() -> argparse.ArgumentParser:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "semrank"
    parser = argparse.ArgumentParser(
        prog="cluster", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument(
        "--state", type=Path, default=cache / "flink", metavar="DIR", help="folder of its logs and its state"
    )
    commands = parser.add_subparsers(dest="command", required=True)
    up = commands.add_parser("up", parents=[common], help="start the cluster, or its missing parts")
    commands.add_parser("down", parents=[common], help="stop the cluster")
    commands.add_parser("status", parents=[common], help="show what is running")
    up.add_argument(
        "--jars", type=Path, default=cache / "jars", metavar="DIR", help="folder that the jars are fetched into, once"
    )
    up.add_argument("--python", default=sys.executable, metavar="PATH", help="Python of the workers, with semrank")
    default = Sizes.of_machine(machine_megabytes(), len(os.sched_getaffinity(0)))
    for name, text in (
        ("task_managers", "number of TaskManagers"),
        ("slots", "slots of each"),
        ("heap", "heap of each for tasks, MB"),
        ("managed", "memory of each for sorting, MB"),
        ("network", "memory of each for exchanges, MB"),
    ):
        value = getattr(default, name)
        option = f"--{name.replace('_', '-')}"
        up.add_argument(option, type=_positive, default=value, metavar="N", help=f"{text} ({value})")
    for name, text in (("job", "the job server's"), ("rest", "Flink's REST and web"), ("pool", "the worker pool's")):
        up.add_argument(f"--{name}-port", type=int, default=0, metavar="N", help=f"{text} port (any free one)")
    return parser


def machine_megabytes() -> int:
    """Memory of this machine, or of the container that it is, in MB.

    `worker_memory.machine_bytes` knows more kinds of limits, but this command also runs where semrank is not installed.
    """
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        limit = int(CONTAINER_LIMIT.read_text(encoding="ascii"))
    except (OSError, ValueError):  # no limit: the file is missing or holds `max`
        limit = physical
    return min(physical, limit) >> 20


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"found '{text}', expected a whole number of at least 1")
    return int(text)


@contextmanager
def _locked(state: Path) -> Iterator[None]:
    """Holds the lock of the state folder, for which other commands wait."""
    state.mkdir(parents=True, exist_ok=True)
    with (state / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _up(state: Path, parsed: argparse.Namespace) -> int:
    java = shutil.which("java")
    if java is None:
        raise ClusterError("no `java` on PATH, expected Java 11 or 17")
    found = _load(state)
    sizes = Sizes(parsed.task_managers, parsed.slots, parsed.heap, parsed.managed, parsed.network)
    if found is not None and _running(found):
        if found.sizes != sizes:
            raise ClusterError(f"{state}: runs with {found.sizes}, expected {sizes}; `cluster down` first")
        cluster = found
    else:
        cluster = Cluster(sizes, _ports(parsed), {})
    jars = fetch_jars(parsed.jars.expanduser().absolute())
    _check_python(parsed.python)
    commands = _commands(java, jars, state, parsed.python, cluster)
    environment = _environment()
    for name, command in commands.items():
        process = cluster.processes.get(name)
        if process is None or not is_alive(process):
            cluster.processes[name] = _start(command, _log(state, name), environment)
            _save(state, cluster)
    try:
        _wait_until_ready(state, cluster)
    except (ClusterError, KeyboardInterrupt):
        _end_all(state, cluster)
        raise
    print(f"Flink at http://{HOST}:{cluster.ports.rest}, {_slot_count(cluster)} slots, logs in {state / 'logs'}")
    print(" ".join(job_options(cluster)))
    return 0


def job_options(cluster: Cluster) -> list[str]:
    """Options with which a semrank command runs on the cluster, on all of its slots."""
    ports = cluster.ports
    return [
        "--runner=PortableRunner",
        f"--job_endpoint={HOST}:{ports.job}",
        f"--flink_master={HOST}:{ports.rest}",
        "--environment_type=EXTERNAL",
        f"--environment_config={HOST}:{ports.pool}",
        # Workers take seconds to start, so those of a job are kept for its next stage.
        f"--environment_cache_millis={WORKER_CACHE_MILLISECONDS}",
        f"--parallelism={_slot_count(cluster)}",
    ]


def _down(state: Path) -> int:
    cluster = _load(state)
    ended = _end_all(state, cluster) if cluster is not None else 0
    print(f"{ended} processes ended" if ended else "nothing was running")
    return 0


def _status(state: Path) -> int:
    cluster = _load(state)
    if cluster is None:
        print(f"no cluster in {state}")
        return 1
    for name, process in cluster.processes.items():
        print(f"{name:<14} {process.pid:>8} {'running' if is_alive(process) else 'ended'}")
    overview = _overview(cluster)
    slots = f"{overview['slots-available']} of {_slot_count(cluster)} slots free" if overview else "no answer"
    print(f"Flink at http://{HOST}:{cluster.ports.rest}: {slots}")
    print(" ".join(job_options(cluster)))
    complete = overview is not None and overview["slots-total"] == _slot_count(cluster)
    return 0 if complete and len(_running(cluster)) == len(cluster.processes) else 1


def _slot_count(cluster: Cluster) -> int:
    return cluster.sizes.task_managers * cluster.sizes.slots


def fetch_jars(folder: Path) -> Path:
    """The folder of the POM's jars below `folder`; Maven fetches them if they are missing.

    Raises:
        ClusterError: Maven is missing or failed.
    """
    target = folder / hashlib.sha256(POM.read_bytes()).hexdigest()[:16]
    if target.is_dir():
        return target
    maven = shutil.which("mvn")
    if maven is None:
        raise ClusterError(f"no `mvn` on PATH, expected Apache Maven to fetch the jars of {POM}")
    draft = folder / f".draft-{os.getpid()}"
    print(f"fetching Flink's and Beam's jars into {target}", flush=True)
    goal = ["dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={draft}"]
    done = subprocess.run(
        [maven, "-q", "-B", "-f", str(POM), *goal], check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    if done.returncode:
        shutil.rmtree(draft, ignore_errors=True)
        raise ClusterError(f"Maven could not fetch the jars of {POM}:\n{_tail(done.stdout.decode(errors='replace'))}")
    with suppress(OSError):  # an `up` of another state folder has just fetched them
        draft.rename(target)
    return target


def _check_python(python: str) -> None:
    """Checks that workers can import semrank: otherwise jobs would wait without a message."""
    program = "import semrank.pipelines.rank, semrank.transforms.columnar.beam"
    try:
        done = subprocess.run(
            [python, "-W", "ignore", "-c", program],
            check=False,
            env=_environment(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
    except OSError as cause:
        raise ClusterError(f"--python {python}: can't be run: {cause.strerror}") from cause
    if done.returncode:
        raise ClusterError(f"--python {python}: can't import semrank:\n{_tail(done.stderr.decode(errors='replace'))}")


def _environment() -> dict[str, str]:
    """Environment of the processes, with this checkout on the workers' path."""
    own = os.environ.get("PYTHONPATH")
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(HERE.parent.parent), *([own] if own else [])]),
        "PYTHONWARNINGS": "ignore",
    }


def _ports(parsed: argparse.Namespace) -> Ports:
    free = _free_ports(6)
    return Ports(
        rest=parsed.rest_port or free[0],
        rpc=free[1],
        blob=free[2],
        job=parsed.job_port or free[3],
        artifact=free[4],
        pool=parsed.pool_port or free[5],
    )


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind((HOST, 0))
        return [int(each.getsockname()[1]) for each in sockets]
    finally:
        for each in sockets:
            each.close()


def flink_configuration(sizes: Sizes, ports: Ports, temporary: Path) -> dict[str, str]:
    """Flink's settings by name."""
    return {
        "jobmanager.rpc.address": HOST,
        "jobmanager.rpc.port": str(ports.rpc),
        "jobmanager.bind-host": HOST,
        "blob.server.port": str(ports.blob),
        "rest.address": HOST,
        "rest.port": str(ports.rest),
        "rest.bind-address": HOST,
        "taskmanager.host": HOST,
        "taskmanager.bind-host": HOST,
        "taskmanager.numberOfTaskSlots": str(sizes.slots),
        "taskmanager.cpu.cores": str(float(sizes.slots)),
        "taskmanager.memory.task.heap.size": f"{sizes.heap}m",
        "taskmanager.memory.task.off-heap.size": f"{sizes.exchange}m",
        "taskmanager.memory.framework.heap.size": f"{FRAMEWORK_MEGABYTES}m",
        "taskmanager.memory.framework.off-heap.size": f"{FRAMEWORK_MEGABYTES}m",
        "taskmanager.memory.managed.size": f"{sizes.managed}m",
        "taskmanager.memory.jvm-metaspace.size": f"{METASPACE_MEGABYTES}m",
        "taskmanager.memory.jvm-overhead.min": f"{OVERHEAD_MEGABYTES}m",
        "taskmanager.memory.jvm-overhead.max": f"{OVERHEAD_MEGABYTES}m",
        "taskmanager.memory.network.min": f"{sizes.network}m",
        "taskmanager.memory.network.max": f"{sizes.network}m",
        # A sort-based exchange takes 512 buffers, and a round has dozens of exchanges.
        "taskmanager.network.sort-shuffle.min-parallelism": str(SORTED_EXCHANGE_PARALLELISM),
        # Beam is on the class path already; with a copy per job workers would not be kept from stage to stage.
        "classloader.resolve-order": "parent-first",
        # All workers have a share of every job; that of a lost worker is computed again.
        "cluster.evenly-spread-out-slots": "true",
        # A fixed delay between tries. Flink's strategy of that name counts each region that a lost TaskManager takes
        # with it as a failure of its own and gives up after one loss; this one counts all before the next try as one.
        "restart-strategy.type": "exponential-delay",
        "restart-strategy.exponential-delay.initial-backoff": RESTART_DELAY,
        "restart-strategy.exponential-delay.max-backoff": RESTART_DELAY,
        "restart-strategy.exponential-delay.jitter-factor": "0.0",
        "restart-strategy.exponential-delay.attempts-before-reset-backoff": "6",
        "restart-strategy.exponential-delay.reset-backoff-threshold": "1 d",
        # A TaskManager whose process has ended is known as lost after two of these, in ms, so before the next try.
        "heartbeat.interval": "1000",
        "heartbeat.timeout": "20000",
        # A job that asks for more slots than there are fails within a minute.
        "slot.request.timeout": "45000",
        # Largest age of the REST interface's answers, in ms.
        "web.refresh-interval": "500",
        "resourcemanager.taskmanager-timeout": "3600000",
        "io.tmp.dirs": str(temporary),
        "web.tmpdir": str(temporary),
    }


def _commands(java: str, jars: Path, state: Path, python: str, cluster: Cluster) -> dict[str, list[str]]:
    """Command line of every process by name, in the order in which they are started."""
    sizes, ports = cluster.sizes, cluster.ports
    configuration, temporary = state / "conf", state / "tmp"
    for folder in (configuration, temporary, state / "logs"):
        folder.mkdir(parents=True, exist_ok=True)
    settings = flink_configuration(sizes, ports, temporary)
    lines = [f"{name}: {json.dumps(value)}\n" for name, value in settings.items()]
    (configuration / "config.yaml").write_text("".join(lines), encoding="utf-8")
    opens = [f"--add-opens={package}=ALL-UNNAMED" for package in ADD_OPENS]
    common = [
        java,
        *opens,
        f"-Djava.io.tmpdir={temporary}",
        "-Dorg.slf4j.simpleLogger.showDateTime=true",
        "-XX:+UseG1GC",
        QUICK_COMPILER,
        "-cp",
        f"{jars}/*",
    ]
    server = [*common[:-2], f"-Xmx{SERVER_HEAP_MEGABYTES}m", *common[-2:]]
    worker = [
        *common[:-2],
        f"-Xmx{FRAMEWORK_MEGABYTES + sizes.heap}m",
        f"-XX:MaxDirectMemorySize={FRAMEWORK_MEGABYTES + sizes.network + sizes.exchange}m",
        f"-XX:MaxMetaspaceSize={METASPACE_MEGABYTES}m",
        # A job would wait forever for a message that there is no memory for; a lost TaskManager restarts it.
        "-XX:+ExitOnOutOfMemoryError",
        *common[-2:],
    ]
    runtime = "org.apache.flink.runtime"
    configured = ["--configDir", str(configuration)]
    return {
        JOB_MANAGER: [*server, f"{runtime}.entrypoint.StandaloneSessionClusterEntrypoint", *configured],
        WORKER_POOL: [python, "-W", "ignore", str(HERE / "worker_pool.py"), str(ports.pool)],
        **{
            f"taskmanager-{number}": [*worker, f"{runtime}.taskexecutor.TaskManagerRunner", *configured]
            for number in range(1, sizes.task_managers + 1)
        },
        JOB_SERVER: [
            *server,
            str(JOB_SERVER_SOURCE),
            *("--job-host", HOST, "--job-port", str(ports.job), "--artifact-port", str(ports.artifact)),
            *("--expansion-port", "-1", "--artifacts-dir", str(temporary / "artifacts")),
            *("--flink-master", f"{HOST}:{ports.rest}", "--flink-conf-dir", str(configuration)),
        ],
    }


def _log(state: Path, name: str) -> Path:
    return state / "logs" / f"{name}.log"


def _start(command: Sequence[str], log: Path, environment: Mapping[str, str]) -> Process:
    with log.open("wb") as output:
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=dict(environment),
            start_new_session=True,
        )
    return Process(child.pid, _start_time(child.pid) or "")


def _start_time(pid: int) -> str | None:
    """Start time of a process, or None if there is none with this id or it has ended."""
    try:
        # The name in parentheses may hold any character; the start time is the 20th field after it.
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] == "Z" else fields[19]


def is_alive(process: Process) -> bool:
    """Whether the process runs, and not a later one with the same id."""
    return _start_time(process.pid) == process.started


def _running(cluster: Cluster) -> list[str]:
    return [name for name, process in cluster.processes.items() if is_alive(process)]


def _overview(cluster: Cluster) -> dict[str, Any] | None:
    try:
        with urllib.request.urlopen(f"http://{HOST}:{cluster.ports.rest}/overview", timeout=5) as answer:
            overview: dict[str, Any] = json.load(answer)
    except (OSError, ValueError):
        return None
    return overview


def _listens(port: int) -> bool:
    try:
        socket.create_connection((HOST, port), timeout=1).close()
    except OSError:
        return False
    return True


def _wait_until_ready(state: Path, cluster: Cluster) -> None:
    def all_slots() -> bool:
        overview = _overview(cluster)
        return overview is not None and overview["slots-total"] >= _slot_count(cluster)

    awaited: dict[str, Callable[[], bool]] = {
        f"{_slot_count(cluster)} slots": all_slots,
        "the job server": lambda: _listens(cluster.ports.job),
        "the worker pool": lambda: _listens(cluster.ports.pool),
    }
    deadline = time.monotonic() + WAIT_SECONDS
    while True:
        for name, process in cluster.processes.items():
            if not is_alive(process):
                text = _log(state, name).read_text(encoding="utf-8", errors="replace")
                raise ClusterError(f"{name} ended at once; the end of its log:\n{_tail(text)}")
        awaited = {name: ready for name, ready in awaited.items() if not ready()}
        if not awaited:
            return
        if time.monotonic() > deadline:
            raise ClusterError(f"{', '.join(awaited)}: no answer after {WAIT_SECONDS:.0f} s; logs in {state / 'logs'}")
        time.sleep(0.5)


def _tail(text: str) -> str:
    """The lines of a log from its first error on, or its last lines if there is no error."""
    lines = text.strip().splitlines()
    first = next((number for number, line in enumerate(lines) if "ERROR" in line), None)
    return "\n".join(lines[-LOG_LINES:] if first is None else lines[first : first + LOG_LINES])


def _end_all(state: Path, cluster: Cluster) -> int:
    """Stops the processes with their process groups, the last ones first, and returns their number."""
    alive = [cluster.processes[name] for name in reversed(_running(cluster))]
    for process in alive:
        _signal(process, signal.SIGTERM)
    deadline = time.monotonic() + END_SECONDS
    while any(map(is_alive, alive)) and time.monotonic() < deadline:
        time.sleep(0.1)
    for process in alive:
        if is_alive(process):
            _signal(process, signal.SIGKILL)
    (state / STATE_FILE).unlink(missing_ok=True)
    shutil.rmtree(state / "tmp", ignore_errors=True)
    return len(alive)


def _signal(process: Process, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, number)


def _save(state: Path, cluster: Cluster) -> None:
    draft = state / f".{STATE_FILE}"
    draft.write_text(json.dumps(asdict(cluster), indent=2), encoding="utf-8")
    draft.replace(state / STATE_FILE)


def _load(state: Path) -> Cluster | None:
    try:
        saved = json.loads((state / STATE_FILE).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except ValueError as cause:
        raise ClusterError(f"{state / STATE_FILE}: is not JSON: {cause}") from cause
    processes = {name: Process(**process) for name, process in saved["processes"].items()}
    return Cluster(Sizes(**saved["sizes"]), Ports(**saved["ports"]), processes)


if __name__ == "__main__":
    raise SystemExit(main())
