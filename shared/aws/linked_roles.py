"""Finds and creates the service-linked roles that EC2 needs in an account."""

from collections.abc import Mapping

from shared.aws.errors import translated
from shared.aws.session import Session
from shared.model.errors import NotFoundError
from shared.settings import LINKED_ROLES


def missing_linked_roles(session: Session) -> Mapping[str, str]:
    """Return the service-linked roles that the account lacks: name to service, sorted.

    Raises:
        AutoscalerError: If IAM cannot be read.
    """
    iam, missing = session.client("iam"), {}
    for name, service in sorted(LINKED_ROLES.items()):
        try:
            with translated(f"iam GetRole {name}"):
                iam.get_role(RoleName=name)
        except NotFoundError:
            missing[name] = service
    return missing


def make_linked_roles(session: Session) -> tuple[str, ...]:
    """Create the service-linked roles that the account lacks; return their names, sorted.

    Existing roles are read first: creating one again is an error, also in CloudTrail.
    Source: https://docs.aws.amazon.com/IAM/latest/APIReference/API_CreateServiceLinkedRole.html
    (2026-11).

    Raises:
        UnauthorizedError: If a policy of the organization refuses it.
        AutoscalerError: If IAM cannot be called.
    """
    missing = missing_linked_roles(session)
    for service in missing.values():
        with translated(f"iam CreateServiceLinkedRole {service}"):
            session.client("iam").create_service_linked_role(AWSServiceName=service)
    return tuple(missing)
