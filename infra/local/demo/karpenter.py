"""Instances, Nodes and NodeClaims as Karpenter v1 leaves them when it is stopped.

Written after what Karpenter writes, and without any code of the product.
Source: https://github.com/aws/karpenter-provider-aws/blob/v1.14.1/pkg/apis/v1/labels.go (tags),
https://github.com/kubernetes-sigs/karpenter/blob/v1.14.1/pkg/controllers/nodeclaim/lifecycle/registration.go
and .../pkg/apis/v1/nodeclaim_status.go (2026-11).
"""

import base64
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from infra.local.aws.clients import instances_of
from infra.local.cluster_simulator.rules.matching import is_true
from infra.local.demo.cluster_client import ClusterClient, Object
from infra.local.demo.problem import Problem
from infra.local.patience import awaited

NODE_CLAIMS: Final = "apis/karpenter.sh/v1/nodeclaims"
# Instances of real kubelets boot for 20 seconds, and share the processors.
_PATIENCE_SECONDS: Final = 180.0
_TEMPLATE: Final = "karpenter"
_FINALIZER: Final = "karpenter.sh/termination"
_IMAGES: Final = "/aws/service/eks/optimized-ami"
_AL2023: Final = "amazon-linux-2023/x86_64/standard/recommended/image_id"


