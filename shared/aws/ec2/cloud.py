"""EC2 and SSM parameters for one cluster, under one of its roles."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from botocore.exceptions import ClientError
from typing_extensions import override

from shared.aws.ec2.fleets_and_images import (
    fleet_answer,
    image_of,
    image_request,
    subnets_of,
    term_filters,
)
from shared.aws.ec2.instances import PAGE, SLOW_SPAN, Ec2Instances, paged, tag_filters
from shared.aws.errors import error_code, translated
from shared.aws.session import Session
from shared.aws.ttl_cache import TtlCache
from shared.model.ec2.fleet_errors import ErrorKind, kind_of
from shared.model.ec2.launches import FleetAnswer, FleetError
from shared.model.ec2.selectors import Selector, SelectorTerm
from shared.model.errors import NotFoundError, UnauthorizedError
from shared.model.provisioner import NodeTemplate
from shared.model.values import replace
from shared.ports import Clock, CloudProvider, MachineImage, Site, Subnet

# Free addresses may be a minute old: EC2 returns an error when a subnet is full.
_SITE_SPAN: Final = timedelta(seconds=60)
_PARAMETERS: Final = 10
# Errors of the whole call about what EC2 cannot supply: those of capacity have status 500.
_ANSWERS: Final = frozenset({ErrorKind.SHORTAGE, ErrorKind.QUOTA, ErrorKind.SUBNET})
_TEMPLATE_EXISTS: Final = "InvalidLaunchTemplateName.AlreadyExistsException"


class Ec2Cloud(Ec2Instances, CloudProvider):
    """Implements shared.ports.CloudProvider.

    Arguments are those of Ec2Instances.
    """

    def __init__(self, session: Session, *, cluster: str, role: str, clock: Clock) -> None:
        super().__init__(session, cluster=cluster, role=role, clock=clock)
        self._clock = clock
        self._images: TtlCache[str, str | None] = TtlCache(SLOW_SPAN, clock)
        self._selected: TtlCache[Selector, tuple[MachineImage, ...]] = TtlCache(_SITE_SPAN, clock)
        self._subnets: TtlCache[Selector, tuple[Subnet, ...]] = TtlCache(_SITE_SPAN, clock)
        self._groups: TtlCache[Selector, tuple[str, ...]] = TtlCache(_SITE_SPAN, clock)
        self._zones: dict[str, str] = {}  # a subnet never moves
        self._templates: dict[str, bool] = {}  # name to whether it existed at the last call

    @override
    def site(self, template: NodeTemplate) -> Site:
        """An empty selector matches nothing. Answers may be a minute old."""
        subnets, groups = template.subnet_selector, template.security_group_selector
        return Site(
            subnets=self._subnets.get(subnets, lambda: self._find_subnets(subnets)),
            security_groups=self._groups.get(groups, lambda: self._find_groups(groups)),
        )

    @override
    def image_ids(self, parameters: Sequence[str]) -> Mapping[str, str]:
        unknown = [parameter for parameter in parameters if self._images.peek(parameter) is None]
        for names in paged(unknown, _PARAMETERS):
            with translated("ssm GetParameters"):
                answer = self._client("ssm").get_parameters(Names=names)
            found = {parameter["Name"]: parameter["Value"] for parameter in answer["Parameters"]}
            for name in names:
                self._images.put(name, found.get(name))
        kept = {parameter: self._images.peek(parameter) for parameter in sorted(set(parameters))}
        return {name: entry[0] for name, entry in kept.items() if entry is not None and entry[0]}

    @override
    def find_images(self, selector: Selector) -> tuple[MachineImage, ...]:
        """Answers may be a minute old; values of parameters ten minutes."""
        return self._selected.get(selector, lambda: self._find_images(selector))

    @override
    def ensure_launch_template(self, name: str, launch_data: Mapping[str, Any]) -> None:
        if self._templates.get(name):
            return
        # After a fleet call did not find it, it is created without a check: EC2 may still show it.
        if name in self._templates or not self._is_template(name):
            self._make_template(name, launch_data)
        self._templates[name] = True

    @override
    def launch_templates(self) -> tuple[tuple[str, datetime], ...]:
        found = self._pages(
            "describe_launch_templates", "LaunchTemplates", Filters=tag_filters(self._ours)
        )
        return tuple(
            sorted((row["LaunchTemplateName"], row["CreateTime"].astimezone(UTC)) for row in found)
        )

    @override
    def delete_launch_template(self, name: str) -> None:
        self._templates.pop(name, None)
        try:
            with translated("ec2 DeleteLaunchTemplate"):
                self._client("ec2").delete_launch_template(LaunchTemplateName=name)
        except NotFoundError:
            return

    @override
    def create_fleet(self, request: Mapping[str, Any]) -> FleetAnswer:
        # Before the call: nothing may fail once instances are launched.
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
                errors=(
                    FleetError(code=error_code(response), message=str(error.get("Message", ""))),
                ),
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
        """Yield the rows that each term of a selector matches."""
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
        """Return a term with the ids in its parameters; None if there are none."""
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
                if error_code(error) != _TEMPLATE_EXISTS:
                    raise

    def _ask_for_fleet(self, request: Mapping[str, Any]) -> Any:
        """Return the response, or the error if EC2 cannot supply the request."""
        try:
            return self._client("ec2").create_fleet(**request)
        except ClientError as error:
            if kind_of(error_code(error)) in _ANSWERS:
                return error
            raise
