"""The command that deploys a cluster's attachment."""

from typing import Final

# A placeholder in a command for a value that only the reader knows.
DOLLARS: Final = "<dollars>"


def deploy_command(cluster: str, ceiling: float | str | None) -> str:
    """Return the command that deploys a cluster's attachment; callers append other options.

    Args:
        ceiling: Dollars per hour, as a number or as text; None for no ceiling.
    """
    most = "none" if ceiling is None else ceiling
    return f"npx cdk deploy --all -c clusters={cluster} -c max_price_per_hour={cluster}:{most}"