class Karpenter:
    """Launches instances as Karpenter does, and runs `dovetail migrate` on them."""

    def __init__(
        self,
        cluster: ClusterClient,
        client: Callable[[str], Any],
        name: str,
        environment: Mapping[str, str],
    ) -> None:
        self._cluster = cluster
        self._client = client
        self._name = name
        self._environment = environment
        self.instance_ids: tuple[str, ...] = ()

    def launch(self, wanted: Mapping[str, Any]) -> None:
        """Launch instances for a NodePool and let their Nodes be registered.

        Args:
            wanted: `count`, `instance_type`, `node_pool` and `node_class`.
        """
        pool, node_class = str(wanted["node_pool"]), str(wanted["node_class"])
        owner = self._cluster.call("GET", f"apis/karpenter.sh/v1/nodepools/{pool}")
        self._make_template(pool, node_class)
        for _ in range(int(wanted["count"])):
            instance = self._launch(str(wanted["instance_type"]), pool, node_class)
            self.instance_ids = (*self.instance_ids, instance["InstanceId"])
            self._register(instance, owner, node_class)

    def migrate(self, wanted: Mapping[str, Any]) -> None:
        """Run the command as a user does.

        Args:
            wanted: `arguments`, and the `exit_code` that is expected.
        """
        words = ["migrate", "--cluster", self._name, *map(str, wanted["arguments"])]
        ended = subprocess.run(
            [sys.executable, "-m", "functions.cli", *words],
            env={**os.environ, **self._environment},
            capture_output=True,
            text=True,
            check=False,
        )
        if ended.returncode != int(wanted["exit_code"]):
            told = (ended.stderr or ended.stdout).strip().splitlines()
            last = told[-1] if told else "nothing"
            raise Problem(f"dovetail {' '.join(words)} exits with {ended.returncode}: {last}")

    def hands(self) -> dict[str, str]:
        """Return whose each instance is, as the three APIs show it now."""
        instances = instances_of(self._client("ec2"))
        nodes = self._cluster.items("api/v1/nodes")
        return hands_of(nodes, self._cluster.items(NODE_CLAIMS), instances)

    def renew_lease(self, holder: str) -> None:
        """Let a leader of Karpenter hold its lease now; an empty holder releases it."""
        now = datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
        path = "apis/coordination.k8s.io/v1/namespaces/default/leases/karpenter-leader-election"
        document = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": "karpenter-leader-election", "namespace": "default"},
            "spec": {"holderIdentity": holder, "leaseDurationSeconds": 15, "renewTime": now},
        }
        self._cluster.call(
            "PATCH",
            path,
            document,
            content_type="application/apply-patch+yaml",
            query={"fieldManager": "karpenter", "force": "true"},
        )

    def write_brakes(self, brakes: Mapping[str, Any]) -> None:
        """Write the cluster's brakes as a user does, for Dovetail."""
        name, value = f"/dovetail/clusters/{self._name}/brakes", json.dumps(brakes)
        self._client("ssm").put_parameter(Name=name, Type="String", Overwrite=True, Value=value)

    def _make_template(self, pool: str, node_class: str) -> None:
        ec2, endpoint = self._client("ec2"), self._endpoint()
        parameter = f"{_IMAGES}/{endpoint['version']}/{_AL2023}"
        image = self._client("ssm").get_parameter(Name=parameter)["Parameter"]["Value"]
        discovered = [{"Name": "tag:karpenter.sh/discovery", "Values": [self._name]}]
        groups = ec2.describe_security_groups(Filters=discovered)["SecurityGroups"]
        labels = {
            "karpenter.sh/nodepool": pool,
            "karpenter.k8s.aws/ec2nodeclass": node_class,
            "karpenter.sh/capacity-type": "on-demand",
        }
        flag = ",".join(f"{key}={value}" for key, value in sorted(labels.items()))
        taint = {"key": "karpenter.sh/unregistered", "effect": "NoExecute"}
        config = {
            "apiVersion": "node.eks.aws/v1alpha1",
            "kind": "NodeConfig",
            "spec": {
                "cluster": {
                    "name": self._name,
                    "apiServerEndpoint": endpoint["endpoint"],
                    "certificateAuthority": endpoint["certificateAuthority"]["data"],
                    "cidr": "172.20.0.0/16",
                },
                "kubelet": {
                    "config": {"registerWithTaints": [taint]},
                    "flags": [f"--node-labels={flag}"],
                },
            },
        }
        text = (
            'MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary="//"\n\n--//\n'
            f"Content-Type: application/node.eks.aws\n\n{json.dumps(config)}\n--//--\n"
        )
        ec2.create_launch_template(
            LaunchTemplateName=_TEMPLATE,
            LaunchTemplateData={
                "ImageId": image,
                "UserData": base64.b64encode(text.encode()).decode(),
                "SecurityGroupIds": [group["GroupId"] for group in groups],
                "IamInstanceProfile": {"Name": self._profile(node_class)},
            },
        )

    def _profile(self, node_class: str) -> str:
        """Return an instance profile of the role that an EC2NodeClass names."""
        found = self._cluster.call("GET", f"apis/karpenter.k8s.aws/v1/ec2nodeclasses/{node_class}")
        role = found["spec"]["role"]
        profiles = self._client("iam").list_instance_profiles_for_role(RoleName=role)
        return str(profiles["InstanceProfiles"][0]["InstanceProfileName"])

    def _launch(self, instance_type: str, pool: str, node_class: str) -> Any:
        ec2 = self._client("ec2")
        discovered = [{"Name": "tag:karpenter.sh/discovery", "Values": [self._name]}]
        subnet = ec2.describe_subnets(Filters=discovered)["Subnets"][0]["SubnetId"]
        tags = {
            f"kubernetes.io/cluster/{self._name}": "owned",
            "eks:eks-cluster-name": self._name,
            "karpenter.sh/nodepool": pool,
            "karpenter.k8s.aws/ec2nodeclass": node_class,
        }
        answer = ec2.create_fleet(
            Type="instant",
            LaunchTemplateConfigs=[
                {
                    "LaunchTemplateSpecification": {
                        "LaunchTemplateName": _TEMPLATE,
                        "Version": "$Latest",
                    },
                    "Overrides": [{"InstanceType": instance_type, "SubnetId": subnet}],
                }
            ],
            TargetCapacitySpecification={
                "TotalTargetCapacity": 1,
                "DefaultTargetCapacityType": "on-demand",
            },
            TagSpecifications=[
                {
                    "ResourceType": "instance",
                    "Tags": [{"Key": key, "Value": value} for key, value in sorted(tags.items())],
                }
            ],
        )
        if not answer["Instances"]:
            raise Problem(f"no instance was launched as Karpenter does: {answer['Errors']}")
        (instance_id,) = answer["Instances"][0]["InstanceIds"]
        return self._described(instance_id)

    def _register(self, instance: Any, owner: Object, node_class: str) -> None:
        """Let a Node join, and write what Karpenter does once it has."""
        pool, instance_id = owner["metadata"]["name"], instance["InstanceId"]
        provider_id = f"aws:///{instance['Placement']['AvailabilityZone']}/{instance_id}"
        node = self._joined(provider_id)
        name = f"{pool}-{instance_id[-5:]}"
        spec = {
            "nodeClassRef": {
                "group": "karpenter.k8s.aws",
                "kind": "EC2NodeClass",
                "name": node_class,
            },
            "requirements": owner["spec"]["template"]["spec"]["requirements"],
            "expireAfter": owner["spec"]["template"]["spec"].get("expireAfter", "720h"),
        }
        labels = {k: v for k, v in node["metadata"]["labels"].items() if "karpenter" in k}
        claim = self._cluster.call(
            "POST",
            NODE_CLAIMS,
            {
                "apiVersion": "karpenter.sh/v1",
                "kind": "NodeClaim",
                "metadata": {
                    "name": name,
                    "labels": labels,
                    "annotations": {"karpenter.sh/nodepool-hash-version": "v3"},
                    "finalizers": [_FINALIZER],
                    "ownerReferences": [_reference(owner, "NodePool")],
                },
                "spec": spec,
            },
        )
        conditions = [
            {"type": kind, "status": "True", "reason": kind, "message": ""}
            for kind in ("Launched", "Registered", "Initialized", "Ready")
        ]
        status = {
            "nodeName": node["metadata"]["name"],
            "providerID": provider_id,
            "imageID": instance["ImageId"],
            "conditions": conditions,
        }
        self._cluster.merge(f"{NODE_CLAIMS}/{name}/status", {"status": status})
        taints = [t for t in node["spec"].get("taints", []) if "unregistered" not in t["key"]]
        registered = {"karpenter.sh/registered": "true", "karpenter.sh/initialized": "true"}
        self._cluster.merge(
            f"api/v1/nodes/{node['metadata']['name']}",
            {
                "metadata": {
                    "labels": registered,
                    "finalizers": [_FINALIZER],
                    "ownerReferences": [_reference(claim, "NodeClaim")],
                },
                "spec": {"taints": taints},
            },
        )
        tag = {"Key": "karpenter.sh/nodeclaim", "Value": name}
        self._client("ec2").create_tags(Resources=[instance_id], Tags=[tag])

    def _joined(self, provider_id: str) -> Object:
        def ready() -> Object | None:
            for node in self._cluster.items("api/v1/nodes"):
                if node["spec"].get("providerID") == provider_id and is_true(node, "Ready"):
                    return node
            return None

        node = awaited(ready, _PATIENCE_SECONDS)
        if node is None:
            raise Problem(f"the instance {provider_id} that Karpenter launched did not join")
        return node

    def _described(self, instance_id: str) -> Any:
        return instances_of(self._client("ec2"), InstanceIds=[instance_id])[0]

    def _endpoint(self) -> Any:
        return self._client("eks").describe_cluster(name=self._name)["cluster"]


