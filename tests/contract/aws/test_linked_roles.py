"""The service-linked roles of EC2, made in an account that lacks them."""

import pytest
from moto.iam.models import SERVICE_NAME_CONVERSION

from shared.aws.linked_roles import make_linked_roles
from shared.aws.session import Session
from shared.model.errors import UnauthorizedError
from tests.contract.aws.canned import canned

FLEET, SPOT = "AWSServiceRoleForEC2Fleet", "AWSServiceRoleForEC2Spot"


@pytest.fixture(autouse=True)
def named_as_iam_does(monkeypatch: pytest.MonkeyPatch) -> None:
    for service, name in (("ec2fleet", "EC2Fleet"), ("spot", "EC2Spot")):
        monkeypatch.setitem(SERVICE_NAME_CONVERSION, service, name)


def test_the_roles_that_are_missing_are_made(aws: Session) -> None:
    assert make_linked_roles(aws) == (FLEET, SPOT)
    path = aws.client("iam").get_role(RoleName=SPOT)["Role"]["Path"]
    assert path == "/aws-service-role/spot.amazonaws.com/"


def test_a_role_that_exists_is_not_made_again(aws: Session) -> None:
    aws.client("iam").create_service_linked_role(AWSServiceName="spot.amazonaws.com")
    with canned(aws, "iam", "CreateServiceLinkedRole") as calls:
        assert make_linked_roles(aws) == (FLEET,)
        assert make_linked_roles(aws) == ()
    assert len(calls) == 1


def test_a_refusal_by_the_organisation_is_reported(aws: Session) -> None:
    with (
        canned(aws, "iam", "CreateServiceLinkedRole", (403, "AccessDenied")),
        pytest.raises(UnauthorizedError, match=r"iam CreateServiceLinkedRole ec2fleet\.amazonaws"),
    ):
        make_linked_roles(aws)
