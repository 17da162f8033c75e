"""Images, addresses and options of the containers agree with each other, with the POM, and with the command."""

from __future__ import annotations

import re
import shlex
import socket
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest
import yaml
from apache_beam.options.pipeline_options import FlinkRunnerOptions, PortableOptions

from deploy.flink import cluster, worker_pool
from deploy.flink.cluster import Cluster, Ports, Sizes
from semrank.pipelines import __version__, rank
from semrank.pipelines.cli import command_parser
from semrank.pipelines.config import round_config
from semrank.pipelines.runtime import beam_options

FOLDER = Path(cluster.__file__).parent
ROOT = FOLDER.parents[1]
RELEASE = __version__.rpartition(".")[0]
WORKER_IMAGE = f"semrank-worker:{RELEASE}"
JOB_SERVER_IMAGE = f"semrank-jobserver:{RELEASE}"
VENDOR_IMAGES = {"${LAUNCHER}", "${WORKER_SDK}"}
"""Images of a vendor, which arguments of a build name."""

POOL_PORT = 50000
"""Port of the SDK image's worker pool."""


POD_FIELDS = {"podTemplate", "replicas", "resource"}
DEPLOYMENT_FIELDS = {
    "flinkConfiguration", "flinkVersion", "image", "imagePullPolicy", "ingress", "job", "jobManager",
    "logConfiguration", "mode", "podTemplate", "restartNonce", "serviceAccount", "taskManager",
}  # fmt: skip
"""Fields of a FlinkDeployment's specification, and of its two kinds of pods, as the operator's v1beta1 defines them."""


KINDS = {"PersistentVolumeClaim", "FlinkDeployment", "Service", "Deployment", "NetworkPolicy", "Job"}
"""Kinds of the Kubernetes manifests."""


def pom_property(name: str) -> str:
    space = {"m": "http://maven.apache.org/POM/4.0.0"}
    found = ET.parse(FOLDER / "pom.xml").find(f"m:properties/m:{name}", space)
    assert found is not None
    assert found.text is not None
    return found.text


def compose() -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load((FOLDER / "compose.yaml").read_text(encoding="utf-8"))
    return content


def manifests() -> list[dict[str, Any]]:
    texts = [(FOLDER / "kubernetes" / name).read_text(encoding="utf-8") for name in ("cluster.yaml", "round.yaml")]
    return [document for text in texts for document in yaml.safe_load_all(text)]


def of_kind(kind: str) -> dict[str, Any]:
    (found,) = (document for document in manifests() if document["kind"] == kind)
    return found


def flags(arguments: list[str]) -> dict[str, str]:
    return dict(argument.removeprefix("--").split("=", 1) for argument in arguments if "=" in argument)


def check_beam_options(arguments: list[str]) -> PortableOptions:
    options = beam_options(arguments)
    portable: PortableOptions = options.view_as(PortableOptions)
    assert portable.environment_type == "EXTERNAL"
    assert portable.environment_config == f"localhost:{POOL_PORT}"
    return portable


def compose_properties() -> dict[str, Any]:
    """Flink's configuration, which all of its containers get as a file."""
    content = compose()
    flink = [service for service in content["services"].values() if "configs" in service]
    assert {service["configs"][0]["target"] for service in flink} == {"/opt/flink/conf/config.yaml"}
    # A service whose root file system is read-only can't get the contents of a configuration, only a file.
    assert set(content["configs"]["flink"]) == {"file"}
    text = (FOLDER / content["configs"]["flink"]["file"]).read_text(encoding="utf-8")
    properties: dict[str, Any] = yaml.safe_load(text)
    return properties


def pods() -> list[dict[str, Any]]:
    """The pods of the Kubernetes manifests; those of Flink with what its common template says."""
    flink = of_kind("FlinkDeployment")["spec"]
    common, manager = flink["podTemplate"]["spec"], flink["taskManager"]["podTemplate"]["spec"]
    main = {
        **common["containers"][0],
        "resources": {"limits": flink["taskManager"]["resource"]},
        "volumeMounts": common["containers"][0]["volumeMounts"] + manager["containers"][0]["volumeMounts"],
    }
    merged = {
        **common,
        "containers": [main, *manager["containers"][1:]],
        "volumes": common["volumes"] + manager["volumes"],
    }
    return [merged, *(of_kind(kind)["spec"]["template"]["spec"] for kind in ("Deployment", "Job"))]


