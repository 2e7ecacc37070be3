"""A world that `dovetail up` keeps running, found from another terminal."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from infra.local.aws.clients import Access, clients_of
from infra.local.aws.embedded import call_verb
from infra.local.demo.cluster_client import ClusterClient
from infra.local.demo.problem import Problem

_SERVER: Final = b"infra.local.kube"
_REMEDY: Final = (
    "paste the export lines of `dovetail up` into this terminal, or name its kubeconfig with "
    "--kubeconfig FILE"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningWorld:
    """What one may do to it."""

    folder: Path
    control: Callable[..., Any]
    client: Callable[[str], Any]
    cluster: ClusterClient
    api_server: int | None

    def api_server_process(self) -> int:
        if self.api_server is None:
            raise Problem("this API server was not started by `dovetail up`: it is not frozen")
        return self.api_server


def find_world(kubeconfig: str) -> RunningWorld:
    """Return the world that a kubeconfig was written for."""
    if not kubeconfig:
        raise Problem(f"no running world: KUBECONFIG is not set: {_REMEDY}")
    folder = Path(kubeconfig).parent
    try:
        aws, kube = (_ready(folder / f"{name}.ready") for name in ("aws", "kube"))
        access, token = Access.read(aws), (folder / "admin.token").read_text(encoding="ascii")
    except (OSError, ValueError, KeyError, TypeError):
        raise Problem(f"kubeconfig {kubeconfig}: is not one of `dovetail up`: {_REMEDY}") from None
    if not Path(f"/proc/{aws.get('pid')}").exists():
        raise Problem(f"kubeconfig {kubeconfig}: its world has ended: {_REMEDY}")
    return RunningWorld(
        folder=folder,
        control=partial(_control, access),
        client=clients_of(access),
        cluster=ClusterClient(kube["url"], token=token, ca_file=kube["ca_file"]),
        api_server=_api_server(kube),
    )


def _control(access: Access, verb: str, **arguments: Any) -> Any:
    return call_verb(access, verb, arguments)


def _ready(path: Path) -> dict[str, Any]:
    return dict(json.loads(path.read_text(encoding="utf-8")))


def _api_server(ready: Mapping[str, Any]) -> int | None:
    """Return the process id, if a process of that id is a local API server."""
    pid = ready.get("pid")
    try:
        return pid if _SERVER in Path(f"/proc/{pid}/cmdline").read_bytes() else None
    except OSError:
        return None
