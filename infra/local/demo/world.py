"""The embedded world: AWS and Kubernetes APIs, the deployed stacks, the forwarder."""

import base64
import json
import secrets
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from infra.local.aws.clients import Access, clients_of
from infra.local.aws.control import ACCOUNT_ID
from infra.local.aws.embedded import call_verb
from infra.local.aws.templates.assembly import synth_command
from infra.local.aws.templates.deploy import deploy
from infra.local.aws.templates.resource_check import missing_resources
from infra.local.demo.children import ROOT, Children, undisturbed
from infra.local.demo.cluster_client import ClusterClient, read_documents
from infra.local.demo.external_cluster import ForeignCluster, leave
from infra.local.demo.karpenter import Karpenter
from infra.local.demo.node_sizes import node_sizes
from infra.local.demo.problem import Problem, last_words
from infra.local.kube.kubeconfig import write_kubeconfig
from infra.local.live_page import DecisionLines, LivePage
from infra.local.removal import remove_folder

CLUSTER = "demo"
REGION = "us-east-1"
STACKS = ("DovetailControlPlane", f"DovetailCluster-{CLUSTER}")
_NOT_APPLIED = ("Kustomization", "Deployment", "NetworkPolicy", "PriorityClass")


@dataclass(frozen=True, slots=True, kw_only=True)
class WorldOptions:
    """How the world is.

    Attributes:
        speed: Instances boot, pods start and manifests' ttls end this many times faster.
        kubeconfig: Of an API server to use in place of the embedded one, or None.
        bare: Whether that server has no controllers and no scheduler of its own.
        settings: Overrides of the functions' settings, by name.
        kubelets: Whether instances get simulated kubelets; without, only the nodes labelled
            `dovetail.dev/simulated` do.
        cloud: Whether the cloud controller manager is simulated. Both hold beside a server that
            has the other controllers.
    """

    speed: float = 1.0
    keep_logs: Path | None = None
    kubeconfig: Path | None = None
    bare: bool = False
    settings: Mapping[str, str] = field(default_factory=dict, hash=False)
    kubelets: bool = True
    cloud: bool = True

    @property
    def simulated(self) -> list[str]:
        """Return what the simulation is told about its parts."""
        parts = ["kubelet,cloud,csi" if self.cloud else "kubelet,csi"]
        only = ["--only", *parts] if self.kubeconfig and not self.bare else []
        return only if self.kubelets else [*only, "--node-label", "dovetail.dev/simulated=true"]


