"""Uninstall and migration, done as their pages say, against the embedded world."""

import dataclasses
import io
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.console import Console

from infra.local.demo.fault_injection import FaultInjection
from infra.local.demo.observer import Observer
from infra.local.demo.play import Player
from infra.local.demo.scenario import load_scenario
from infra.local.demo.world import CLUSTER, World, WorldOptions
from tests.docs.pages import ROOT, steps
from tests.waiting import until

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(1800)]

UNINSTALL = ROOT / "docs" / "operations" / "uninstall.md"
MIGRATION = ROOT / "docs" / "migration.md"
POOL = [f"../delete-node/{name}.yaml" for name in ("node-class", "node-pool")]
OWNERS = {"karpenter.sh/provisioner-name": ["provisioner.yaml"], "karpenter.sh/nodepool": POOL}
# As it is installed, without a terminal to ask at; the pages' cluster is called prod.
DOVETAIL = f"""dovetail() {{
    local words=("${{@/#prod/{CLUSTER}}}")
    {sys.executable} -c 'from functions.cli.main import main; raise SystemExit(main())' \\
        "${{words[@]}}" --yes
}}"""
ALIVE = ("pending", "running", "stopping", "stopped")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Terminal:
    """A shell beside a world that runs ten pods on Dovetail's nodes, which carry a label."""

    world: World
    folder: Path
    label: str

    def run(self, command: str) -> str:
        """Run a command of a page as it stands; return what it says on standard output."""
        ended = subprocess.run(
            ["bash", "-o", "pipefail", "-c", f"{DOVETAIL}\n{command}"],
            cwd=ROOT,
            env={
                **os.environ,
                **self.world.aws_environment,
                "KUBECONFIG": str(self.world.kubeconfig),
                "KUBECACHEDIR": str(self.folder),
            },
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        said = ended.stdout + ended.stderr
        assert ended.returncode == 0, f"{command}\n{said}"
        return ended.stdout

    def machines(self) -> dict[str, bool]:
        """Return whether each machine that runs still carries our tag, by id."""
        state = {"Name": "instance-state-name", "Values": list(ALIVE)}
        pages = self.world.client("ec2").get_paginator("describe_instances")
        return {
            instance["InstanceId"]: any(
                tag["Key"] == "dovetail.dev/cluster" for tag in instance["Tags"]
            )
            for page in pages.paginate(Filters=[state])
            for group in page["Reservations"]
            for instance in group["Instances"]
        }


@pytest.fixture(params=OWNERS, ids=("provisioner", "node-pool"))
def terminal(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Terminal]:
    console = Console(file=io.StringIO())
    with World(WorldOptions(speed=10, keep_logs=tmp_path / "logs"), console.print) as world:
        scenario = load_scenario("inflate")
        first = scenario.steps[0]
        first = dataclasses.replace(
            first, does={**first.does, "apply": [*OWNERS[request.param], "deployment.yaml"]}
        )
        scenario = dataclasses.replace(scenario, steps=(first,))
        observer = Observer(world.cluster, world.client("ec2"))
        observer.start()
        try:
            (result,) = Player(world.cluster, observer, 10, console.print).play(scenario)
        finally:
            observer.stop()
        assert result.failures == ()
        yield Terminal(world=world, folder=tmp_path, label=request.param)


def test_drained_nodes_leave_no_machine_and_no_finalizer(terminal: Terminal) -> None:
    for command in steps(UNINSTALL, "1. "):
        terminal.run(command)
    look, delete = steps(UNINSTALL, "2. ")[:2]
    assert delete == f"{look} | xargs kubectl delete nodes"
    assert terminal.run(look).strip()
    terminal.run(delete)
    until(lambda: terminal.run(look).strip() == "", "our nodes stay")
    for command in steps(UNINSTALL, "3. "):
        terminal.run(command)
    until(lambda: terminal.machines() == {}, "machines run on")
    instances, templates, *_ = steps(UNINSTALL, "5. ")
    assert terminal.run(instances).strip() in {"", "None"}
    made = terminal.run(templates).split()
    for value in made:
        # They are younger than an hour: the page says to delete them by hand.
        terminal.run(f"aws ec2 delete-launch-template --launch-template-id {value}")
    assert terminal.run(templates).split() == []


def test_nodes_that_are_released_are_not_terminated(terminal: Terminal) -> None:
    _, _, _, release = steps(UNINSTALL, "2. ")
    _release(terminal, release)


@pytest.mark.parametrize("terminal", [next(iter(OWNERS))], indirect=True)
def test_nodes_that_migration_releases_are_not_terminated(terminal: Terminal) -> None:
    words = ("kubectl label nodes", "kubectl get nodes -l dovetail.dev/released")
    handing = [step for step in steps(MIGRATION, "Node by node") if step.startswith(words)]
    assert len(handing) == 3
    _release(terminal, *handing)


def _release(terminal: Terminal, *handing: str) -> None:
    nodes = terminal.run(f"kubectl get nodes -l {terminal.label} -o name").split()
    assert nodes
    machines = set(terminal.machines())
    for command in steps(UNINSTALL, "1. "):
        terminal.run(command)
    (untag,) = [step for step in steps(UNINSTALL, "2. ") if step.startswith("aws ec2 delete-tags")]
    for machine in sorted(machines):
        terminal.run(untag.replace("i-0123456789abcdef0", machine))
    for command in handing:
        terminal.run(command)
    terminal.run("kubectl delete deployment inflate")
    # Kubernetes deletes what a Provisioner or NodePool owns with it.
    for command in steps(UNINSTALL, "3. ")[:2]:
        assert command.startswith("kubectl delete")
        terminal.run(command)
    for _ in range(2):
        FaultInjection(terminal.world.control, terminal.world.client).sweep_now()
        time.sleep(3)
    standing = terminal.run("kubectl get nodes -l dovetail.dev/released=yes -o name").split()
    assert sorted(standing) == sorted(nodes)
    assert terminal.machines() == dict.fromkeys(machines, False)
    finalizers = terminal.run(
        "kubectl get nodes -l dovetail.dev/released=yes "
        "-o jsonpath='{.items[*].metadata.finalizers}'"
    )
    assert finalizers.strip() == ""
    assert terminal.run(f"kubectl get nodes -l {terminal.label} -o name").strip() == ""