def compose_options() -> list[str]:
    (line,) = re.findall(r"^# options: (.*)$", (FOLDER / "compose.yaml").read_text(encoding="utf-8"), re.MULTILINE)
    return shlex.split(line)


def named_images(content: Any) -> set[str]:
    """Images that a YAML document names, at any depth."""
    if isinstance(content, list):
        return set().union(*map(named_images, content))
    if not isinstance(content, dict):
        return set()
    own = {value for key, value in content.items() if key == "image"}
    return own | named_images(list(content.values()))


def test_images_are_built_here_or_pinned() -> None:
    dockerfiles = [path.read_text(encoding="utf-8") for path in (ROOT / "deploy").rglob("Dockerfile*")]
    bases = {line[1] for text in dockerfiles for line in map(str.split, text.splitlines()) if line[:1] == ["FROM"]}
    paths = [*(ROOT / "deploy").rglob("*.yaml"), *(ROOT / "deploy").rglob("*.yml")]
    documents = [document for path in paths for document in yaml.safe_load_all(path.read_text(encoding="utf-8"))]
    built = {
        name for text in dockerfiles for name in re.findall(r"^#   docker build .* -t (\S+) \.$", text, re.MULTILINE)
    }
    assert {WORKER_IMAGE, JOB_SERVER_IMAGE} <= built
    foreign = (bases | named_images(documents)) - built - VENDOR_IMAGES
    assert len(foreign) == 4, foreign
    assert [name for name in foreign if not re.fullmatch(r"[a-z-]+:[\w.-]+@sha256:[0-9a-f]{64}", name)] == []


def test_images() -> None:
    services = compose()["services"]
    flink_image = services["jobmanager"]["image"]
    # Beam's job server for a line of Flink serves all of its releases.
    assert flink_image.startswith(f"flink:{pom_property('flink.line')}.")
    assert pom_property("flink.version").startswith(pom_property("flink.line") + ".")
    assert {name: service["image"] for name, service in services.items()} == {
        **dict.fromkeys(("jobmanager", "taskmanager-1", "taskmanager-2"), flink_image),
        **dict.fromkeys(("worker-1", "worker-2", "semrank"), WORKER_IMAGE),
        "jobserver": JOB_SERVER_IMAGE,
    }
    deployment = of_kind("FlinkDeployment")["spec"]
    assert deployment["image"] == flink_image
    assert deployment["flinkVersion"] == f"v{pom_property('flink.line').replace('.', '_')}"
    assert of_kind("Deployment")["spec"]["template"]["spec"]["containers"][0]["image"] == JOB_SERVER_IMAGE
    (worker,) = (
        container
        for container in deployment["taskManager"]["podTemplate"]["spec"]["containers"]
        if container["name"] == "worker"
    )
    assert worker["image"] == of_kind("Job")["spec"]["template"]["spec"]["containers"][0]["image"] == WORKER_IMAGE
    assert worker["args"] == services["worker-1"]["command"] == [str(POOL_PORT)]


@pytest.mark.parametrize("name", ["Dockerfile.worker", "Dockerfile.jobserver"])
def test_images_are_built_from_files_that_are_there(name: str) -> None:
    text = (FOLDER / name).read_text(encoding="utf-8")
    copied = [part for line in re.findall(r"^COPY (?!--from)(.+) \S+$", text, re.MULTILINE) for part in line.split()]
    assert copied
    assert [part for part in copied if not (ROOT / part).exists()] == []


def test_worker_image_has_the_python_that_its_packages_are_locked_for() -> None:
    text = (FOLDER / "Dockerfile.worker").read_text(encoding="utf-8")
    (version,) = re.findall(r"^FROM python:([\d.]+)-slim", text, re.MULTILINE)
    assert f'"--python-version", "{version}"' in (ROOT / ".ci" / "supply_chain.py").read_text(encoding="utf-8")


