"""A cluster on the embedded API server, with the commands that attach and detach it."""

import argparse
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, Final, cast

from functions.cli.attach.attach_command import mount_attach
from functions.cli.attach.runtime import ConnectionOptions, InstallationRuntime
from shared.kube.api import MERGE_PATCH, KubeApi
from shared.kube.kubeconfig import connect_kubeconfig
from shared.model.codec import from_plain
from shared.model.errors import NotAttachedError
from shared.nodes.timers.heartbeats import save_forwarder_heartbeat
from shared.runtime.wiring import Wiring
from shared.settings import ClusterAttachment
from tests.attachments import attachment
from tests.fakes.clock import FakeClock
from tests.fakes.ledger import FakeLedger

IMAGE: Final = "123456789012.dkr.ecr.eu-west-1.amazonaws.com/dovetail/forwarder@sha256:abc"
DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
IN_DOVETAIL: Final = "/api/v1/namespaces/dovetail"
DEPLOYMENT: Final = "/apis/apps/v1/namespaces/dovetail/deployments/dovetail-forwarder"


class ControlPlane:
    """A double of Wiring: one attachment and a ledger in memory."""

    def __init__(self, *, attached: bool = True, image: str = "deployed/forwarder:1") -> None:
        self.ledger = FakeLedger()
        self.registry = self
        self._attached = attached
        self._image = image

    def one(self, name: str) -> ClusterAttachment:
        if not self._attached:
            raise NotAttachedError(f"cluster {name!r} is not attached")
        return from_plain(ClusterAttachment, attachment(name, forwarder_image=self._image))


class Clock(FakeClock):
    """A clock that lets things happen, one after the other, while a command waits."""

    def __init__(self) -> None:
        super().__init__()
        self.happens: list[Callable[[], None]] = []

    def sleep(self, span: timedelta) -> None:
        super().sleep(span)
        if self.happens:
            self.happens.pop(0)()


class There:
    """A cluster, its control plane, and the commands as people give them."""

    def __init__(self, kubeconfig: str) -> None:
        self.kubeconfig = kubeconfig
        self.api: KubeApi = connect_kubeconfig(kubeconfig)
        self.control_plane: ControlPlane | None = ControlPlane()
        self.clock = Clock()

    def runtime(self, reached: ConnectionOptions) -> InstallationRuntime:
        made = InstallationRuntime(reached, cast("Wiring | None", self.control_plane))
        made.clock = self.clock  # type: ignore[assignment]
        return made

    def run(self, command: str, *arguments: str, image: str = IMAGE) -> int:
        parser = argparse.ArgumentParser()
        mount_attach(parser.add_subparsers(), self.runtime, self.runtime)
        given = [command, "prod", "--kubeconfig", self.kubeconfig, "--any-address", *arguments]
        if command == "attach" and image:
            given += ["--image", image]
        parsed = parser.parse_args(given)
        return int(parsed.run(parsed))

    def names(self, path: str) -> list[str]:
        return sorted(raw["metadata"]["name"] for raw in self.api.get(path)["items"])

    def make(self, path: str, body: Mapping[str, Any]) -> None:
        reply = self.api.send("POST", path, body=body)
        assert reply.ok, reply

    def merge(self, path: str, body: Mapping[str, Any]) -> None:
        reply = self.api.send("PATCH", path, body=body, content_type=MERGE_PATCH)
        assert reply.ok, reply

    def start_pod(self, status: Mapping[str, Any]) -> None:
        labels = {"app.kubernetes.io/name": "dovetail", "app.kubernetes.io/component": "forwarder"}
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "dovetail-forwarder-a", "labels": labels},
            "spec": {"containers": [{"name": "forwarder", "image": IMAGE}]},
        }
        self.make(f"{IN_DOVETAIL}/pods", pod)
        self.merge(f"{IN_DOVETAIL}/pods/dovetail-forwarder-a/status", {"status": status})

    def roll_out(self) -> None:
        """Let the forwarder's pod run since now, as the controllers and the kubelet would."""
        generation = self.api.get(DEPLOYMENT)["metadata"]["generation"]
        counts = dict.fromkeys(("replicas", "updatedReplicas", "availableReplicas"), 1)
        status = {"observedGeneration": generation, **counts}
        self.merge(f"{DEPLOYMENT}/status", {"status": status})
        self.start_pod({"phase": "Running", "startTime": f"{self.clock.now():%Y-%m-%dT%H:%M:%SZ}"})

    def heartbeat(self) -> None:
        assert self.control_plane is not None
        save_forwarder_heartbeat(self.control_plane.ledger, "prod", self.clock.now())
