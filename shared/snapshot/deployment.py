"""The command that deploys what a cluster is attached with."""

from typing import Final

# In a command: a value that only the reader knows.
DOLLARS: Final = "<dollars>"


def deploy_command(cluster: str, ceiling: float | str | None) -> str:
    """Return the command that deploys a cluster's attachment; other choices are given after it.

    Args:
        ceiling: Dollars per hour, as the attachment has them or as text; None for no ceiling.
    """
    most = "none" if ceiling is None else ceiling
    return f"npx cdk deploy --all -c clusters={cluster} -c max_price_per_hour={cluster}:{most}"
