"""What simulated pods answer where real ones would run a program: logs, exec, port-forward."""

from collections.abc import Mapping
from typing import Final

from infra.local.kube.errors import ApiError, JsonObject, bad_request

_REFUSED: Final = {
    "exec": "no command can run in it",
    "attach": "there is no process to attach to",
    "portforward": "no port of it can be reached",
    "proxy": "no port of it can be reached",
    "ephemeralcontainers": "no container can be added to it",
    "resize": "its resources cannot be changed in place",
}


def require_possible(plural: str, name: str, subresource: str) -> None:
    """Refuse what needs a running program, with a sentence that says so."""
    why = _REFUSED.get(subresource.partition("/")[0]) if plural == "pods" else None
    if why is not None:
        message = f"pod {name} is simulated: it runs no program, so {why}"
        raise ApiError(501, "NotImplemented", message)


def log_text(pod: JsonObject, query: Mapping[str, str]) -> str:
    """Return the log of one container: when it started, and that it is simulated."""
    name, spec = pod["metadata"]["name"], pod["spec"]
    known = [
        container["name"]
        for part in ("containers", "initContainers")
        for container in spec.get(part) or ()
    ]
    wanted = query.get("container") or known[0]
    if wanted not in known:
        raise bad_request(f"container {wanted} is not valid for pod {name}")
    if not spec.get("nodeName"):
        raise bad_request(f"pod {name} does not have a host assigned")
    if query.get("previous") in {"true", "1"}:
        raise bad_request(f'previous terminated container "{wanted}" in pod "{name}" not found')
    started = _started(pod.get("status") or {}, wanted)
    if not started:
        raise bad_request(
            f'container "{wanted}" in pod "{name}" is waiting to start: ContainerCreating'
        )
    return (
        f"{started} {wanted} started on {spec['nodeName']}\n"
        f"{started} this pod is simulated: it runs no program and writes no more than this\n"
    )


def _started(status: JsonObject, container: str) -> str:
    for part in ("containerStatuses", "initContainerStatuses"):
        for entry in status.get(part) or ():
            if entry["name"] == container:
                state = entry.get("state") or {}
                ran = state.get("running") or state.get("terminated") or {}
                return str(ran.get("startedAt") or "")
    return ""
