"""Two worlds on a real control plane that writes down who asked what: Dovetail's, and Karpenter's.

Karpenter's is the same embedded AWS, the same front and the same cloud controllers, with nothing of
Dovetail in it. Its controller has the keys of a role, as on EKS, so that its calls are counted.
"""

import base64
import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from infra.local.aws.control import ACCOUNT_ID
from infra.local.demo.world import CLUSTER, World, WorldOptions
from tests.real.build import CACHE, build, module_texts
from tests.real.cluster import Cluster, free_port

_SOURCES: Final = Path(__file__).parent / "controller"
_PACKAGE: Final = "github.com/aws/karpenter-provider-aws/cmd/controller"
_RELEASE: Final = "1.14.1"
_DEFINING: Final = ("github.com/aws/karpenter-provider-aws", "sigs.k8s.io/karpenter")
KARPENTER_ROLE: Final = f"KarpenterController-{CLUSTER}"
_SESSION_SECONDS: Final = 3600
_AUDIT: Final = """\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
  - level: None
    userGroups: ["system:nodes"]
  - level: None
    users: ["system:kube-scheduler", "system:apiserver", "player"]
  - level: None
    nonResourceURLs: ["/*"]
  - level: Metadata
"""


def build_controller() -> Path:
    """Return Karpenter's controller for AWS, built unchanged if its module file changed.

    Raises:
        Problem: There is no Go, or the build fails.
    """
    flags = f"-ldflags=-s -w -X sigs.k8s.io/karpenter/pkg/operator.Version={_RELEASE}"
    return build(_SOURCES, CACHE / f"karpenter-{_RELEASE}", [flags, _PACKAGE])


class AuditedCluster(Cluster):
    """A control plane whose API server writes down each request but those of nodes.

    Attributes:
        audit: The file it writes: a JSON object a line.
    """

    @property
    def audit(self) -> Path:
        """Return where the requests are written down."""
        return self.folder / "audit.log"

    def begin(self, part: str, arguments: list[str]) -> None:
        if part == "apiserver":
            policy = self.folder / "audit.yaml"
            policy.write_text(_AUDIT, encoding="utf-8")
            arguments = [
                *arguments,
                f"--audit-policy-file={policy}",
                f"--audit-log-path={self.audit}",
                "--audit-log-maxsize=4000",
            ]
        super().begin(part, arguments)


class KarpenterWorld(World):
    """A world without Dovetail, with Karpenter's controller once it is started."""

    def __init__(
        self,
        options: WorldOptions,
        say: Callable[[str], None],
        program: Path,
        cluster: AuditedCluster,
    ) -> None:
        super().__init__(options, say)
        self._program = program
        self._real = cluster

    def _begin(self) -> None:
        self._say("starting the embedded AWS API")
        self._start_aws()
        self._start_kube()
        self._seed()
        node = {
            "role_arn": f"arn:aws:iam::{ACCOUNT_ID}:role/DovetailNode-{CLUSTER}",
            "username": "system:node:{{EC2PrivateDNSName}}",
            "groups": ["system:nodes"],
        }
        self._write_auth(self._folder / "auth.json", [node])
        for document in _definitions():
            self.cluster.apply(document)
        self._launch_simulation()
        self.children.ready("sim")

    def start_karpenter(self) -> None:
        """Start the controller with the settings of its chart, beside the API server."""
        authority = base64.b64encode(Path(self._kube["ca_file"]).read_bytes()).decode()
        self.children.spawn(
            "karpenter",
            [str(self._program)],
            environment={
                **self.aws.environment,
                **self._keys(),
                "KUBECONFIG": str(self._real.kubeconfig("karpenter")),
                "CLUSTER_NAME": CLUSTER,
                # Nodes join through the front, as Dovetail's do.
                "CLUSTER_ENDPOINT": self._kube["url"],
                "CLUSTER_CA_BUNDLE": authority,
                "EKS_CONTROL_PLANE": "true",
                "DISABLE_LEADER_ELECTION": "true",
                "SYSTEM_NAMESPACE": "kube-system",
                "METRICS_PORT": str(free_port()),
                "HEALTH_PROBE_PORT": str(free_port()),
            },
        )

    def _keys(self) -> Mapping[str, str]:
        """Return the keys of a session of the controller's role."""
        trust = {"Effect": "Allow", "Principal": {"AWS": ACCOUNT_ID}, "Action": "sts:AssumeRole"}
        policy = json.dumps({"Version": "2012-10-17", "Statement": [trust]})
        role = self.client("iam").create_role(
            RoleName=KARPENTER_ROLE, AssumeRolePolicyDocument=policy
        )["Role"]["Arn"]
        made = self.client("sts").assume_role(
            RoleArn=role, RoleSessionName="karpenter", DurationSeconds=_SESSION_SECONDS
        )["Credentials"]
        return {
            "AWS_ACCESS_KEY_ID": made["AccessKeyId"],
            "AWS_SECRET_ACCESS_KEY": made["SecretAccessKey"],
            "AWS_SESSION_TOKEN": made["SessionToken"],
        }


def _definitions() -> Iterable[dict[str, Any]]:
    """Return the definitions that Karpenter's two modules carry."""
    texts: dict[str, str] = {}
    for module in _DEFINING:
        texts |= module_texts(module, f"v{_RELEASE}", "pkg/apis/crds")[1]
    return [yaml.safe_load(text) for text in texts.values()]
