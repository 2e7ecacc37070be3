import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

# Node 20 still works; the banner of eleven lines would drown the results.
os.environ.setdefault("JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION", "20")

from tests.infra.templates import (
    CLUSTERS,
    CONTEXT,
    CONTROL_PLANE,
    Template,
    cluster_stack,
    synthesized,
)


@pytest.fixture(scope="session")
def assembly(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The app, with the security rules on."""
    return synthesized(tmp_path_factory, "assembly", **CONTEXT)


@pytest.fixture(scope="session")
def control_plane(assembly: Path) -> Template:
    return Template(assembly / f"{CONTROL_PLANE}.template.json")


@pytest.fixture(scope="session")
def clusters(assembly: Path) -> Mapping[str, Template]:
    return {name: Template(assembly / f"{cluster_stack(name)}.template.json") for name in CLUSTERS}


@pytest.fixture(scope="session")
def security_report(assembly: Path) -> Mapping[str, Any]:
    report: dict[str, Any] = json.loads((assembly / "validation-report.json").read_text())
    return report
