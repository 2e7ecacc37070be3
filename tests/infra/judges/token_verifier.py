"""The server side of EKS's tokens: does it take ours for their cluster, and for no other?

Its newest release that the module proxy resolves is of 2023; the format has not changed since.

Source: https://github.com/kubernetes-sigs/aws-iam-authenticator (pkg/token, v0.6.13).
"""

import base64
import json
import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from shared.aws.eks_token import EksToken
from shared.aws.session import Session
from shared.runtime.system import SystemClock
from tests.infra.judges.programs import CACHE, HERE, run
from tests.infra.judges.verdicts import Verdict
from tests.real.build import build

_REGIONS: Final = {
    "eu-west-1": "aws",
    "us-east-1": "aws",
    "ap-southeast-2": "aws",
    "me-south-1": "aws",
}
_CLUSTERS: Final = ("prod", "A_b-9", "x" * 100)
# As long as STS makes them.
_SESSION_TOKENS: Final = ("", "FwoGZXIvYXdzE+/=" * 64)
_ACCESS_KEY: Final = "AKIAIOSFODNN7EXAMPLE"
_SECRET: Final = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"


def ask() -> Verdict:
    """Ask of tokens of several Regions, clusters and kinds of credentials.

    Raises:
        Problem: If there is no Go, or its module does not build.
    """
    module = HERE / "authenticator"
    program = build(module, CACHE / "token-judge", ["-ldflags=-s -w", "."])
    shown = [
        {**about, "cluster": cluster, "token": token}
        for about, own, token in _tokens()
        for cluster in (own, f"{own}-2"[-100:], own.swapcase())
    ]
    wanted = [is_own for _ in _tokens() for is_own in (True, False, False)]
    # One that is cut, or signed for another endpoint than STS.
    for broken in (shown[0]["token"][:-8], _elsewhere(shown[0]["token"])):
        shown.append({**shown[0], "token": broken})
        wanted.append(False)
    with tempfile.TemporaryDirectory(prefix="dovetail-tokens-") as folder:
        file = Path(folder) / "tokens.json"
        file.write_text(json.dumps(shown), encoding="utf-8")
        said = json.loads(run([str(program), str(file)]))
    disagreements = [
        f"cluster {one['cluster'][:20]} in {one['region']}: {error or 'is taken'}"
        for one, takes, error in zip(shown, wanted, said, strict=True)
        if takes == bool(error)
    ]
    version = re.search(r"aws-iam-authenticator v(\S+)", (module / "go.mod").read_text("utf-8"))
    assert version is not None, "the module file requires the authenticator"
    return Verdict(version=version[1], asked=len(shown), disagreements=tuple(disagreements))


def _tokens() -> Iterator[tuple[Mapping[str, str], str, str]]:
    """Yield what a token is signed with, its cluster, and the token."""
    for region, partition in _REGIONS.items():
        for cluster in _CLUSTERS:
            for session in _SESSION_TOKENS:
                about = {
                    "region": region,
                    "partition": partition,
                    "accessKey": _ACCESS_KEY,
                    "secret": _SECRET,
                    "sessionToken": session,
                }
                with _credentials(session):
                    own = Session(region=region)
                    token = EksToken(own, cluster=cluster, role="", clock=SystemClock())()
                yield about, cluster, token


@contextmanager
def _credentials(session: str) -> Iterator[None]:
    """Let the SDK find the keys where Lambda puts them."""
    before = dict(os.environ)
    os.environ.update({"AWS_ACCESS_KEY_ID": _ACCESS_KEY, "AWS_SECRET_ACCESS_KEY": _SECRET})
    os.environ.pop("AWS_SESSION_TOKEN", None)
    if session:
        os.environ["AWS_SESSION_TOKEN"] = session
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _elsewhere(token: str) -> str:
    prefix, _, text = token.partition(".")
    url = base64.urlsafe_b64decode(f"{text}{'=' * (-len(text) % 4)}").decode()
    other = re.sub(r"https://[^/]+/", "https://example.com/", url)
    return f"{prefix}.{base64.urlsafe_b64encode(other.encode()).decode().rstrip('=')}"
