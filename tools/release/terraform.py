"""Writes the variables of the Terraform module, from the options of the templates.

python -m tools.release.terraform
"""

import json
import re
import sys
from pathlib import Path
from typing import Final

from tools.release.options import Option, options_of

ROOT: Final = Path(__file__).parents[2]
MODULE: Final = ROOT / "infra" / "terraform"
MODULES: Final = {"cluster": False, "control_plane": True}
_HEAD: Final = "# Made by `make terraform` from tools/release/options.py.\n"


def variable(option: Option) -> str:
    """Return an option's name in Terraform, as in `max_price_per_hour`."""
    return re.sub("(?<!^)([A-Z])", r"_\1", option.parameter).lower()


def parameters_file(*, control_plane: bool) -> str:
    """Return the variables of one module, and how they become parameters of its stack."""
    options = options_of(control_plane=control_plane)
    width = max(len(option.parameter) for option in options)
    lines = [
        f"    {option.parameter.ljust(width)} = "
        + (f'join(",", var.{variable(option)})' if option.many else f"var.{variable(option)}")
        for option in options
    ]
    made = "\n".join(["locals {", "  parameters = {", *lines, "  }", "}"])
    return "\n\n".join([_HEAD + made, *map(_declared, options)]) + "\n"


def _declared(option: Option) -> str:
    name = variable(option)
    kind = "list(string)" if option.many else "string"
    lines = [f"description = {json.dumps(option.about)}", f"type        = {kind}"]
    if option.default is not None:
        lines.append(f"default     = {'[]' if option.many else json.dumps(option.default)}")
    if option.values:
        values = ", ".join(map(json.dumps, option.values))
        told = f"{name}: give one of {', '.join(option.values)}."
        lines += [
            "",
            "validation {",
            f"  condition     = contains([{values}], var.{name})",
            f"  error_message = {json.dumps(told)}",
            "}",
        ]
    inside = "\n".join(f"  {line}" if line else "" for line in lines)
    return f'variable "{name}" {{\n{inside}\n}}'


def main() -> int:
    """Write the files."""
    for name, control_plane in MODULES.items():
        text = parameters_file(control_plane=control_plane)
        (MODULE / name / "parameters.tf").write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
