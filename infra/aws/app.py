"""The CDK application; `cdk.json` runs it.

Context: see `infra.aws.config.Config`; for example
`cdk deploy --all -c clusters=prod -c max_price_per_hour=prod:25`.
Nothing here calls AWS: stacks take account and Region from the deployer's credentials.
"""

import os
import sys
from collections.abc import Mapping
from typing import Any

try:
    from aws_cdk import App, Stack, Tags, Validations
except ModuleNotFoundError as error:
    raise SystemExit(f"dovetail: {error}; run `make setup` first") from None

from infra.aws.bundling import BundlingError
from infra.aws.cluster import ClusterStack
from infra.aws.config import ConfigError, read_config, require_partition
from infra.aws.control_plane import ControlPlaneStack
from infra.aws.names import CONTROL_PLANE_STACK, cluster_stack_name


def build_app(context: Mapping[str, Any] | None = None, *, outdir: str | None = None) -> App:
    """Return the application, not yet synthesised.

    Args:
        context: Context values in addition to those that the CDK CLI passes.
        outdir: Where the cloud assembly goes; chosen by the CLI when None.

    Raises:
        ConfigError: If a context value is wrong.
    """
    app = App(context=dict(context or {}), outdir=outdir, analytics_reporting=False)
    config = read_config(app.node.get_all_context())
    control_plane = ControlPlaneStack(app, CONTROL_PLANE_STACK, config=config)
    stacks: list[Stack] = [control_plane]
    for cluster in config.clusters:
        attachment = ClusterStack(app, cluster_stack_name(cluster), cluster=cluster, config=config)
        # Its roles trust the functions' roles, which must exist by then.
        attachment.add_stack_dependency(control_plane)
        stacks.append(attachment)
    for stack in stacks:
        Tags.of(stack).add("app", "dovetail")
    if app.node.try_get_context("nag"):
        # The package is needed for the check only.
        from cdk_nag import AwsSolutionsChecks  # noqa: PLC0415

        Validations.of(app).add_plugins(AwsSolutionsChecks(app))
    return app


def main() -> int:
    """Synthesise; print a mistake of the user's in one line."""
    try:
        # The CDK command line says which Region it deploys to.
        require_partition(os.environ.get("CDK_DEFAULT_REGION", ""))
        build_app().synth()
    except (ConfigError, BundlingError) as error:
        sys.stderr.write(f"dovetail: {error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
