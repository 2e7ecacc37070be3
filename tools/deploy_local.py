"""The full template into the embedded AWS API, every resource looked up, and away again.

    python -m tools.deploy_local

Synthesises the app for two clusters, deploys all stacks, asks each service for each resource, then
deletes the stacks in the order of docs/operations/uninstall.md and looks that nothing is left.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from infra.local.aws.clients import ClientFor
from infra.local.aws.embedded import EmbeddedAws
from infra.local.aws.templates.assembly import StackArtifact, read_assembly, synth_command
from infra.local.aws.templates.deploy import deploy
from infra.local.aws.templates.resource_check import (
    FINDERS,
    existing,
    missing_resources,
    not_emulated,
)

ROOT: Final = Path(__file__).parents[1]
CLUSTERS: Final = ("prod", "staging")
_ATTACHMENT: Final = "DovetailCluster-"
SYNTH_SECONDS: Final = 15
DEPLOY_SECONDS: Final = 20


def seeds(stacks: Sequence[StackArtifact]) -> dict[str, object]:
    """Return the clusters that the attachments are for, as the embedded AWS API takes them."""
    names = [stack.name.removeprefix(_ATTACHMENT) for stack in stacks if _ATTACHMENT in stack.name]
    ends = {"endpoint": "https://127.0.0.1:1", "ca_data": "QQ=="}
    return {"clusters": [{"name": name, **ends} for name in names]}


def physical_ids(client: ClientFor, stacks: Sequence[StackArtifact]) -> dict[str, tuple[str, str]]:
    """Return type and physical id of every resource that can be looked up, by stack and name."""
    found = {}
    for stack in stacks:
        rows = client("cloudformation").describe_stack_resources(StackName=stack.name)
        for row in rows["StackResources"]:
            if row.get("PhysicalResourceId") and row["ResourceType"] in FINDERS:
                name = f"{stack.name}/{row['LogicalResourceId']}"
                found[name] = (row["ResourceType"], row["PhysicalResourceId"])
    return found


def left_over(client: ClientFor, made: dict[str, tuple[str, str]]) -> tuple[str, ...]:
    """Return the resources that their services still know, sorted."""
    found = existing(client, made.values())
    return tuple(sorted(name for name, resource in made.items() if resource in found))


def remove(client: ClientFor, stacks: Sequence[StackArtifact]) -> None:
    """Delete the stacks, attachments first."""
    for stack in reversed(stacks):
        client("cloudformation").delete_stack(StackName=stack.name)


def main(arguments: Sequence[str] | None = None) -> int:
    """Deploy and remove; 1 when a resource is missing, or one is left."""
    parser = argparse.ArgumentParser(prog="python -m tools.deploy_local", description=__doc__)
    parser.add_argument("--assembly", type=Path, help="an assembly that is there already")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="dovetail-assembly-") as folder:
        assembly = given.assembly
        if assembly is None:
            began = time.monotonic()
            context = {
                "clusters": ",".join(CLUSTERS),
                "max_price_per_hour": ",".join(f"{name}:100" for name in CLUSTERS),
                "bundle": "code",
                "forwarder_image": "localhost/dovetail/forwarder:local",
                "removal": "destroy",
            }
            assembly = Path(folder)
            subprocess.run(
                [sys.executable, *synth_command(context, assembly)], cwd=ROOT, check=True
            )
            _say("synth", time.monotonic() - began, SYNTH_SECONDS)
        return _round_trip(assembly)


def _round_trip(assembly: Path) -> int:
    stacks = read_assembly(assembly)
    declared = Counter(
        resource["Type"] for stack in stacks for resource in stack.template["Resources"].values()
    )
    with EmbeddedAws() as aws:
        aws.control("seed", seeds(stacks))
        began = time.monotonic()
        deploy(assembly, aws.access)
        _say("deploy", time.monotonic() - began, DEPLOY_SECONDS)
        missing = missing_resources(assembly, aws.access)
        made = physical_ids(aws.client, stacks)
        remove(aws.client, stacks)
        left = left_over(aws.client, made)
    excused = not_emulated()
    total = sum(declared.values())
    without = sum(count for kind, count in declared.items() if kind in excused)
    sys.stdout.write(
        f"{total} resources declared, {total - without - len(missing)} made, "
        f"{len(made)} of them asked for by name, {without} not emulated\n"
    )
    for kind in sorted(declared.keys() & excused.keys()):
        sys.stdout.write(f"  {kind} ({declared[kind]}): {excused[kind]}\n")
    for resource in missing:
        sys.stderr.write(f"missing: {resource.stack}/{resource.logical_id} {resource.reason}\n")
    for name in left:
        sys.stderr.write(f"left after removal: {name} ({made[name][0]})\n")
    if not left:
        sys.stdout.write(f"removed: 0 of {len(made)} are left\n")
    return 1 if missing or left else 0


def _say(what: str, seconds: float, most: float) -> None:
    verdict = "" if seconds <= most else f", more than {most:.0f} s: is the machine busy?"
    sys.stdout.write(f"{what}: {seconds:.1f} s{verdict}\n")


if __name__ == "__main__":
    sys.exit(main())
