"""EC2 and what belongs to it, for one cluster, under one of its roles."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from botocore.exceptions import ClientError

from shared.aws.ec2.machines import PAGE, SLOW_SPAN, Ec2Machines, paged, tag_filters
from shared.aws.ec2.parsing import (
    fleet_answer,
    image_of,
    image_request,
    subnets_of,
    term_filters,
)
from shared.aws.errors import code_of, translated
from shared.aws.session import Session
from shared.aws.ttl_cache import Recall
from shared.model.ec2.fleet_errors import ErrorKind, kind_of
from shared.model.ec2.launches import FleetAnswer, FleetError
from shared.model.ec2.selectors import Selector, SelectorTerm
from shared.model.errors import NotFoundError, UnauthorizedError
from shared.model.provisioner import NodeTemplate
from shared.ports import Clock, MachineImage, Site, Subnet

# Free addresses may be a minute old: EC2 says so itself when a subnet is full.
_SITE_SPAN: Final = timedelta(seconds=60)
_PARAMETERS: Final = 10
# Errors of the whole call that say what EC2 cannot supply: capacity comes with a status of 500.
_ANSWERS: Final = frozenset({ErrorKind.SHORTAGE, ErrorKind.QUOTA, ErrorKind.SUBNET})
_TEMPLATE_EXISTS: Final = "InvalidLaunchTemplateName.AlreadyExistsException"


class Ec2Cloud(Ec2Machines):
    """Implements shared.ports.CloudProvider.

    Arguments are those of Ec2Machines.
    """

    def __init__(self, session: Session, *, cluster: str, role: str, clock: Clock) -> None:
        super().__init__(session, cluster=cluster, role=role, clock=clock)
        self._clock = clock
        self._images: Recall[str, str | None] = Recall(SLOW_SPAN, clock)
        self._selected: Recall[Selector, tuple[MachineImage, ...]] = Recall(_SITE_SPAN, clock)
        self._subnets: Recall[Selector, tuple[Subnet, ...]] = Recall(_SITE_SPAN, clock)
        self._groups: Recall[Selector, tuple[str, ...]] = Recall(_SITE_SPAN, clock)
        self._zones: dict[str, str] = {}  # a subnet never moves
        self._templates: dict[str, bool] = {}  # name to whether it was there when last seen

    def site(self, template: NodeTemplate) -> Site:
        """Return the subnets and security groups a template's selectors find.

        A selector that is empty finds nothing. Answers may be a minute old.
        """
        subnets, groups = template.subnet_selector, template.security_group_selector
        return Site(
            subnets=self._subnets.get(subnets, lambda: self._find_subnets(subnets)),
            security_groups=self._groups.get(groups, lambda: self._find_groups(groups)),
        )

    def image_ids(self, parameters: Sequence[str]) -> Mapping[str, str]:
        """Return the AMI id for each SSM parameter name that exists."""
        unknown = [parameter for parameter in parameters if self._images.peek(parameter) is None]
        for names in paged(unknown, _PARAMETERS):
            with translated("ssm GetParameters"):
                answer = self._client("ssm").get_parameters(Names=names)
            found = {parameter["Name"]: parameter["Value"] for parameter in answer["Parameters"]}
            for name in names:
                self._images.put(name, found.get(name))
        kept = {parameter: self._images.peek(parameter) for parameter in sorted(set(parameters))}
        return {name: entry[0] for name, entry in kept.items() if entry is not None and entry[0]}

    def find_images(self, selector: Selector) -> tuple[MachineImage, ...]:
        """Return the AMIs that any term of a selector finds, each once, sorted by id.

        Answers may be a minute old; those of parameters ten minutes.
        """
        return self._selected.get(selector, lambda: self._find_images(selector))

    def ensure_launch_template(self, name: str, launch_data: Mapping[str, Any]) -> None:
        """Make the launch template unless one of that name exists."""
        if self._templates.get(name):
            return
        # One that a fleet call has missed is not looked for again: EC2 may still show it.
        if name in self._templates or not self._is_template(name):
            self._make_template(name, launch_data)
        self._templates[name] = True

    def launch_templates(self) -> tuple[tuple[str, datetime], ...]:
        """Return name and creation time of this cluster's launch templates, sorted by name."""
        found = self._pages(
            "describe_launch_templates", "LaunchTemplates", Filters=tag_filters(self._ours)
        )
        return tuple(
            sorted((row["LaunchTemplateName"], row["CreateTime"].astimezone(UTC)) for row in found)
        )

    def delete_launch_template(self, name: str) -> None:
        """Delete a launch template; gone already is fine."""
        self._templates.pop(name, None)
        try:
            with translated("ec2 DeleteLaunchTemplate"):
                self._client("ec2").delete_launch_template(LaunchTemplateName=name)
        except NotFoundError:
            return

    def create_fleet(self, request: Mapping[str, Any]) -> FleetAnswer:
        """Ask EC2 for instances with exactly this CreateFleet request.

        Raises:
            ThrottledError: EC2 asked to slow down; nothing was launched.
            UnavailableError: The outcome is unknown: look for instances by tag.
            NotFoundError: The launch template is gone.
        """
        # Before the call: nothing may fail once there are instances.
        zones = self._zones_of(subnets_of(request))
        try:
            with translated("ec2 CreateFleet"):
                response = self._ask_for_fleet(request)
        except NotFoundError:
            for config in request["LaunchTemplateConfigs"]:
                self._templates[config["LaunchTemplateSpecification"]["LaunchTemplateName"]] = False
            raise
        if isinstance(response, ClientError):
            error = response.response["Error"]
            return FleetAnswer(
                fleet_id="",
                instances=(),
                errors=(FleetError(code=code_of(response), message=str(error.get("Message", ""))),),
            )
        # The instances use addresses: the next read must show that.
        self._subnets.forget()
        return fleet_answer(response, request, zones)

    def _find_subnets(self, selector: Selector) -> tuple[Subnet, ...]:
        found = {
            Subnet(
                subnet_id=row["SubnetId"],
                zone=row["AvailabilityZone"],
                free_addresses=row["AvailableIpAddressCount"],
                zone_id=row.get("AvailabilityZoneId", ""),
            )
            for row in self._found(selector, "describe_subnets", "Subnets", "subnet-id")
        }
        self._zones.update({subnet.subnet_id: subnet.zone for subnet in found})
        return tuple(
            sorted(found, key=lambda entry: (entry.zone, -entry.free_addresses, entry.subnet_id))
        )

    def _find_groups(self, selector: Selector) -> tuple[str, ...]:
        rows = self._found(selector, "describe_security_groups", "SecurityGroups", "group-id")
        return tuple(sorted({row["GroupId"] for row in rows}))

    def _found(self, selector: Selector, operation: str, key: str, id_filter: str) -> Iterator[Any]:
        """Yield what each term of a selector finds."""
        for term in selector:
            yield from self._pages(operation, key, Filters=term_filters(term, id_filter))

    def _find_images(self, selector: Selector) -> tuple[MachineImage, ...]:
        now = self._clock.now()
        found = {
            image.image_id: image
            for term in map(self._with_ids, selector)
            if term is not None
            for row in self._pages("describe_images", "Images", **image_request(term))
            if (image := image_of(row, now)) is not None
        }
        return tuple(found[image_id] for image_id in sorted(found))

    def _with_ids(self, term: SelectorTerm) -> SelectorTerm | None:
        """Return a term with the ids that its parameters hold; None if there are none."""
        if not term.parameters:
            return term
        try:
            ids = tuple(sorted(set(self.image_ids(term.parameters).values())))
        except UnauthorizedError as error:
            text = f"{error}; deploy with image_parameters=<cluster>:<ARN>"
            raise UnauthorizedError(text, code=error.code, detail=error.detail) from error
        return replace(term, ids=ids, parameters=()) if ids else None

    def _zones_of(self, subnets: Sequence[str]) -> Mapping[str, str]:
        unknown = [subnet for subnet in subnets if subnet not in self._zones]
        for ids in paged(unknown, PAGE):
            by_id = [{"Name": "subnet-id", "Values": ids}]
            for row in self._pages("describe_subnets", "Subnets", Filters=by_id):
                self._zones[row["SubnetId"]] = row["AvailabilityZone"]
        return self._zones

    def _is_template(self, name: str) -> bool:
        by_name = [{"Name": "launch-template-name", "Values": [name]}]
        return any(self._pages("describe_launch_templates", "LaunchTemplates", Filters=by_name))

    def _make_template(self, name: str, launch_data: Mapping[str, Any]) -> None:
        tags = [{"Key": key, "Value": value} for key, value in sorted(self._ours.items())]
        with translated("ec2 CreateLaunchTemplate"):
            try:
                self._client("ec2").create_launch_template(
                    LaunchTemplateName=name,
                    LaunchTemplateData=launch_data,
                    TagSpecifications=[{"ResourceType": "launch-template", "Tags": tags}],
                )
            except ClientError as error:
                if code_of(error) != _TEMPLATE_EXISTS:
                    raise

    def _ask_for_fleet(self, request: Mapping[str, Any]) -> Any:
        """Return the response, or the error by which EC2 says that it cannot supply it."""
        try:
            return self._client("ec2").create_fleet(**request)
        except ClientError as error:
            if kind_of(code_of(error)) in _ANSWERS:
                return error
            raise