class World:
    """Everything on one machine; a context manager that leaves nothing behind."""

    def __init__(self, options: WorldOptions, say: Callable[[str], None]) -> None:
        """Prepare; `say` is told each stage of the way, for people."""
        self.options = options
        self._say = say
        self._folder = Path(tempfile.mkdtemp(prefix="dovetail-"))
        self.children = Children(self._folder)
        self._page = LivePage(self.children, self._folder, say)
        self._decisions = DecisionLines(self.children, self.log("decisions"), say)
        self.kubeconfig = self._folder / "kubeconfig"
        self._assembly = self._folder / "cdk.out"
        self.aws: Access
        self._kube: dict[str, Any] = {}
        self.foreign: ForeignCluster | None = None
        self._forwarder_token = secrets.token_hex(16)
        self._admin_token = secrets.token_hex(16)

    def __enter__(self) -> Self:
        try:
            self._begin()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self._end()

    @property
    def cluster(self) -> ClusterClient:
        """A client with the administrator's token."""
        return self.foreign or ClusterClient(
            self._kube["url"], token=self._admin_token, ca_file=self._kube["ca_file"]
        )

    def client(self, service: str) -> Any:
        return clients_of(self.aws)(service)

    @property
    def karpenter(self) -> Karpenter:
        """What launches instances as Karpenter does, and migrates them."""
        return Karpenter(self.cluster, clients_of(self.aws), CLUSTER, self.aws.environment)

    def control(self, verb: str, **arguments: Any) -> Any:
        return call_verb(self.aws, verb, arguments)

    def start_forwarder(self) -> None:
        """Start the forwarder as its own process, as the Deployment would."""
        kubeconfig = self._folder / "forwarder.kubeconfig"
        self._write_kubeconfig(kubeconfig, self._forwarder_token)
        self.children.begin(
            "forwarder",
            ["-m", "functions.forwarder"],
            environment={
                **self.aws.environment,
                "DOVETAIL_CLUSTER": CLUSTER,
                "DOVETAIL_BUS": "dovetail",
                "DOVETAIL_KUBECONFIG": str(kubeconfig),
            },
        )

    @property
    def aws_environment(self) -> dict[str, str]:
        """What the `aws` command line needs to talk to the embedded AWS API."""
        return self.aws.environment

    @property
    def folder(self) -> Path:
        """Where logs and kubeconfig are while the world lives."""
        return self._folder

    def log(self, name: str) -> Path:
        return self._folder / f"{name}.log"

    def _begin(self) -> None:
        """Start what needs nothing of each other beside each other: it takes seconds."""
        self._synthesise()
        self._say("synthesising the CDK app, starting the embedded AWS API")
        self._start_aws()
        self._start_kube()
        self._seed()
        self._say("starting the simulated cluster, applying CRD and rights to it")
        self._launch_simulation()
        self._define()
        self._say("awaiting the CDK app's template")
        if self.children.wait("synth") != 0:
            raise Problem(f"synthesis failed: {last_words(self.log('synth'))}")
        self._say("deploying it into the embedded AWS API")
        deploy(self._assembly, self.aws, STACKS)
        with ThreadPoolExecutor(1) as pool:
            checked = pool.submit(self._check_deployment)
            self._admit_roles()
            self._say("starting the forwarder")
            self.children.ready("sim")
            self.start_forwarder()
            for shown in (self._decisions, self._page):
                shown.start(self.kubeconfig, CLUSTER, self.aws.environment)
            checked.result()

    def _define(self) -> None:
        """Apply the definitions of custom resources and the rights to the cluster."""
        client = self.cluster
        manifests = ROOT / "infra" / "cluster"
        pools = (manifests / "node_pools").glob("*.yaml")
        for document in read_documents(sorted([*manifests.glob("*.yaml"), *pools])):
            if document.get("kind") not in _NOT_APPLIED:
                client.apply(document)

    def _check_deployment(self) -> None:
        """Look up each resource of the template, which is needed no more."""
        missing = missing_resources(self._assembly, self.aws, STACKS)
        if missing:
            raise Problem(f"not deployed: {missing[0]} (and {len(missing) - 1} more)")
        remove_folder(self._assembly)

    def _synthesise(self) -> None:
        """Start the synthesis, which needs nothing of the world."""
        command = [sys.executable, str(ROOT / "tools" / "check_machine.py"), "node"]
        checked = subprocess.run(command, capture_output=True, text=True, check=False)
        if checked.returncode != 0:
            raise Problem(checked.stdout.strip())
        context: dict[str, Any] = {
            "clusters": CLUSTER,
            # No scenario comes near it.
            "max_price_per_hour": f"{CLUSTER}:100",
            "bundle": "code",
            # Nothing is pulled: the forwarder is a process of this machine.
            "forwarder_image": "localhost/dovetail/forwarder:local",
            "removal": "destroy",
            # Its keys are those of the account's root user.
            "migrators": f"{CLUSTER}:arn:aws:iam::{ACCOUNT_ID}:root",
        }
        if self.options.settings:
            context["settings"] = dict(self.options.settings)
        self.children.begin("synth", synth_command(context, self._assembly))

    def _start_aws(self) -> None:
        ready = self.children.start(
            "aws", ["infra.local.aws", "--region", REGION, "--log-dir", str(self._folder / "logs")]
        )
        self.aws = Access.read(ready)

    def _start_kube(self) -> None:
        auth, chosen = self._folder / "auth.json", self.options.kubeconfig
        self._write_auth(auth, [])
        server = ["infra.local.kube", "--port", "0"]
        if chosen is not None:
            # It does not know our tokens: a front translates them.
            server = ["infra.local.api_proxy", "--kubeconfig", str(chosen.resolve())]
        self._say(f"starting the {'front of the' if chosen else 'embedded'} Kubernetes API")
        tls = str(self._folder / "tls")
        self._kube = self.children.start(
            "kube",
            [*server, "--tls-dir", tls, "--auth-file", str(auth)],
            environment=self.aws.environment,
        )
        self._write_kubeconfig(self.kubeconfig, self._admin_token)
        if chosen is not None:
            url, ca_file = self._kube["url"], self._kube["ca_file"]
            foreign = ForeignCluster(url, token=self._admin_token, ca_file=ca_file)
            foreign.check()
            self.foreign = foreign

    def _seed(self) -> None:
        authority = base64.b64encode(Path(self._kube["ca_file"]).read_bytes()).decode()
        cluster = {"name": CLUSTER, "endpoint": self._kube["url"], "ca_data": authority}
        if self.foreign is not None:
            said = self.foreign.call("GET", "version")
            cluster["version"] = f"{said['major']}.{said['minor'].rstrip('+')}"
        self.control("seed", clusters=[cluster])

    def _admit_roles(self) -> None:
        """Tell the API server whom the access entries of the deployed stacks admit."""
        eks = self.client("eks")
        # EKS makes the creator of a cluster its administrator: the user's own credentials are
        # admitted too.
        me = self.client("sts").get_caller_identity()
        root = f"arn:aws:iam::{me['Account']}:root"
        entries = [{"role_arn": root, "username": root, "groups": ["system:masters"]}]
        for arn in eks.list_access_entries(clusterName=CLUSTER)["accessEntries"]:
            entry = eks.describe_access_entry(clusterName=CLUSTER, principalArn=arn)["accessEntry"]
            entries.append(
                {
                    "role_arn": arn,
                    "username": entry.get("username") or arn,
                    "groups": entry.get("kubernetesGroups") or [],
                }
            )
        self._write_auth(self._folder / "auth.json", entries)

    def _launch_simulation(self) -> None:
        sizes_file = self._folder / "sizes.json"
        sizes_file.write_text(json.dumps(node_sizes()), encoding="utf-8")
        # Any user of the machine can read a command line.
        token = self._folder / "admin.token"
        token.write_text(self._admin_token, encoding="ascii")
        self.children.launch(
            "sim",
            [
                "infra.local.cluster_simulator",
                "--server",
                self._kube["url"],
                "--token-file",
                str(token),
                "--ca-file",
                self._kube["ca_file"],
                "--machines",
                str(sizes_file),
                "--ec2-endpoint",
                self.aws.url,
                "--region",
                REGION,
                "--speed",
                str(self.options.speed),
                *self.options.simulated,
            ],
            environment=self.aws.environment,
        )

    def _write_auth(self, path: Path, entries: list[dict[str, Any]]) -> None:
        document = {
            "admin_token": self._admin_token,
            "static_tokens": [
                {
                    "token": self._forwarder_token,
                    "username": "system:serviceaccount:dovetail:dovetail-forwarder",
                    "groups": ["system:serviceaccounts"],
                }
            ],
            "sts_url": self.aws.url,
            "ec2_url": self.aws.url,
            "region": REGION,
            "cluster": CLUSTER,
            "access_entries": entries,
        }
        fresh = path.with_suffix(".new")
        fresh.write_text(json.dumps(document), encoding="utf-8")
        fresh.replace(path)

    def _write_kubeconfig(self, path: Path, token: str) -> None:
        authority = {"certificate-authority": self._kube["ca_file"]}
        write_kubeconfig(path, self._kube["url"], authority, {"token": token})

    def _end(self) -> None:
        self._page.stop()
        self._decisions.stop()
        try:
            if self.foreign is not None:
                if self.children.alive("forwarder"):
                    self.children.stop("forwarder")
                leave(self.foreign, self._say)
        finally:
            # A second Ctrl-C ends the cleaning; the processes end all the same.
            with undisturbed():
                self.children.stop_all()
                self._keep_logs()
                remove_folder(self._folder)

    def _keep_logs(self) -> None:
        if self.options.keep_logs is None:
            return
        self.options.keep_logs.mkdir(parents=True, exist_ok=True)
        for log in (*self._folder.glob("*.log"), *self._folder.glob("logs/*")):
            if log.is_file():
                shutil.copy(log, self.options.keep_logs / log.name)
