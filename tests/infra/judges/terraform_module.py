"""Terraform's own reader of modules: does it read ours, and what does it find in them?

Source: https://github.com/hashicorp/terraform-config-inspect (2026-12), which reads what Terraform
and OpenTofu have in common. Without the provider's schema nobody checks a resource's arguments.
"""

import json
import re
from typing import Any, Final

from tests.infra.judges.programs import CACHE, HERE, run
from tests.infra.judges.verdicts import Verdict
from tests.real.build import build
from tools.release.options import options_of
from tools.release.terraform import MODULE, MODULES, variable

# What `main.tf` of each module has besides the options.
_OWN: Final = {
    "cluster": {"bucket", "cluster", "region"},
    "control_plane": {"bucket", "region", "settings"},
}
_RESOURCES: Final = {"aws_cloudformation_stack", "aws_s3_object"}
_EXAMPLE: Final = "examples/eks"


def ask() -> Verdict:
    """Ask about each module and the example.

    Raises:
        Problem: If there is no Go, or the reader does not build.
    """
    module = HERE / "terraform"
    program = build(module, CACHE / "terraform-judge", ["-ldflags=-s -w", "."])
    names = (*MODULES, _EXAMPLE)
    said = json.loads(run([str(program), *(str(MODULE / name) for name in names)]))
    found = {name: said[str(MODULE / name)] for name in names}
    disagreements = [
        f"{name}: {line['summary']}: {line.get('detail', '')}"
        for name, read in found.items()
        for line in read.get("diagnostics", ())
    ]
    for name in MODULES:
        disagreements += _wrong(name, found[name])
    called = found[_EXAMPLE]["module_calls"]
    if not {"dovetail", "dovetail_prod", "eks"} <= called.keys():
        disagreements.append(f"{_EXAMPLE}: calls {sorted(called)}")
    version = re.search(r"terraform-config-inspect v(\S+)", (module / "go.mod").read_text("utf-8"))
    assert version is not None, "the module file requires the reader"
    return Verdict(
        version=version[1],
        asked=len(names) + sum(len(read["variables"]) for read in found.values()),
        disagreements=tuple(disagreements),
    )


def _wrong(name: str, read: dict[str, Any]) -> list[str]:
    options = options_of(control_plane=MODULES[name])
    wanted = {variable(option) for option in options} | _OWN[name]
    lines = [f"{name}: {one} is no variable" for one in sorted(wanted ^ read["variables"].keys())]
    kinds = {resource["type"] for resource in read["managed_resources"].values()}
    lines += [f"{name}: makes {kind}" for kind in sorted(kinds ^ _RESOURCES)]
    must = {variable(option) for option in options if option.default is None}
    required = {one for one, about in read["variables"].items() if about["required"]}
    lines += [
        f"{name}: {one} is {'' if one in required else 'not '}required"
        for one in sorted(required ^ (must | (_OWN[name] - {"settings"})))
    ]
    if read["required_providers"].keys() != {"aws"}:
        lines.append(f"{name}: requires {sorted(read['required_providers'])}")
    return lines
