"""A Kubernetes cluster without nodes on 127.0.0.1: real API server, scheduler, controllers."""

import json
import secrets
import shutil
import socket
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import urllib3
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from infra.local.demo.children import Children
from infra.local.demo.cluster_client import ClusterClient, Refused
from infra.local.demo.problem import Problem, last_words
from infra.local.kube.kubeconfig import write_kubeconfig

SERVICES: Final = "172.20.0.0/16"
# Flags of the controllers that end in `kubeconfig` begin so.
KUBECONFIGS: Final = ("", "authentication-", "authorization-")
_START_SECONDS: Final = 120.0
_ADMIN: Final = "admin"
# User and groups of those who hold a token.
_USERS: Final = {
    _ADMIN: ("admin", "system:masters"),
    "controller-manager": ("system:kube-controller-manager", ""),
    "scheduler": ("system:kube-scheduler", ""),
    "cloud": ("cloud-controller-manager", "system:masters"),
    # What a run is played and observed with, and what is played beside it.
    "player": ("player", "system:masters"),
    "karpenter": ("karpenter", "system:masters"),
    "reference": ("system:node:reference", "system:nodes"),
}


class Cluster:
    """The control plane; a context manager that ends every process and removes every file.

    Attributes:
        folder: Logs, kubeconfigs and data.
        url: Of the API server.
    """

    def __init__(self, program: Path) -> None:
        self.program = program
        # Sockets lie below it, and the path of a socket has 107 characters at most.
        self.folder = Path(tempfile.mkdtemp(prefix="real-"))
        self._children = Children(self.folder)
        self._tokens = {name: secrets.token_hex(16) for name in _USERS}
        port = free_port()
        self.url = f"https://127.0.0.1:{port}"
        self._port = port

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
    def authority(self) -> Path:
        """Return the file with the certificate authority of the API server."""
        return self.folder / "pki" / "apiserver.crt"

    @property
    def client(self) -> ClusterClient:
        """Return a client of the administrator."""
        token = self._tokens[_ADMIN]
        return ClusterClient(self.url, token=token, ca_file=str(self.authority))

    def kubeconfig(self, name: str = _ADMIN) -> Path:
        """Return the kubeconfig of a user."""
        path = self.folder / f"{name}.kubeconfig"
        token = {"token": self._tokens[name]}
        authority = {"certificate-authority": str(self.authority)}
        write_kubeconfig(path, self.url, authority, token)
        return path

    def token(self, name: str) -> str:
        """Return the bearer token of a user."""
        return self._tokens[name]

    def keep_logs(self, folder: Path) -> None:
        """Copy the logs to a folder."""
        folder.mkdir(parents=True, exist_ok=True)
        for log in self.folder.glob("*.log"):
            shutil.copy(log, folder / log.name)

    def begin(self, part: str, arguments: list[str]) -> None:
        """Start a part of the program."""
        self.spawn(part, [str(self.program), part, *arguments])

    def spawn(
        self, name: str, command: list[str], environment: Mapping[str, str] | None = None
    ) -> None:
        """Start another program beside them."""
        self._children.spawn(name, command, environment=environment)

    def alive(self, name: str) -> bool:
        """Return whether a program runs."""
        return self._children.alive(name)

    def pid(self, name: str) -> int:
        """Return the process id of a program that runs."""
        return self._children.pid(name)

    def stop(self, name: str) -> None:
        """End a program."""
        self._children.stop(name)

    def _begin(self) -> None:
        pki = self.folder / "pki"
        pki.mkdir()
        key = _write_key(pki / "service-accounts.key")
        tokens = pki / "tokens.csv"
        rows = (
            f'{self._tokens[name]},{user},{name},"{groups}"'
            for name, (user, groups) in _USERS.items()
        )
        tokens.write_text("\n".join(rows), encoding="ascii")
        self.begin(
            "apiserver",
            [
                f"--etcd-data-dir={self.folder / 'etcd'}",
                "--bind-address=127.0.0.1",
                f"--secure-port={self._port}",
                # 127.0.0.1 may not be an endpoint of the service `kubernetes`.
                "--endpoint-reconciler-type=none",
                # It makes its certificate and an authority for it.
                f"--cert-dir={pki}",
                f"--token-auth-file={tokens}",
                "--authorization-mode=Node,RBAC",
                # The second as in EKS.
                "--enable-admission-plugins=NodeRestriction,ExtendedResourceToleration",
                f"--service-cluster-ip-range={SERVICES}",
                "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
                f"--service-account-key-file={key}",
                f"--service-account-signing-key-file={key}",
                "--allow-privileged=true",
            ],
        )
        self._await("apiserver", "readyz")
        for part, more in (
            (
                "controller-manager",
                [
                    "--use-service-account-credentials=true",
                    f"--service-account-private-key-file={key}",
                    f"--root-ca-file={self.authority}",
                    "--cloud-provider=external",
                ],
            ),
            ("scheduler", []),
        ):
            config = self.kubeconfig(part)
            self.begin(
                part,
                [
                    *(f"--{kind}kubeconfig={config}" for kind in KUBECONFIGS),
                    "--authentication-skip-lookup=true",
                    "--bind-address=127.0.0.1",
                    f"--secure-port={free_port()}",
                    "--leader-elect=false",
                    *more,
                ],
            )
        # What the controllers make first, and what each pod needs.
        self._await("controller-manager", "api/v1/namespaces/default/serviceaccounts/default")

    def _await(self, part: str, path: str) -> None:
        ends = time.monotonic() + _START_SECONDS
        while time.monotonic() < ends:
            if not self._children.alive(part):
                break
            try:
                # The file is there once the API server has made it.
                if self.authority.exists() and _answers(self.client, path):
                    return
            except (urllib3.exceptions.HTTPError, OSError):
                pass
            time.sleep(0.1)
        raise Problem(f"{part} does not start: {last_words(self.folder / f'{part}.log')}")

    def _end(self) -> None:
        self._children.stop_all()
        shutil.rmtree(self.folder, ignore_errors=True)


def _answers(client: ClusterClient, path: str) -> bool:
    try:
        client.call("GET", path)
    except Refused:
        return False
    except json.JSONDecodeError:
        # Health checks answer plain text.
        return True
    return True


def _write_key(path: Path) -> Path:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    text = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )
    path.write_bytes(text)
    return path


def free_port() -> int:
    """Return a port of 127.0.0.1 that nothing listens on."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])
