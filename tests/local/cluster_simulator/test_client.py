import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from infra.local.cluster_simulator.client import ApiError, Client, Server
from infra.local.cluster_simulator.informer import Informer
from infra.local.cluster_simulator.kinds import NAMESPACE, NODE
from infra.local.kube.server import EmbeddedKube
from tests.local.cluster_simulator.bench import NODES, SIZES, Bench, node
from tests.waiting import until


def reflect(
    kube: EmbeddedKube, story: Callable[[Informer, Bench], Awaitable[None]]
) -> list[tuple[str, str]]:
    """Run a story beside an informer of nodes and return what its handlers were told."""
    told: list[tuple[str, str]] = []

    async def play() -> None:
        async with Client(Server(url=kube.url)) as client:
            informer = Informer(NODE, client)

            def note(old: object, new: object) -> None:
                known = new or old
                assert isinstance(known, dict)
                change = "added" if old is None else "deleted" if new is None else "changed"
                told.append((change, known["metadata"]["name"]))

            informer.subscribe(note)
            task = asyncio.create_task(informer.run())
            await informer.synced.wait()
            await story(informer, Bench(kube.url))
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    asyncio.run(play())
    return told


async def soon(holds: Callable[[], bool]) -> None:
    await asyncio.to_thread(until, holds)


def test_write_is_seen_once_though_the_watch_repeats_it(kube: EmbeddedKube) -> None:
    async def story(informer: Informer, bench: Bench) -> None:
        made = await asyncio.to_thread(bench.create, NODES, node("n0"))
        informer.observe(made)
        assert informer.get("n0") == made
        await asyncio.to_thread(bench.create, NODES, node("n1"))
        await soon(lambda: informer.get("n1") is not None)
        informer.observe(made)

    assert reflect(kube, story) == [("added", "n0"), ("added", "n1")]


def test_expired_version_leads_to_a_list_whose_difference_is_announced(kube: EmbeddedKube) -> None:
    async def story(informer: Informer, bench: Bench) -> None:
        for name in ("n0", "n1"):
            await asyncio.to_thread(bench.create, NODES, node(name))
        await soon(lambda: informer.get("n1") is not None)
        kube.fault(NODES, watch=True, status=410, reason="Expired", times=1)
        kube.fault(NODES, watch=True, abort=True, times=1)
        await asyncio.to_thread(bench.call, "DELETE", f"{NODES}/n0")
        await soon(lambda: informer.get("n0") is None)

    told = reflect(kube, story)
    assert told == [("added", "n0"), ("added", "n1"), ("deleted", "n0")]


def test_a_server_that_fails_at_first_is_asked_again(kube: EmbeddedKube) -> None:
    kube.fault(NODES, status=500, times=1)

    async def story(informer: Informer, bench: Bench) -> None:
        await asyncio.to_thread(bench.create, NODES, node("n0"))
        await soon(lambda: informer.get("n0") is not None)

    assert reflect(kube, story) == [("added", "n0")]


def test_a_refusal_carries_code_and_reason(kube: EmbeddedKube) -> None:
    async def ask() -> None:
        async with Client(Server(url=kube.url)) as client:
            await client.get(NAMESPACE, "", "absent")

    with pytest.raises(ApiError) as caught:
        asyncio.run(ask())
    assert (caught.value.code, caught.value.reason) == (404, "NotFound")


def test_the_command_says_when_it_is_ready_and_ends_on_sigterm(
    kube: EmbeddedKube, tmp_path: Path
) -> None:
    sizes, ready = tmp_path / "machines.json", tmp_path / "ready"
    sizes.write_text('{"m5.xlarge": {"capacity": {"cpu": "3", "pods": "5"}}}')
    command = ["--server", kube.url, "--machines", str(sizes), "--speed", "500"]
    command += ["--ready-file", str(ready), "--only", "kubelet,cloud", "--node-label", "sim=1"]
    process = subprocess.Popen(
        [sys.executable, "-m", "infra.local.cluster_simulator", *command],
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": "."},
    )
    try:
        until(ready.exists, "the ready file is written")
        assert json.loads(ready.read_text()) == {}
        bench = Bench(kube.url)
        bench.add_node("ours", labels={"sim": "1"})
        bench.add_node("foreign")
        until(lambda: bench.is_ready("ours"))
        shown = bench.get(f"{NODES}/ours")["status"]["capacity"]
        # What a kubelet does not know stays as it was written.
        assert shown == SIZES["m5.xlarge"]["capacity"] | {"cpu": "3", "pods": "5"}
        assert not bench.is_ready("foreign")
    finally:
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 0
    assert errors == b""
