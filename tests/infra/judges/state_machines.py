"""A validator of the Amazon States Language: each state machine of the template.

Source: https://github.com/ChristopheBougere/asl-validator (2026-11).
"""

import json
import tempfile
from pathlib import Path

from infra.local.demo.problem import Problem
from tests.infra.judges.programs import node_packages, run
from tests.infra.judges.verdicts import Verdict
from tests.infra.templates import Template


def ask(control_plane: Template) -> Verdict:
    """Ask of each definition.

    Raises:
        Problem: If there is no npm, or the validator cannot be had.
    """
    folder = node_packages() / "asl-validator"
    package = json.loads((folder / "package.json").read_text(encoding="utf-8"))
    program = folder / package["bin"]["asl-validator"]
    machines = control_plane.of("AWS::StepFunctions::StateMachine")
    disagreements = []
    with tempfile.TemporaryDirectory(prefix="dovetail-machines-") as made:
        # One that no validator may take: it must be able to say no.
        for name, definition, is_right in (
            *((one.logical_id, one.properties["DefinitionString"], True) for one in machines),
            ("nowhere", '{"StartAt": "A", "States": {"A": {"Type": "Pass", "Next": "B"}}}', False),
        ):
            file = Path(made) / f"{name}.json"
            file.write_text(definition, encoding="utf-8")
            try:
                run(["node", str(program), "--json-path", str(file)])
                said = ""
            except Problem as problem:
                said = str(problem)
            if is_right == bool(said):
                disagreements.append(f"{name}: {said or 'it takes a state that leads nowhere'}")
    return Verdict(
        version=package["version"], asked=len(machines) + 1, disagreements=tuple(disagreements)
    )
