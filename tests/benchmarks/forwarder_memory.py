"""Memory and speed of the forwarder with 10,000 pods and 500 nodes.

Run by hand or by `make bench`: python tests/benchmarks/forwarder_memory.py [PODS [NODES]]
The API server and the event bus run in this process; the forwarder is a process of its own.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

BAR_MIB = 80.0
WORKLOADS = 100
EVENTS = 1000
PODS = "/api/v1/namespaces/default/pods"
MERGE = "application/merge-patch+json"


def pod(number: int, nodes: int) -> dict[str, Any]:
    """Return a pod the size of those on EKS, about 6 kB; every tenth is pending."""
    workload = number % WORKLOADS
    pending = number % 10 == 0
    variables = [{"name": f"VARIABLE_{n}", "value": "x" * 40} for n in range(40)]
    container = {
        "name": "app",
        "image": f"registry.example.com/team/app-{workload}:1.2.3",
        "env": variables,
        "resources": {"requests": {"cpu": "250m", "memory": "256Mi"}, "limits": {"cpu": "1"}},
        "volumeMounts": [{"name": "token", "mountPath": "/var/run/secrets", "readOnly": True}],
    }
    spec: dict[str, Any] = {"containers": [container], "serviceAccountName": "default"}
    reason = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    status: dict[str, Any] = {"phase": "Pending", "conditions": [reason]}
    if not pending:
        spec["nodeName"] = f"node-{number % nodes}"
        kinds = ("Initialized", "Ready", "ContainersReady", "PodScheduled")
        conditions = [
            {"type": kind, "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
            for kind in kinds
        ]
        status = {"phase": "Running", "podIP": "10.0.0.1", "conditions": conditions}
    annotations = {f"example.com/note-{n}": "y" * 60 for n in range(8)}
    owner = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "name": f"app-{workload}-5d4f7c9b8",
        "uid": f"00000000-0000-0000-0000-{workload:012d}",
        "controller": True,
    }
    metadata = {
        "namespace": "default",
        "name": f"app-{workload}-5d4f7c9b8-{number:05d}",
        "labels": {"app": f"app-{workload}", "pod-template-hash": "5d4f7c9b8"},
        "annotations": annotations,
        "ownerReferences": [owner],
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": spec,
        "status": status,
    }


def node(number: int) -> dict[str, Any]:
    """Return a Dovetail node with the images that a kubelet reports."""
    amounts = {"cpu": "7910m", "memory": "14Gi", "pods": "58"}
    images = [{"names": [f"registry.example.com/i-{n}@sha256:{n:064d}"]} for n in range(50)]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": f"node-{number}",
            "labels": {"karpenter.sh/provisioner-name": "default"},
            "annotations": {"dovetail.dev/slot": f"plan/0/{number}"},
            "finalizers": ["karpenter.sh/termination"],
        },
        "spec": {"providerID": f"aws:///us-west-2a/i-{number:017x}"},
        "status": {
            "allocatable": amounts,
            "capacity": amounts,
            "images": images,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


class Bus:
    """A stand-in of EventBridge: accepts every entry and counts the objects."""

    def __init__(self) -> None:
        self.objects: dict[str, set[str]] = {}
        self.calls = 0
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                outer.take(body["Entries"])
                entries = [{"EventId": "e"} for _ in body["Entries"]]
                answer = json.dumps({"FailedEntryCount": 0, "Entries": entries}).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/x-amz-json-1.1")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self) -> None:
        """Serve no longer."""
        self.server.shutdown()
        self.server.server_close()

    def take(self, entries: list[dict[str, Any]]) -> None:
        """Note one call."""
        self.calls += 1
        for entry in entries:
            names = {ref["name"] for ref in json.loads(entry["Detail"])["objects"]}
            self.objects.setdefault(entry["DetailType"], set()).update(names)

    def count(self, kind: str) -> int:
        """Return how many objects were announced under a kind."""
        return len(self.objects.get(kind, ()))


def resident_mib(pid: int, field: str = "VmRSS") -> float:
    """Return the resident memory of a process in MiB; VmHWM for its peak."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field)) / 1024