def _reference(owner: Object, kind: str) -> Object:
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": kind,
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "blockOwnerDeletion": True,
    }


DOVETAIL: Final = "dovetail"
KARPENTER: Final = "karpenter"
_THEIRS: Final = ("karpenter.sh/nodepool", "karpenter.k8s.aws/ec2nodeclass")


def hands_of(
    nodes: Iterable[Object], claims: Iterable[Object], instances: Iterable[Object]
) -> dict[str, str]:
    """Return for each instance id `dovetail`, `karpenter`, or what is wrong for either."""
    tags = {
        instance["InstanceId"]: {tag["Key"]: tag["Value"] for tag in instance.get("Tags") or []}
        for instance in instances
    }
    claimed: dict[str, Object] = {}
    for claim in claims:
        claimed[(claim.get("status") or {}).get("providerID", "")] = claim
    found = {}
    for node in nodes:
        provider_id = (node.get("spec") or {}).get("providerID", "")
        instance_id = provider_id.rpartition("/")[2]
        if instance_id in tags:
            found[instance_id] = _hand(node, claimed.get(provider_id), tags[instance_id])
    return found


def _hand(node: Object, claim: Object | None, tags: Mapping[str, str]) -> str:
    metadata = node["metadata"]
    ours = [key for key in tags if key.startswith("dovetail.dev/")]
    theirs = [key for key in _THEIRS if key in tags]
    if _FINALIZER not in (metadata.get("finalizers") or []):
        return "the Node has no finalizer"
    owners = {entry["kind"]: entry["uid"] for entry in metadata.get("ownerReferences") or []}
    if "dovetail.dev/slot" in (metadata.get("annotations") or {}):
        if claim is not None or theirs or not ours or set(owners) != {"NodePool"}:
            return "the Node is Dovetail's, and not all else"
        return DOVETAIL
    if claim is None or owners != {"NodeClaim": claim["metadata"]["uid"]}:
        return "the Node is not owned by the NodeClaim of its instance"
    held = _FINALIZER in (claim["metadata"].get("finalizers") or [])
    if ours or len(theirs) != len(_THEIRS) or not held:
        return "the NodeClaim is Karpenter's, and not all else"
    return KARPENTER
