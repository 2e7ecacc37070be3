"""A hollow kubelet for each running instance: started from its user data, killed with it."""

import base64
import json
import shutil
import tempfile
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from botocore.credentials import Credentials
from botocore.exceptions import BotoCoreError, ClientError
from botocore.hooks import HierarchicalEmitter
from botocore.model import ServiceId
from botocore.signers import RequestSigner
from urllib3.exceptions import HTTPError

from infra.local.cluster_simulator.kubelet.kubelet import READY_AFTER, STOPPED
from infra.local.demo.children import Children
from infra.local.demo.cluster_client import Refused
from infra.local.demo.node_sizes import node_sizes
from infra.local.demo.world import World
from infra.local.kube.kubeconfig import write_kubeconfig
from tests.real.user_data import Boot, Instance, UnusableError, boot_of

REGION: Final = "us-east-1"
_LOOK_SECONDS: Final = 1.0
# A token is renewed after this, and good for 15 minutes.
_TOKEN_SECONDS: Final = 480.0
_TOKEN_LIFE_SECONDS: Final = 900
_MACHINES: Final = ("pending", "running")
# A part of the name of the image of each device plugin.
_PLUGINS: Final = {
    "nvidia.com/gpu": "k8s-device-plugin",
    "amd.com/gpu": "k8s-device-plugin",
    "aws.amazon.com/neuron": "neuron-device-plugin",
    "aws.amazon.com/neuroncore": "neuron-device-plugin",
    "habana.ai/gaudi": "habana-device-plugin",
    "vpc.amazonaws.com/efa": "aws-efa-k8s-device-plugin",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Kubelet:
    """A kubelet that runs or will."""

    name: str
    instance_id: str
    cluster: str
    role: str
    token: Path


# A kubelet and its command line.
Prepared = tuple[Kubelet, list[str]]


class HollowNodes:
    """The kubelets of all instances; a context manager that ends them.

    Attributes:
        problems: Why a machine has no kubelet, in words.
    """

    def __init__(self, program: Path, world: World, *, boot_seconds: float, logs: Path) -> None:
        """Prepare.

        Args:
            program: The program with the kubelet.
            world: With the embedded AWS API and the cluster.
            boot_seconds: From the state `running` until the kubelet starts, unless the Node says
                that it takes longer.
            logs: Folder for the kubelets' logs and what else they are told.
        """
        self.problems: list[str] = []
        self._program = program
        self._boot_seconds = boot_seconds
        self._logs = logs
        # Sockets lie below it, and the path of a socket has 107 characters at most.
        self._folder = Path(tempfile.mkdtemp(prefix="hollow-"))
        self._children = Children(self._folder)
        self._machines = node_sizes()
        self._aws = {name: world.client(name) for name in ("ec2", "iam", "sts")}
        self._cluster = world.cluster
        # A signer keeps a weak reference to it.
        self._emitter = HierarchicalEmitter()
        self._running_since: dict[str, float] = {}
        self._prepared: dict[str, Prepared | None] = {}
        self._started: dict[str, Kubelet | None] = {}
        self._roles: dict[str, str] = {}
        self._signed_at = time.monotonic()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="hollow-nodes", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self._ended.set()
        self._thread.join(timeout=60)
        self._children.stop_all()
        self._logs.mkdir(parents=True, exist_ok=True)
        for file in (*self._folder.glob("*.log"), *self._folder.glob("*.json")):
            shutil.copy(file, self._logs / file.name)
        shutil.rmtree(self._folder, ignore_errors=True)

    # -- inside --------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            while not self._ended.wait(_LOOK_SECONDS):
                try:
                    self._look()
                except (BotoCoreError, ClientError, HTTPError, Refused) as error:
                    # The next look will do, unless it is the last.
                    self._say(f"AWS or the API server does not answer: {error}")
        except Exception as error:
            self.problems.append(f"no machine boots any more: {error!r}")
            raise

    def _look(self) -> None:
        pages = self._aws["ec2"].get_paginator("describe_instances").paginate()
        found = {
            instance["InstanceId"]: instance
            for page in pages
            for reservation in page["Reservations"]
            for instance in reservation["Instances"]
            if instance["State"]["Name"] in _MACHINES
        }
        now = time.monotonic()
        for instance_id in self._stopped():
            found.pop(instance_id, None)
        for instance_id in [value for value in self._started if value not in found]:
            self._kill(instance_id)
        for entry in found.values():
            if entry["State"]["Name"] == "running" and entry["InstanceId"] not in self._started:
                self._go_on(entry, now)
        for instance_id, started in self._started.items():
            if started is not None and not self._children.alive(instance_id):
                self.problems.append(f"the kubelet of {instance_id} ended by itself")
                self._started[instance_id] = None
        if now - self._signed_at > _TOKEN_SECONDS:
            self._signed_at = now
            for started in self._started.values():
                if started is not None:
                    self._sign(started)

    def _stopped(self) -> list[str]:
        """Return the instances whose Node says that their kubelet's process has ended."""
        return [
            node["spec"]["providerID"].rpartition("/")[2]
            for node in self._cluster.items("api/v1/nodes")
            if STOPPED in (node["metadata"].get("annotations") or {})
        ]

    def _go_on(self, found: Mapping[str, Any], now: float) -> None:
        """Prepare or start the kubelet of a machine that boots."""
        instance_id = found["InstanceId"]
        waited = now - self._running_since.setdefault(instance_id, now)
        # What a machine reads is read while it boots: machines boot side by side.
        if instance_id not in self._prepared:
            self._prepared[instance_id] = self._prepare(found)
        if waited >= self._boot_seconds and waited >= self.boots_in(found):
            self._started[instance_id] = self._boot(found)

    def boots_in(self, found: Mapping[str, Any]) -> float:
        """Return the seconds that the Node says the machine needs, 0 when it says nothing."""
        name = f"metadata.name={found['PrivateDnsName']}"
        for node in self._cluster.items("api/v1/nodes", fieldSelector=name):
            return float(node["metadata"].get("annotations", {}).get(READY_AFTER, 0))
        return 0.0

    def _prepare(self, found: Mapping[str, Any]) -> Prepared | None:
        """Write what the kubelet reads; None when the machine would not start it."""
        instance_id = found["InstanceId"]
        told = self._aws["ec2"].describe_instance_attribute(
            InstanceId=instance_id, Attribute="userData"
        )
        try:
            # The account may sell types that the embedded catalogue lacks.
            machine = self._machines[found["InstanceType"]]
            instance = Instance(
                id=instance_id,
                zone=found["Placement"]["AvailabilityZone"],
                dns_name=found["PrivateDnsName"],
                cores=int(machine["capacity"]["cpu"]),
                pods=int(machine["capacity"]["pods"]),
            )
            boot = boot_of((told["UserData"].get("Value") or "").encode(), instance)
            role = self._role_of(found)
        except (UnusableError, LookupError) as error:
            self.problems.append(f"{instance_id} has no kubelet: {error!r}")
            return None
        kubelet = Kubelet(
            name=boot.name,
            instance_id=instance_id,
            cluster=boot.cluster,
            role=role,
            token=self._folder / f"{instance_id}.token",
        )
        self._sign(kubelet)
        return kubelet, self._command(boot, kubelet, machine_file(machine, instance))

    def _boot(self, found: Mapping[str, Any]) -> Kubelet | None:
        prepared = self._prepared[found["InstanceId"]]
        if prepared is None:
            return None
        kubelet, command = prepared
        name = kubelet.instance_id
        self._children.spawn(name, command, environment={"GOMAXPROCS": "1", "GOGC": "50"})
        self._say(f"{kubelet.name} {name} {found['InstanceType']} boots")
        return kubelet

    def _command(self, boot: Boot, started: Kubelet, machine: Mapping[str, Any]) -> list[str]:
        return [
            str(self._program),
            *kubelet_command(
                boot,
                folder=self._folder,
                name=started.instance_id,
                user={"tokenFile": str(started.token)},
                machine=machine,
            ),
        ]

    def _kill(self, instance_id: str) -> None:
        """End a kubelet without a farewell, as a machine ends."""
        started = self._started.pop(instance_id)
        if started is not None and self._children.alive(instance_id):
            self._children.stop(instance_id, hard=True)
            self._say(f"{started.name} {instance_id} is off")

    def _say(self, text: str) -> None:
        with (self._folder / "instances.log").open("a", encoding="utf-8") as log:
            log.write(f"{time.strftime('%H:%M:%S')} {text}\n")

    # -- credentials ---------------------------------------------------------------------------

    def _role_of(self, found: Mapping[str, Any]) -> str:
        """Return the role of the instance profile.

        Raises:
            LookupError: The instance has no profile, or the profile no role.
        """
        name = found["IamInstanceProfile"]["Arn"].rpartition("/")[2]
        if name not in self._roles:
            profile = self._aws["iam"].get_instance_profile(InstanceProfileName=name)
            self._roles[name] = str(profile["InstanceProfile"]["Roles"][0]["Arn"])
        return self._roles[name]

    def _sign(self, started: Kubelet) -> None:
        """Write the token that `aws eks get-token` would print on the instance.

        The session of an instance's role has the id of the instance as its name.

        Source: https://docs.aws.amazon.com/eks/latest/userguide/cluster-auth.html (2026-08)
        """
        made = self._aws["sts"].assume_role(
            RoleArn=started.role, RoleSessionName=started.instance_id
        )["Credentials"]
        credentials = Credentials(
            made["AccessKeyId"], made["SecretAccessKey"], made["SessionToken"]
        )
        signer = RequestSigner(ServiceId("STS"), REGION, "sts", "v4", credentials, self._emitter)
        url = signer.generate_presigned_url(
            {
                "method": "GET",
                "url": f"https://sts.{REGION}.amazonaws.com/"
                "?Action=GetCallerIdentity&Version=2011-06-15",
                "body": {},
                "headers": {"x-k8s-aws-id": started.cluster},
                "context": {},
            },
            region_name=REGION,
            expires_in=_TOKEN_LIFE_SECONDS,
            operation_name="",
        )
        fresh = started.token.with_suffix(".new")
        text = base64.urlsafe_b64encode(url.encode()).decode().rstrip("=")
        fresh.write_text(f"k8s-aws-v1.{text}", encoding="ascii")
        fresh.replace(started.token)


def kubelet_command(
    boot: Boot, *, folder: Path, name: str, user: Mapping[str, Any], machine: Mapping[str, Any]
) -> list[str]:
    """Return the arguments that start a hollow kubelet; its files are written to a folder."""
    files = {kind: folder / f"{name}.{kind}.json" for kind in ("kubeconfig", "config", "machine")}
    authority = {"certificate-authority-data": boot.authority}
    write_kubeconfig(files["kubeconfig"], boot.endpoint, authority, dict(user))
    files["config"].write_text(json.dumps(dict(boot.config), indent=1), encoding="utf-8")
    files["machine"].write_text(json.dumps(dict(machine), indent=1), encoding="utf-8")
    return [
        "kubelet",
        f"--kubeconfig={files['kubeconfig']}",
        f"--config={files['config']}",
        f"--machine={files['machine']}",
        f"--root-dir={folder / name}",
        *boot.flags,
    ]


def machine_file(machine: Mapping[str, Any], instance: Instance) -> dict[str, Any]:
    """Return what a hollow kubelet reads about its machine."""
    plain = {key: value for key, value in machine["capacity"].items() if key != "pods"}
    devices = {
        key: {"count": str(count), "image": _PLUGINS[key]}
        for key, count in machine["extended"].items()
        if key in _PLUGINS
    }
    volumes = {
        "image": "aws-ebs-csi-driver",
        "limit": 25,
        "instance": instance.id,
        "topology": {
            "topology.ebs.csi.aws.com/zone": instance.zone,
            "topology.kubernetes.io/zone": instance.zone,
        },
    }
    return {"capacity": plain, "devices": devices, "volumes": volumes}
