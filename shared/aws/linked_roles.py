"""The service-linked roles that EC2 needs of an account: made where they are missing."""

from shared.aws.errors import translated
from shared.aws.session import Session
from shared.model.errors import NotFoundError
from shared.settings import LINKED_ROLES


def make_linked_roles(session: Session) -> tuple[str, ...]:
    """Make the service-linked roles that the account lacks; return their names, sorted.

    Each is looked for first: to make one again is an error, and would be one in the account's
    trail.
    Source: https://docs.aws.amazon.com/IAM/latest/APIReference/API_CreateServiceLinkedRole.html
    (2026-11).

    Raises:
        UnauthorizedError: If a policy of the organisation refuses it.
        AutoscalerError: If IAM cannot be asked.
    """
    iam = session.client("iam")
    made = []
    for name, service in sorted(LINKED_ROLES.items()):
        try:
            with translated(f"iam GetRole {name}"):
                iam.get_role(RoleName=name)
        except NotFoundError:
            with translated(f"iam CreateServiceLinkedRole {service}"):
                iam.create_service_linked_role(AWSServiceName=service)
            made.append(name)
    return tuple(made)