def test_job_server_image_has_the_jars_of_the_pom() -> None:
    lines = (ROOT / "deploy" / "locks" / "jars.sha256").read_text(encoding="ascii").splitlines()
    assert [line for line in lines if not re.fullmatch(r"[0-9a-f]{64}  [\w.-]+\.jar", line)] == []
    names = [line.split()[1] for line in lines]
    assert names == sorted(names)
    assert {
        f"beam-runners-flink-{pom_property('flink.line')}-{pom_property('beam.version')}.jar",
        f"flink-runtime-web-{pom_property('flink.version')}.jar",
        f"slf4j-simple-{pom_property('slf4j.version')}.jar",
    } <= set(names)


def test_compose_addresses() -> None:
    services, options = compose()["services"], check_beam_options(compose_options())
    server = flags(services["jobserver"]["command"])
    assert options.job_endpoint == f"{server['job-host']}:{server['job-port']}"
    assert server["job-host"] in services
    assert options.view_as(FlinkRunnerOptions).flink_master == server["flink-master"]
    properties = compose_properties()
    managers = [name for name in services if name.startswith("taskmanager-")]
    assert properties["jobmanager.rpc.address"] in services
    slots = properties["taskmanager.numberOfTaskSlots"] * len(managers)
    assert options.view_as(FlinkRunnerOptions).parallelism == slots
    pools = {service["network_mode"] for service in services.values() if "network_mode" in service}
    assert pools == {f"service:{name}" for name in managers}
    for name in (*managers, "worker-1", "worker-2", "jobserver", "semrank"):
        assert services[name]["volumes"] == ["data:/data"]
    assert server["artifacts-dir"].startswith("/data/")


def test_kubernetes_addresses() -> None:
    container = of_kind("Job")["spec"]["template"]["spec"]["containers"][0]
    assert container["command"] == ["semrank"]
    command, *arguments = container["args"]
    assert command == "rank"
    parsed, beam_arguments = command_parser("rank", rank).parse_known_args(arguments)
    round_config(parsed)
    options = check_beam_options(beam_arguments)
    server = flags(of_kind("Deployment")["spec"]["template"]["spec"]["containers"][0]["args"])
    service, deployment = of_kind("Service"), of_kind("FlinkDeployment")
    ports = {port["name"]: str(port["port"]) for port in service["spec"]["ports"]}
    assert (ports["job"], ports["artifact"]) == (server["job-port"], server["artifact-port"])
    assert server["job-host"] == service["metadata"]["name"]
    assert options.job_endpoint == f"{service['metadata']['name']}:{ports['job']}"
    # The operator names the service of Flink's REST address after the deployment.
    assert server["flink-master"] == f"{deployment['metadata']['name']}-rest:8081"
    assert options.view_as(FlinkRunnerOptions).flink_master == server["flink-master"]
    spec = deployment["spec"]
    slots = int(spec["flinkConfiguration"]["taskmanager.numberOfTaskSlots"]) * spec["taskManager"]["replicas"]
    assert options.view_as(FlinkRunnerOptions).parallelism == slots
    claim = of_kind("PersistentVolumeClaim")["metadata"]["name"]
    for pod in pods():
        claims = [volume["persistentVolumeClaim"] for volume in pod["volumes"] if "persistentVolumeClaim" in volume]
        assert [volume["claimName"] for volume in claims] == [claim]
        for container in pod["containers"]:
            assert {"name": "data", "mountPath": "/data"} in container["volumeMounts"]
            assert {mount["name"] for mount in container["volumeMounts"]} <= {
                volume["name"] for volume in pod["volumes"]
            }


def test_pods_are_confined() -> None:
    flink = of_kind("FlinkDeployment")["spec"]
    job_manager = {
        **flink["podTemplate"]["spec"]["containers"][0],
        "resources": {"limits": flink["jobManager"]["resource"]},
    }
    assert {document["kind"] for document in manifests()} == KINDS, "further pods have to be confined, too"
    for pod in [*pods(), {**flink["podTemplate"]["spec"], "containers": [job_manager]}]:
        assert not {"initContainers", "hostNetwork", "hostPID", "hostIPC"} & set(pod)
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        for container in pod["containers"]:
            context = container["securityContext"]
            assert "privileged" not in context
            assert all("hostPort" not in port for port in container.get("ports", []))
            assert {**pod["securityContext"], **context}["runAsUser"] in (9999, 10001)
            assert context["allowPrivilegeEscalation"] is False
            assert context["readOnlyRootFilesystem"] is True
            assert context["capabilities"] == {"drop": ["ALL"]}
            assert {"cpu", "memory"} <= set(container["resources"]["limits"])
            assert {"name": "tmp", "mountPath": "/tmp"} in container["volumeMounts"]


