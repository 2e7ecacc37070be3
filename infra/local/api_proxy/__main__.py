"""`python -m infra.local.api_proxy`: stand before the API server of a kubeconfig until SIGTERM."""

import argparse
import asyncio
import os
import signal
import sys
from pathlib import Path

from infra.local.api_proxy.proxy import Front
from infra.local.api_proxy.target import read_target, require_allowed
from infra.local.kube.auth import Authenticator
from infra.local.kube.certificates import ca_file, server_context
from infra.local.ready import announce


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m infra.local.api_proxy", description=__doc__)
    add = parser.add_argument
    add("--kubeconfig", type=Path, required=True, help="names the server behind")
    add("--port", type=int, default=0, help="port on 127.0.0.1; 0: any free one")
    add("--tls-dir", type=Path, required=True, help="CA and certificate of the front live here")
    add("--auth-file", type=Path, required=True, help="who may call (JSON); read again on change")
    add("--ready-file", type=Path, help="written with one JSON line when serving")
    return parser.parse_args()


async def _serve(arguments: argparse.Namespace) -> None:
    target = read_target(arguments.kubeconfig)
    require_allowed(target.url, os.environ.get("TEST_CLUSTER_OK", ""))
    authenticator = Authenticator(arguments.auth_file)
    front = Front(
        target,
        tls=server_context(arguments.tls_dir),
        authenticator=authenticator,
        port=arguments.port,
    )
    await front.start()
    stop = asyncio.Event()
    for value in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(value, stop.set)
    ready = {
        "url": front.url,
        "ca_file": str(ca_file(arguments.tls_dir).resolve()),
        "target": target.url,
    }
    if arguments.ready_file:
        announce(arguments.ready_file, ready)
    await stop.wait()
    await front.stop()


def main() -> int:
    try:
        asyncio.run(_serve(_arguments()))
    except (OSError, ValueError) as error:
        print(f"infra.local.api_proxy: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
