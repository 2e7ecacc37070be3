"""Amazon Linux 2023: nodeadm reads NodeConfig documents; a later one wins.

Source: https://docs.aws.amazon.com/eks/latest/userguide/retrieve-ami-id.html,
https://awslabs.github.io/amazon-eks-ami/nodeadm/doc/api/ and .../doc/examples/ (2026-08).
"""

import json
from typing import Any, Final

from shared.ami_families import mime
from shared.ami_families.family import Family, ImageRequest, Joining
from shared.ami_families.kubelet_flags import kubelet_config, labels_flag
from shared.model.provisioner import BlockDevice

_VARIANTS: Final = {"nvidia.com/gpu": "nvidia", "aws.amazon.com/neuron": "neuron"}


def _parameter(request: ImageRequest) -> str:
    variant = next(
        (v for name, v in sorted(_VARIANTS.items()) if request.capacity[name]), "standard"
    )
    named = f"amazon-eks-node-al2023-{request.machine}-{variant}-{request.version}"
    release = f"{named}-{request.release}" if request.release else "recommended"
    return (
        f"/aws/service/eks/optimized-ami/{request.version}/amazon-linux-2023/"
        f"{request.machine}/{variant}/{release}/image_id"
    )


def _check(custom: str) -> tuple[mime.Part, ...]:
    return mime.parts_of(custom, node_config=True)


def _write(joining: Joining, custom: str) -> str:
    taints = [
        {"key": taint.key, "value": taint.value, "effect": taint.effect.value}
        for taint in joining.taints
    ]
    document: dict[str, Any] = {
        "apiVersion": "node.eks.aws/v1alpha1",
        "kind": "NodeConfig",
        "spec": {
            "cluster": {
                "name": joining.cluster,
                "apiServerEndpoint": joining.endpoint,
                "certificateAuthority": joining.certificate_authority,
                "cidr": joining.service_cidr,
            },
            "kubelet": {
                "config": {"registerWithTaints": taints, **kubelet_config(joining.kubelet)},
                "flags": [labels_flag(joining.labels)],
            },
        },
    }
    if joining.instance_store:
        document["spec"]["instance"] = {"localStorage": {"strategy": "RAID0"}}
    # YAML is a superset of JSON. Ours comes last: it wins.
    ours = json.dumps(document, indent=2, sort_keys=True)
    return mime.document(
        (*_check(custom), mime.Part(content_type=mime.NODE_CONFIG, text=ours)),
    )


AL2023: Final = Family(
    name="AL2023",
    parameter=_parameter,
    write=_write,
    check=_check,
    disks=(BlockDevice(device_name="/dev/xvda"),),
    # Built for ARMv8.2, which the first Graviton has not.
    # Source: https://docs.aws.amazon.com/linux/al2023/ug/system-requirements.html (2026-11).
    lacks=frozenset({"a1"}),
)
