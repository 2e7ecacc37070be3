"""From the user data of an instance to the settings of its kubelet, as the image's own program.

Source: nodeadm/internal/{configprovider,api,kubelet} of https://github.com/awslabs/amazon-eks-ami
(v20260724) for Amazon Linux 2023, templates/al2/runtime/bootstrap.sh there (2025-11) for Amazon
Linux 2 and Ubuntu, https://bottlerocket.dev/en/os/latest/api/settings/kubernetes/ (2026-08) for
Bottlerocket. nodeadm hands the flags on in a variable, which systemd splits at spaces and unquotes:
https://www.freedesktop.org/software/systemd/man/latest/systemd.service.html (2026-12).
"""

import base64
import binascii
import contextlib
import email
import gzip
import ipaddress
import shlex
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from email.message import Message
from email.policy import compat32
from typing import Any, Final

import yaml

_NODE_CONFIG: Final = "application/node.eks.aws"
_SCRIPT: Final = "text/x-shellscript"
_SCRIPT_NAME: Final = "/etc/eks/bootstrap.sh"
_EVICTION: Final = {
    "memory.available": "100Mi",
    "nodefs.available": "10%",
    "nodefs.inodesFree": "5%",
}
# The reserved share of each range of cores, in hundredths of a percent, up to so many millicores.
_CPU_RANGES: Final = ((1000, 600), (2000, 100), (4000, 50), (1 << 40, 25))
_SPEC_FIELDS: Final = {
    "cluster": {"name", "apiServerEndpoint", "certificateAuthority", "cidr", "enableOutpost", "id"},
    "containerd": {"config", "baseRuntimeSpec"},
    "featureGates": {"InstanceIdNodeName", "FastImagePull"},
    "instance": {"localStorage", "environment", "network"},
    "kubelet": {"config", "flags", "maxPodsExpression"},
}
_BOTTLEROCKET: Final = {
    "allowed-unsafe-sysctls": "allowedUnsafeSysctls",
    "cluster-domain": "clusterDomain",
    "container-log-max-files": "containerLogMaxFiles",
    "container-log-max-size": "containerLogMaxSize",
    "event-burst": "eventBurst",
    "event-qps": "eventRecordQPS",
    "kube-api-burst": "kubeAPIBurst",
    "kube-api-qps": "kubeAPIQPS",
    "pod-pids-limit": "podPidsLimit",
    "registry-burst": "registryBurst",
    "registry-qps": "registryPullQPS",
    "max-pods": "maxPods",
    "kube-reserved": "kubeReserved",
    "system-reserved": "systemReserved",
    "eviction-hard": "evictionHard",
    "eviction-soft": "evictionSoft",
    "eviction-soft-grace-period": "evictionSoftGracePeriod",
    "eviction-max-pod-grace-period": "evictionMaxPodGracePeriod",
    "cpu-cfs-quota-enforced": "cpuCFSQuota",
    "image-gc-high-threshold-percent": "imageGCHighThresholdPercent",
    "image-gc-low-threshold-percent": "imageGCLowThresholdPercent",
}


