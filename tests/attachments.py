"""What a cluster's stack writes of its attachment."""

from typing import Any, Final

ROLES: Final = "arn:aws:iam::123456789012:role"


def attachment(name: str, /, **changes: Any) -> dict[str, Any]:
    """Return the attachment of a cluster as plain JSON."""
    return {
        "name": name,
        "launch_role": f"{ROLES}/{name}-launch",
        "terminate_role": f"{ROLES}/{name}-terminate",
        "inside_role": f"{ROLES}/{name}-inside",
        "instance_profile": f"{name}-nodes",
        "node_profiles": {f"{name}-nodes": f"{name}-nodes"},
        "launch_resources": [],
        "own_images": "tagged",
        "metadata_tokens": "required",
        "metadata_hop_limit": 2,
        "preference_policy": "Weigh",
        "drift": False,
        "brakes": {},
        "forwarder_image": "registry.example/dovetail/forwarder:1",
        **changes,
    }
