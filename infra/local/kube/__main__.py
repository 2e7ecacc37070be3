"""`python -m infra.local.kube`: serve an empty cluster until SIGTERM."""

import argparse
import asyncio
import json
import os
import signal
import sys
import time
from pathlib import Path

from infra.local.kube.auth import Authenticator
from infra.local.kube.certificates import ca_file, server_context
from infra.local.kube.server import KubeApi
from infra.local.ready import announce


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m infra.local.kube", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="port on 127.0.0.1; 0: any free one")
    parser.add_argument("--ready-file", type=Path, help="written with one JSON line when serving")
    parser.add_argument("--tls-dir", type=Path, help="serve HTTPS; CA and certificate live here")
    parser.add_argument("--auth-file", type=Path, help="who may call (JSON); read again on change")
    parser.add_argument(
        "--initializing-seconds",
        type=float,
        default=2.0,
        help="reads of a custom resource are answered 429 for so long after its definition",
    )
    return parser.parse_args()


async def _serve(arguments: argparse.Namespace) -> None:
    tls: Path | None = arguments.tls_dir
    authenticator = Authenticator(arguments.auth_file) if arguments.auth_file else None
    # Versions count on from the clock, so that a watch of a former life is too old, not silent.
    api = KubeApi(
        arguments.port,
        start_version=int(time.time() * 1000),
        tls=server_context(tls) if tls else None,
        authenticator=authenticator,
        initializing_seconds=arguments.initializing_seconds,
    )
    await api.start()
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for value in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(value, stop.set)
    ready = {
        "url": api.url,
        "ca_file": str(ca_file(tls).resolve()) if tls else None,
        "admin_token": authenticator.admin_token if authenticator else None,
        "pid": os.getpid(),
    }
    if arguments.ready_file:
        announce(arguments.ready_file, ready)
    print(json.dumps(ready), flush=True)
    await stop.wait()
    await api.stop()


def main() -> int:
    arguments = _arguments()
    try:
        asyncio.run(_serve(arguments))
    except (OSError, ValueError) as error:
        print(f"infra.local.kube: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