def test_only_pods_of_the_cluster_reach_it() -> None:
    policy = of_kind("NetworkPolicy")["spec"]
    (chosen,) = policy["podSelector"]["matchExpressions"]
    assert policy["policyTypes"] == ["Ingress"]
    labels = [of_kind(kind)["spec"]["template"]["metadata"]["labels"]["app"] for kind in ("Deployment", "Job")]
    assert set(chosen["values"]) == {of_kind("FlinkDeployment")["metadata"]["name"], *labels}
    own, operator = policy["ingress"]
    assert own["from"] == [{"podSelector": policy["podSelector"]}]
    assert operator["ports"] == [{"port": 8081}]


def test_containers_of_compose_are_confined() -> None:
    for service in compose()["services"].values():
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
        assert {"mem_limit", "cpus", "pids_limit", "tmpfs"} <= set(service)
        assert service.get("user") == "9999:9999" or service["image"] == WORKER_IMAGE
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", []))
        assert not {"privileged", "cap_add", "pid", "ipc", "devices"} & set(service)
        assert service.get("network_mode", "service:").startswith("service:")
    for name in ("Dockerfile.worker", "Dockerfile.jobserver"):
        text = (FOLDER / name).read_text(encoding="utf-8")
        assert re.search(r"^USER [1-9]\d*:[1-9]\d*$", text, re.MULTILINE)
    text = (FOLDER / "Dockerfile.worker").read_text(encoding="utf-8")
    # The pool of the SDK image listens on every address; ours on the loopback address.
    assert 'ENTRYPOINT ["python", "/opt/semrank/worker_pool.py"]' in text
    assert worker_pool.HOST == "127.0.0.1"


def listening(port: int) -> set[str]:
    """Addresses on which processes of this machine listen at a port, as `/proc/net` has them."""
    rows = [line.split() for name in ("tcp", "tcp6") for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]]
    places = [row[1].split(":") for row in rows if row[3] == "0A"]
    return {address for address, number in places if int(number, 16) == port}


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="needs Linux")
def test_the_worker_pool_listens_on_the_loopback_address_only() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    program = [sys.executable, "-W", "ignore", worker_pool.__file__, str(port)]
    pool = subprocess.Popen(program, stderr=subprocess.DEVNULL)
    try:
        end = time.monotonic() + 120
        while not (found := listening(port)) and pool.poll() is None and time.monotonic() < end:
            time.sleep(0.1)
    finally:
        pool.terminate()
        pool.wait(timeout=60)
    # 127.0.0.1, or the same as an address of IPv6; bytes in the order of little-endian machines.
    assert found
    assert found <= {"0100007F", "0000000000000000FFFF00000100007F"}


def test_the_operator_knows_the_fields_of_the_deployment() -> None:
    deployment = of_kind("FlinkDeployment")
    assert deployment["apiVersion"] == "flink.apache.org/v1beta1"
    spec = deployment["spec"]
    assert set(spec) <= DEPLOYMENT_FIELDS
    for pods in ("jobManager", "taskManager"):
        assert set(spec[pods]) <= POD_FIELDS
        assert set(spec[pods]["resource"]) <= {"cpu", "memory", "ephemeralStorage"}
    # Only a standalone cluster has the TaskManagers that `replicas` tells; without a job it is one for sessions.
    assert spec["mode"] == "standalone"
    assert "job" not in spec
    assert all(isinstance(value, str) for value in spec["flinkConfiguration"].values())
    containers = [container["name"] for container in spec["taskManager"]["podTemplate"]["spec"]["containers"]]
    assert containers.count("flink-main-container") == 1, "the operator puts Flink into the container of this name"


