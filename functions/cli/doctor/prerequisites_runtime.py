"""The runtime of `dovetail doctor --prerequisites`, with its user's permissions."""

from collections.abc import Callable
from datetime import timedelta

from functions.cli.doctor.aws_prerequisites import AwsAccount
from functions.cli.doctor.kube_prerequisites import KubePrerequisites
from functions.cli.doctor.prerequisite_ports import ClusterPrerequisites
from functions.cli.doctor.prerequisites import Prerequisites
from shared.aws.clusters import ClusterRegistry
from shared.aws.ec2.cloud import Ec2Cloud
from shared.aws.eks_token import EksToken
from shared.aws.session import Session
from shared.kube.connection import connect_endpoint
from shared.runtime.system import SystemClock, region
from shared.settings import AUTOSCALER_NAMESPACES

_ATTEMPTS = 3
_TIMEOUT = timedelta(seconds=15)


class PrerequisitesRuntime:
    """The services of clusters, for people before anything is deployed.

    Args:
        parameters: Path of the SSM parameters that hold the attachments.
    """

    def __init__(self, parameters: str) -> None:
        self._clock = SystemClock()
        self._session = Session(region=region(), api_timeout=_TIMEOUT, attempts=_ATTEMPTS)
        self._registry = ClusterRegistry(self._session, path=parameters, clock=self._clock)

    def require_caller(self) -> None:
        """Check that AWS knows the caller.

        Raises:
            AutoscalerError: If there are no credentials, they have expired, or AWS does not answer.
        """
        self._session.require_caller()

    def clusters(self) -> tuple[str, ...]:
        """Return the names of all attached clusters, sorted."""
        return self._registry.names()

    def service(self, cluster: str) -> Prerequisites:
        """Return the service of one cluster, attached or not."""
        account = AwsAccount(self._session, cluster=cluster, attached=self._registry.one)
        return Prerequisites(cluster, account, self._connector(cluster))

    def _connector(self, cluster: str) -> Callable[[], ClusterPrerequisites]:
        def connect() -> ClusterPrerequisites:
            cloud = Ec2Cloud(self._session, cluster=cluster, role="", clock=self._clock)
            endpoint = cloud.endpoint()
            token = EksToken(self._session, cluster=cluster, role="", clock=self._clock)
            api = connect_endpoint(
                endpoint.endpoint, endpoint.certificate_authority, token, timeout=_TIMEOUT
            )
            return KubePrerequisites(api, self._clock.now, AUTOSCALER_NAMESPACES.split(","))

        return connect