class UnusableError(ValueError):
    """A machine with this user data would not start its kubelet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """What a machine knows about itself.

    Attributes:
        pods: Most pods, by the network interfaces of the instance type.
    """

    id: str
    zone: str
    dns_name: str
    cores: int
    pods: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Boot:
    """How a kubelet is started.

    Attributes:
        authority: Certificate authority of the endpoint, base64 of PEM.
        config: A KubeletConfiguration.
        flags: Of the kubelet; the last of a name wins.
    """

    cluster: str
    endpoint: str
    authority: str
    config: Mapping[str, Any] = field(hash=False)
    flags: tuple[str, ...]

    @property
    def name(self) -> str:
        """Return the name of the Node."""
        key = "--hostname-override="
        return next(flag for flag in reversed(self.flags) if flag.startswith(key))[len(key) :]


def boot_of(data: bytes, instance: Instance) -> Boot:
    """Return how the kubelet of an instance is started.

    Args:
        data: User data as EC2 keeps it: base64 or not, gzip or not.

    Raises:
        UnusableError: The image's program would refuse it.
    """
    text = _plain(data)
    try:
        # MIME headers are no TOML.
        with contextlib.suppress(tomllib.TOMLDecodeError):
            return _bottlerocket(tomllib.loads(text.decode()), instance)
        parts = _parts(text)
        if documents := [value for kind, value in parts if kind == _NODE_CONFIG]:
            return _nodeadm([yaml.safe_load(document) for document in documents], instance)
        scripts = [value for kind, value in parts if kind == _SCRIPT and _SCRIPT_NAME in value]
        if scripts:
            return _bootstrap(scripts[-1], instance)
    except (KeyError, yaml.YAMLError) as error:
        raise UnusableError(f"{type(error).__name__}: {error}") from error
    raise UnusableError("no NodeConfig, no call of bootstrap.sh, no settings")


def _plain(data: bytes) -> bytes:
    with contextlib.suppress(binascii.Error):
        data = base64.b64decode(b"".join(data.split()), validate=True) or data
    return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data


def _parts(text: bytes) -> list[tuple[str, str]]:
    """Return type and text of each part of a MIME document."""
    message = email.message_from_bytes(text, policy=compat32)
    if not message.is_multipart() or message.defects:
        raise UnusableError("user data is not a MIME multi-part document")
    return [
        (node.get_content_type(), _text(node)) for node in message.walk() if node is not message
    ]


def _text(part: Message) -> str:
    payload = part.get_payload(decode=True)
    return payload.decode() if isinstance(payload, bytes) else ""


# -- Amazon Linux 2023 -------------------------------------------------------------------------


def _nodeadm(documents: Sequence[Any], instance: Instance) -> Boot:
    spec: dict[str, Any] = {}
    flags: list[str] = []
    for document in documents:
        if document["apiVersion"] != "node.eks.aws/v1alpha1" or document["kind"] != "NodeConfig":
            raise UnusableError(f"{document['kind']} of {document['apiVersion']}: unknown")
        _refuse_unknown(document["spec"])
        # A later document wins, but for the flags: they add up.
        said = (document["spec"].get("kubelet") or {}).get("flags") or []
        flags += (word for flag in said for word in shlex.split(flag))
        spec = merged(spec, document["spec"])
    cluster = spec["cluster"]
    missing = [key for key in ("name", "apiServerEndpoint", "cidr") if not cluster.get(key)]
    if missing or not cluster.get("certificateAuthority"):
        raise UnusableError(f"spec.cluster lacks {', '.join(missing) or 'certificateAuthority'}")
    by_id = (spec.get("featureGates") or {}).get("InstanceIdNodeName")
    config = _defaults(instance, pods=instance.pods, network=cluster["cidr"])
    return Boot(
        cluster=cluster["name"],
        endpoint=cluster["apiServerEndpoint"],
        authority=cluster["certificateAuthority"],
        config=merged(config, (spec.get("kubelet") or {}).get("config") or {}),
        flags=(*_flags(instance.id if by_id else instance.dns_name), *flags),
    )


def _refuse_unknown(spec: Mapping[str, Any]) -> None:
    for group, fields in spec.items():
        unknown = set(fields) - _SPEC_FIELDS.get(group, set())
        if group not in _SPEC_FIELDS or (unknown and group != "featureGates"):
            raise UnusableError(f"spec.{group}: {sorted(unknown)}: unknown field")


# -- Amazon Linux 2 and Ubuntu -----------------------------------------------------------------


def _bootstrap(script: str, instance: Instance) -> Boot:
    line = next(value for value in script.splitlines() if value.startswith(_SCRIPT_NAME))
    words = iter(shlex.split(line)[1:])
    said: dict[str, str] = {}
    cluster = ""
    for word in words:
        if word.startswith("--"):
            said[word] = next(words)
        else:
            cluster = word
    network = said.pop("--service-ipv6-cidr", "172.20.0.0/16")
    config = _defaults(instance, pods=instance.pods, network=network)
    if dns := said.pop("--dns-cluster-ip", ""):
        config["clusterDNS"] = [dns]
    if said.pop("--use-max-pods", "true") == "false":
        del config["maxPods"]
    boot = Boot(
        cluster=cluster,
        endpoint=said.pop("--apiserver-endpoint"),
        authority=said.pop("--b64-cluster-ca"),
        config=config,
        flags=(
            *_flags(instance.dns_name),
            *shlex.split(said.pop("--kubelet-extra-args", "")),
        ),
    )
    said.pop("--ip-family", None)
    if said or not cluster:
        raise UnusableError(f"bootstrap.sh does not know {sorted(said)}")
    return boot


# -- Bottlerocket ------------------------------------------------------------------------------


def _bottlerocket(document: Mapping[str, Any], instance: Instance) -> Boot:
    settings = dict(document["settings"]["kubernetes"])
    pods = int(settings.get("max-pods", instance.pods))
    config = _defaults(instance, pods=pods, network="172.20.0.0/16")
    labels = settings.pop("node-labels", {})
    taints = [
        {"key": key, "value": entry.rpartition(":")[0], "effect": entry.rpartition(":")[2]}
        for key, values in settings.pop("node-taints", {}).items()
        for entry in values
    ]
    if dns := settings.pop("cluster-dns-ip", None):
        config["clusterDNS"] = [dns] if isinstance(dns, str) else list(dns)
    cluster, endpoint, authority = (
        settings.pop(key) for key in ("cluster-name", "api-server", "cluster-certificate")
    )
    unknown = sorted(set(settings) - set(_BOTTLEROCKET))
    if unknown:
        raise UnusableError(f"settings.kubernetes.{unknown[0]} is not modelled")
    for key, value in settings.items():
        # The agent takes percentages as texts; of maps it keeps its own entries.
        name = _BOTTLEROCKET[key]
        config = merged(config, {name: int(value) if key.endswith("-percent") else value})
    text = ",".join(f"{key}={value}" for key, value in labels.items())
    return Boot(
        cluster=cluster,
        endpoint=endpoint,
        authority=authority,
        config={**config, "registerWithTaints": taints},
        flags=(*_flags(instance.dns_name), *([f"--node-labels={text}"] if text else [])),
    )


# -- all ---------------------------------------------------------------------------------------


def _flags(name: str) -> tuple[str, ...]:
    return ("--cloud-provider=external", f"--hostname-override={name}")


def _defaults(instance: Instance, *, pods: int, network: str) -> dict[str, Any]:
    """Return what each image sets by itself.

    Args:
        pods: From which the reserved memory is computed.
        network: Addresses of the cluster's services.
    """
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "clusterDNS": [str(ipaddress.ip_network(network)[10])],
        "clusterDomain": "cluster.local",
        "evictionHard": dict(_EVICTION),
        "kubeReserved": {
            "cpu": f"{reserved_millicores(instance.cores)}m",
            "ephemeral-storage": "1Gi",
            "memory": f"{11 * pods + 255}Mi",
        },
        "maxPods": instance.pods,
        "providerID": f"aws:///{instance.zone}/{instance.id}",
        "serializeImagePulls": False,
    }


def reserved_millicores(cores: int) -> int:
    """Return the CPU that the images reserve for the kubelet, each range rounded down."""
    total, start, reserved = cores * 1000, 0, 0
    for end, share in _CPU_RANGES:
        if total > start:
            reserved += (min(total, end) - start) * share // 10000
        start = end
    return reserved


def merged(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """Return both; objects are merged key by key, anything else of the second replaces."""
    result = dict(old)
    for key, value in new.items():
        known = result.get(key)
        both = isinstance(value, Mapping) and isinstance(known, Mapping)
        result[key] = merged(known, value) if both and known is not None else value
    return result
