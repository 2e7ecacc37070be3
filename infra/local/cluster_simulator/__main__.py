"""Runs the simulated cluster.

`python -m infra.local.cluster_simulator --server URL --ready-file PATH`
"""

import argparse
import asyncio
import contextlib
import logging
import signal
from collections.abc import Sequence
from pathlib import Path

from infra.local.cluster_simulator.client import Server
from infra.local.cluster_simulator.instances import AssumedInstances, Ec2Instances, Instances, Sizes
from infra.local.cluster_simulator.kubelet.registration import SIMULATED
from infra.local.cluster_simulator.simulation import PARTS, Setup, Simulation
from infra.local.cluster_simulator.world import Timing
from infra.local.ready import announce


def main(arguments: Sequence[str] | None = None) -> None:
    options = _parser().parse_args(arguments)
    level = logging.DEBUG if options.verbose else logging.WARNING
    logging.basicConfig(level=level, format="%(levelname)s %(name)s: %(message)s")
    instances: Instances = AssumedInstances()
    if options.ec2_endpoint:
        instances = Ec2Instances(options.ec2_endpoint, options.region)
    setup = Setup(
        parts=options.only,
        timing=Timing(speed=options.speed),
        instances=instances,
        sizes=Sizes.read(options.machines) if options.machines else Sizes(),
        marks=tuple(_mark(text) for text in options.node_label) or SIMULATED,
        discovers=not options.node_label,
    )
    token = options.token_file.read_text(encoding="ascii") if options.token_file else None
    server = Server(url=options.server, token=token, ca_file=options.ca_file)
    asyncio.run(_serve(Simulation(server, setup), Path(options.ready_file)))


async def _serve(simulation: Simulation, ready_file: Path) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    # A signal also ends the wait for a server that is not up yet.
    stopped = asyncio.create_task(stop.wait())
    played = asyncio.create_task(_play(simulation, ready_file))
    await asyncio.wait({stopped, played}, return_when=asyncio.FIRST_COMPLETED)
    stopped.cancel()
    if played.done():
        played.result()
    played.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await played


async def _play(simulation: Simulation, ready_file: Path) -> None:
    async with simulation:
        await asyncio.to_thread(announce, ready_file, {})
        await simulation.wait()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m infra.local.cluster_simulator", description=__doc__
    )
    add = parser.add_argument
    add("--server", required=True, help="address of the API server")
    add("--token-file", type=Path, help="holds the bearer token")
    add("--ca-file", help="PEM file of the server's authority")
    add("--machines", help="JSON file: instance type to capacity, allocatable, extended")
    add("--ec2-endpoint", help="local EC2 API that knows the instances; without it all run")
    add("--region", default="us-east-1", help="region of that EC2 API")
    add("--speed", type=_speed, default=1.0, help="how many times faster than a real cluster")
    add("--only", type=_parts, default=frozenset(PARTS), help=f"some of {','.join(PARTS)}")
    add("--node-label", action="append", default=[], help="KEY or KEY=VALUE of simulated nodes")
    add("--ready-file", required=True, help="gets an empty JSON object once all is listed")
    add("--verbose", action="store_true", help="say what is retried")
    return parser


def _parts(text: str) -> frozenset[str]:
    parts = frozenset(text.split(","))
    unknown = sorted(parts - set(PARTS))
    if unknown:
        raise argparse.ArgumentTypeError(f"{unknown[0]!r} is unknown; use {','.join(PARTS)}")
    return parts


def _speed(text: str) -> float:
    speed = float(text)
    if speed <= 0:
        raise argparse.ArgumentTypeError(f"{text} is not above 0; use 1 for real time")
    return speed


def _mark(text: str) -> tuple[str, str | None]:
    key, found, value = text.partition("=")
    return key, value if found else None


if __name__ == "__main__":
    main()
