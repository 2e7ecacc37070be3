"""How to reach an embedded AWS API: address and key, and boto3 clients made of them."""

import functools
import secrets
import threading
from base64 import b32encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

ClientFor = Callable[[str], Any]
_own: list["Access"] = []


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Address and key of one server, as its ready file holds them.

    Attributes:
        url: Of the server, for example `http://127.0.0.1:4566`.
        key_id: The access key that may do everything, random for each server.
        secret: The secret access key.
    """

    url: str
    region: str
    key_id: str
    secret: str = field(repr=False)

    @classmethod
    def fresh(cls, url: str, region: str) -> Self:
        """Return access with a new random key."""
        key_id = f"AKIA{b32encode(secrets.token_bytes(10)).decode()}"
        return cls(url=url, region=region, key_id=key_id, secret=secrets.token_hex(20))

    @classmethod
    def read(cls, ready: Mapping[str, Any]) -> Self:
        return cls(**{name: str(ready[name]) for name in cls.__slots__})

    @property
    def ready(self) -> dict[str, str]:
        return {name: getattr(self, name) for name in self.__slots__}

    @property
    def environment(self) -> dict[str, str]:
        """Return the environment variables that SDKs and the `aws` command line read."""
        return {
            "AWS_ACCESS_KEY_ID": self.key_id,
            "AWS_SECRET_ACCESS_KEY": self.secret,
            "AWS_REGION": self.region,
            "AWS_DEFAULT_REGION": self.region,
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_ENDPOINT_URL": self.url,
        }


def use_access(access: Access) -> None:
    """Name the access to the server of this process, for clients that it makes itself."""
    _own[:] = [access]


def own_access() -> Access:
    return _own[0]


@functools.lru_cache(maxsize=4)
def clients_of(access: Access) -> ClientFor:
    """Return a function that gives one shared client for each service name; any thread may ask."""
    import boto3
    from botocore.config import Config

    session = boto3.session.Session(
        aws_access_key_id=access.key_id,
        aws_secret_access_key=access.secret,
        region_name=access.region,
    )
    config = Config(max_pool_connections=50)
    made: dict[str, Any] = {}
    making = threading.Lock()

    def client(service: str) -> Any:
        with making:
            if service not in made:
                made[service] = session.client(service, endpoint_url=access.url, config=config)
            return made[service]

    return client


def instances_of(ec2: Any, **asked: Any) -> list[Any]:
    """Return the instances that DescribeInstances shows, of all pages."""
    pages = ec2.get_paginator("describe_instances").paginate(**asked)
    rows = (row for page in pages for row in page["Reservations"])
    return [instance for row in rows for instance in row["Instances"]]