def test_job_servers_get_options_that_the_job_server_has(tmp_path: Path) -> None:
    """`cluster up` runs Beam's job server with these options; one that it doesn't know ends it at once."""
    started = cluster._commands("java", tmp_path, tmp_path, "python", Cluster(Sizes(), Ports(1, 2, 3, 4, 5, 6), {}))
    known = {word for word in started[cluster.JOB_SERVER] if word.startswith("--")}
    in_compose = compose()["services"]["jobserver"]["command"]
    in_kubernetes = of_kind("Deployment")["spec"]["template"]["spec"]["containers"][0]["args"]
    for arguments in (in_compose, in_kubernetes):
        assert {argument.split("=")[0] for argument in arguments} <= known
        # Pipelines of Python have nothing to expand, and the service would listen on every address.
        assert "--expansion-port=-1" in arguments


@pytest.mark.parametrize(
    "name",
    [
        "cluster.evenly-spread-out-slots",
        "restart-strategy.type",
        "restart-strategy.exponential-delay.initial-backoff",
        "restart-strategy.exponential-delay.max-backoff",
        "restart-strategy.exponential-delay.jitter-factor",
        "restart-strategy.exponential-delay.attempts-before-reset-backoff",
        "restart-strategy.exponential-delay.reset-backoff-threshold",
        "heartbeat.interval",
        "heartbeat.timeout",
        "taskmanager.memory.task.off-heap.size",
        "taskmanager.network.sort-shuffle.min-parallelism",
        "slot.request.timeout",
    ],
)
def test_containers_have_the_settings_that_were_measured(name: str) -> None:
    measured = cluster.flink_configuration(Sizes(), Ports(1, 2, 3, 4, 5, 6), Path("temporary"))[name]
    properties = compose_properties()
    found = {str(properties[name]).lower(), of_kind("FlinkDeployment")["spec"]["flinkConfiguration"][name].lower()}
    assert found == {measured}


def test_containers_open_the_packages_of_java_that_flink_needs() -> None:
    opens = " ".join(f"--add-opens={package}=ALL-UNNAMED" for package in cluster.ADD_OPENS)
    found = {
        compose_properties()["env.java.opts.all"],
        of_kind("FlinkDeployment")["spec"]["flinkConfiguration"]["env.java.opts.all"],
    }
    assert found == {opens}


def megabytes(text: str) -> int:
    return int(text[:-1]) * {"m": 1, "g": 1024}[text[-1]]


@pytest.mark.parametrize(("process", "service"), [("jobmanager", "jobmanager"), ("taskmanager", "taskmanager-1")])
def test_flink_in_compose_has_its_memory(process: str, service: str) -> None:
    """Without its size, which the image's own configuration has, Flink does not start the process."""
    size = compose_properties()[f"{process}.memory.process.size"]
    assert megabytes(size) < megabytes(compose()["services"][service]["mem_limit"])


def test_printed_options_are_understood() -> None:
    printed = cluster.job_options(Cluster(Sizes(task_managers=3, slots=2), Ports(1, 2, 3, 4, 5, 6), {}))
    options = beam_options(printed)
    assert options.view_as(PortableOptions).job_endpoint == "127.0.0.1:4"
    assert options.view_as(FlinkRunnerOptions).flink_master == "127.0.0.1:1"
    assert options.view_as(FlinkRunnerOptions).parallelism == 6
    assert options.view_as(PortableOptions).environment_config == "127.0.0.1:6"


def test_sizes_follow_the_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert Sizes.of_machine(4_096, 4) == Sizes()
    assert Sizes.of_machine(24_000, 2) == Sizes(slots=1, heap=2_000, managed=1_000)
    assert Sizes.of_machine(24_000, 1).slots == 1
    limit = tmp_path / "memory.max"
    monkeypatch.setattr(cluster, "CONTAINER_LIMIT", limit)
    whole = cluster.machine_megabytes()
    limit.write_text("max\n", encoding="ascii")
    assert cluster.machine_megabytes() == whole
    limit.write_text(f"{64 << 20}\n", encoding="ascii")
    assert cluster.machine_megabytes() == 64
