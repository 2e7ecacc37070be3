"""Command line of the embedded AWS API."""

import argparse
import logging
import os
import signal
import threading
import warnings
from pathlib import Path
from typing import NoReturn

from infra.local.aws.server import AwsServer
from infra.local.aws.service import Options
from infra.local.ready import announce


def main(argv: list[str] | None = None) -> NoReturn:
    """Serve until SIGTERM, SIGINT or the end of the process that asked for it."""
    arguments = _parser().parse_args(argv)
    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    if arguments.with_parent:
        _watch_parent(ended)
    _log_to(arguments.log_dir)
    options = Options(
        region=arguments.region,
        workers=arguments.workers,
        retry_seconds=arguments.async_retry_seconds,
        log_dir=arguments.log_dir,
    )
    server = AwsServer(port=arguments.port, options=options)
    server.start()
    if arguments.ready_file:
        announce(arguments.ready_file, server.access.ready | {"pid": os.getpid()})
    else:
        for name, value in server.access.environment.items():
            print(f"export {name}={value}", flush=True)
    ended.wait()
    server.stop()
    logging.shutdown()
    # Python would wait for threads of invocations and executions, which wait for something.
    os._exit(0)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m infra.local.aws", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0 takes a free port")
    parser.add_argument("--ready-file", type=Path, help="gets one JSON line when ready")
    parser.add_argument("--region", default="us-east-1")
    parser.add_argument("--workers", type=int, default=8, help="invocations at the same time")
    parser.add_argument(
        "--async-retry-seconds",
        type=_seconds,
        default=(60.0, 120.0),
        help="waits before the second and third asynchronous attempt, for example 60,120",
    )
    parser.add_argument("--log-dir", type=Path, help="one log file for each function")
    parser.add_argument(
        "--with-parent", action="store_true", help="end when standard input is closed"
    )
    return parser


def _log_to(folder: Path | None) -> None:
    """Keep the terminal quiet: what moto complains about goes to a file when there is one."""
    warnings.filterwarnings("ignore")
    if folder is None:
        logging.basicConfig(level=logging.ERROR)
        return
    folder.mkdir(parents=True, exist_ok=True)
    logging.basicConfig(
        filename=folder / "embedded-aws.log",
        level=logging.WARNING,
        format="%(asctime)s %(levelname)s %(name)s %(message)s",
    )


def _seconds(text: str) -> tuple[float, ...]:
    return tuple(float(part) for part in text.split(","))


def _watch_parent(ended: threading.Event) -> None:
    def watch() -> None:
        os.read(0, 1)
        ended.set()

    threading.Thread(target=watch, daemon=True, name="parent").start()


if __name__ == "__main__":
    main()
