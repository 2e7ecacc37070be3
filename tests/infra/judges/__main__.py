"""Asks programs and tables of others about what is deployed, and prints a table.

    python -m tests.infra.judges [--release] [judge ...]

Without names it asks those that take a second or a minute; --release those, too, that take minutes
to build. Exit code 1 if one disagrees. One that cannot be had is a line that says so, and no pass.
"""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

os.environ.setdefault("JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION", "20")

from infra.aws.app import build_app
from infra.local.demo.problem import Problem
from tests.infra.judges import (
    arm64_bundle,
    event_ruler,
    every_option,
    helm_chart,
    karpenter_facts,
    service_reference,
    state_machines,
    templates,
    terraform_module,
    token_verifier,
)
from tests.infra.judges.verdicts import Verdict, table
from tests.infra.policies.granted import Grants
from tests.infra.templates import CONTROL_PLANE, Template, cluster_stack

_PLAIN: Final = {
    "bundle": "code",
    "clusters": ",".join(every_option.CLUSTERS),
    "max_price_per_hour": ",".join(f"{name}:none" for name in every_option.CLUSTERS),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Stacks:
    """Templates of one synthesis, the control plane's first."""

    templates: tuple[Template, ...]

    @property
    def grants(self) -> Grants:
        """All statements of all stacks."""
        names = ("", *every_option.CLUSTERS)
        return Grants(dict(zip(names, self.templates, strict=True)))


class Deployed:
    """What is judged, made when it is first asked for."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @cached_property
    def plain(self) -> Stacks:
        """Two clusters, all options at their defaults."""
        return self._synthesized("plain", _PLAIN)

    @cached_property
    def every_option(self) -> Stacks:
        """Two clusters, no option at its default."""
        return self._synthesized("every-option", every_option.CONTEXT)

    def _synthesized(self, name: str, context: Mapping[str, Any]) -> Stacks:
        folder = self._folder / name
        build_app(context, outdir=str(folder)).synth()
        names = (CONTROL_PLANE, *(cluster_stack(name) for name in every_option.CLUSTERS))
        return Stacks(templates=tuple(Template(folder / f"{name}.template.json") for name in names))


@dataclass(frozen=True, slots=True, kw_only=True)
class Judge:
    """A judge.

    Attributes:
        ask: Raises Problem where it cannot be had.
        slow: Whether it takes minutes to build: asked for each release only.
    """

    ask: Callable[[Deployed], Verdict]
    slow: bool = False


def _of_both(deployed: Deployed) -> Verdict:
    plain = service_reference.ask(deployed.plain.grants)
    every = service_reference.ask(deployed.every_option.grants)
    found = dict.fromkeys((*plain.disagreements, *every.disagreements))
    return Verdict(
        version=plain.version, asked=plain.asked + every.asked, disagreements=tuple(found)
    )


def _templates(deployed: Deployed) -> Verdict:
    # Of the clusters the first: the options of the other are those of the plain one.
    return templates.ask((*deployed.plain.templates[:2], *deployed.every_option.templates[:2]))


JUDGES: Final[Mapping[str, Judge]] = {
    "service-reference": Judge(ask=_of_both),
    "event-ruler": Judge(ask=lambda it: event_ruler.ask(it.plain.templates[0])),
    "asl-validator": Judge(ask=lambda it: state_machines.ask(it.every_option.templates[0])),
    "cfn-lint": Judge(ask=_templates),
    "karpenter-facts": Judge(ask=lambda _: karpenter_facts.ask()),
    "arm64-bundle": Judge(ask=lambda _: arm64_bundle.ask(), slow=True),
    "helm": Judge(ask=lambda _: helm_chart.ask(), slow=True),
    "terraform": Judge(ask=lambda _: terraform_module.ask(), slow=True),
    "token-verifier": Judge(ask=lambda _: token_verifier.ask(), slow=True),
}


def main() -> int:
    """Ask the judges; return 1 if one disagrees."""
    parser = argparse.ArgumentParser(prog="python -m tests.infra.judges", description=__doc__)
    parser.add_argument("--release", action="store_true", help="those that take minutes, too")
    parser.add_argument("judges", nargs="*", choices=[*JUDGES, []], metavar="judge")
    given = parser.parse_args()
    chosen = given.judges or [
        name for name, judge in JUDGES.items() if given.release or not judge.slow
    ]
    said: dict[str, Verdict | str] = {}
    with tempfile.TemporaryDirectory(prefix="dovetail-judges-") as folder:
        deployed = Deployed(Path(folder))
        for name in chosen:
            began = time.monotonic()
            try:
                said[name] = JUDGES[name].ask(deployed)
            except Problem as problem:
                said[name] = str(problem)
            sys.stderr.write(f"{name}: {time.monotonic() - began:.0f} s\n")
    sys.stdout.write(f"{table(said)}\n")
    return int(any(isinstance(one, Verdict) and one.disagreements for one in said.values()))


if __name__ == "__main__":
    sys.exit(main())