def cpu_seconds(pid: int) -> float:
    """Return the CPU time a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def wait_for(condition: Any, seconds: float = 120.0) -> float:
    """Wait until a condition holds; return how long it took."""
    began = time.monotonic()
    while not condition():
        if time.monotonic() - began > seconds:
            raise TimeoutError("the forwarder did not get there")
        time.sleep(0.02)
    return time.monotonic() - began


@contextmanager
def forwarder(api_url: str, bus_url: str, folder: Path) -> Iterator[subprocess.Popen[str]]:
    """Run the forwarder as a process."""
    config = folder / "kubeconfig"
    config.write_text(
        json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": "c",
                "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
                "clusters": [{"name": "c", "cluster": {"server": api_url}}],
                "users": [{"name": "u", "user": {"token": "t"}}],
            }
        )
    )
    environment = {
        "PATH": os.environ["PATH"],
        "DOVETAIL_CLUSTER": "bench",
        "DOVETAIL_BUS": "dovetail",
        "DOVETAIL_KUBECONFIG": str(config),
        "AWS_ENDPOINT_URL": bus_url,
        "AWS_REGION": "us-west-2",
        "AWS_ACCESS_KEY_ID": "local",
        "AWS_SECRET_ACCESS_KEY": "local",
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "functions.forwarder"],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def fill(api: Any, pods: int, nodes: int) -> None:
    """Put the objects into the API server."""
    for number in range(nodes):
        put(api, "/api/v1/nodes", node(number))
    for number in range(pods):
        put(api, PODS, pod(number, nodes))


def put(api: Any, path: str, raw: dict[str, Any]) -> None:
    """Make an object with its status, which the server takes only by itself."""
    made = api.send("POST", path, body=raw)
    body = {"status": raw["status"]}
    status = f"{path}/{raw['metadata']['name']}/status"
    set_ = api.send("PATCH", status, body=body, content_type=MERGE)
    assert made.ok, made
    assert set_.ok, set_


def prepare(api: Any) -> None:
    """Make the Provisioner resource known."""
    import yaml

    crd = yaml.safe_load((ROOT / "infra" / "cluster" / "provisioners.yaml").read_text())
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    assert api.send("POST", path, body=crd).ok


def main() -> int:
    """Measure, print, and fail when the bar is missed."""
    from infra.local.kube.server import EmbeddedKube
    from shared.kube.connection import connect_endpoint

    pods = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    nodes = int(sys.argv[2]) if len(sys.argv) > 2 else 500
    pending = (pods + 9) // 10
    bus = Bus()
    with EmbeddedKube() as kube, tempfile.TemporaryDirectory() as folder:
        api = connect_endpoint(kube.url, "", lambda: "t")
        prepare(api)
        fill(api, pods, nodes)
        with forwarder(kube.url, bus.url, Path(folder)) as process:
            sync = wait_for(lambda: bus.count("pod-pending") >= pending)
            resident, busy = resident_mib(process.pid), cpu_seconds(process.pid)
            patch = {"metadata": {"labels": {"touched": "yes"}}}
            touched = [n for n in range(pods) if n % 10][:EVENTS]
            for number in touched:
                name = pod(number, nodes)["metadata"]["name"]
                api.send("PATCH", f"{PODS}/{name}", body=patch, content_type=MERGE)
            late = pod(0, nodes)
            late["metadata"]["name"] = "last"
            put(api, PODS, late)
            wait_for(lambda: "last" in bus.objects.get("pod-pending", ()))
            after = resident_mib(process.pid)
            peak = resident_mib(process.pid, "VmHWM")
            events_cpu = cpu_seconds(process.pid) - busy
            began = time.monotonic()
            process.send_signal(signal.SIGTERM)
            code = process.wait(10)
            ended = time.monotonic() - began
    sys.stdout.write(
        f"{pods} pods, {nodes} nodes: RSS {resident:.1f} MiB after sync, {after:.1f} MiB after "
        f"{len(touched)} events, peak {peak:.1f} MiB (bar {BAR_MIB:.0f}); start to all "
        f"{pending} pending announced {sync:.1f} s; {busy:.1f} s CPU; events {events_cpu:.2f} s "
        f"CPU; SIGTERM to exit {ended:.2f} s, code {code}; {bus.calls} calls to the bus\n"
    )
    return 0 if max(resident, after) <= BAR_MIB and code == 0 and ended < 2.0 else 1


if __name__ == "__main__":
    sys.exit(main())
