"""cfn-lint, which has CloudFormation's own schemas: each template, plain and with every option.

Source: https://github.com/aws-cloudformation/cfn-lint (2026-11).
"""

from collections.abc import Iterable
from importlib.metadata import version

from tests.infra.judges.every_option import not_set
from tests.infra.judges.verdicts import Verdict
from tests.infra.templates import Template


def ask(templates: Iterable[Template]) -> Verdict:
    """Ask of each template."""
    from cfnlint.api import lint_all

    asked = 0
    disagreements = [f"every_option.py and docs/settings.md: {name}" for name in not_set()]
    for template in templates:
        asked += len(template.raw["Resources"])
        # W3005: CDK writes dependencies that a reference implies already; harmless.
        disagreements += [
            f"{template.path.name}: {entry}"
            for entry in lint_all(template.path.read_text(encoding="utf-8"))
            if entry.rule.id != "W3005" and entry.rule.id[0] != "I"
        ]
    return Verdict(version=version("cfn-lint"), asked=asked, disagreements=tuple(disagreements))
