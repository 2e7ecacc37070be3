"""boto3 clients for the embedded AWS API."""

from collections.abc import Callable
from typing import Any

ClientFor = Callable[[str], Any]


def clients_of(url: str, region: str) -> ClientFor:
    """Return a function that gives one shared client for each service name.

    The keys are placeholders, as the whole API runs on this machine only.
    """
    import boto3
    from botocore.config import Config

    session = boto3.session.Session(
        aws_access_key_id="local",
        aws_secret_access_key="local",  # noqa: S106 - a placeholder, nothing checks it
        region_name=region,
    )
    config = Config(max_pool_connections=50)
    made: dict[str, Any] = {}

    def client(service: str) -> Any:
        if service not in made:
            made[service] = session.client(service, endpoint_url=url, config=config)
        return made[service]

    return client
