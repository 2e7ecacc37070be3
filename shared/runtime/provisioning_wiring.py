"""The adapters of a process that plans and launches, besides those of one that acts on nodes."""

import dataclasses
import functools
import hashlib
from datetime import timedelta

from shared.aws.copies import BucketCopies
from shared.aws.decisions import BucketDecisions
from shared.aws.ec2.catalog import BucketCatalog
from shared.aws.ec2.cloud import Ec2Cloud
from shared.aws.ledger.ledger import DynamoLedger
from shared.kube.cluster import KubeCluster
from shared.kube.kept.stored import ShelfOf, no_shelf, shelves
from shared.kube.other_autoscalers import KubeRivals
from shared.model.policy import PreferencePolicy
from shared.model.provisioner import MetadataBound
from shared.ports import ClusterEndpoint, ClusterPorts
from shared.runtime.observability import count, logger
from shared.runtime.threads import Threads
from shared.runtime.wiring import (
    AskEndpoint,
    Connections,
    Right,
    Wiring,
    foreign_row,
    tell_person,
)
from shared.settings import ClusterAttachment, FunctionSettings, ProvisionSettings

_LEASE = timedelta(seconds=50)


class ProvisioningWiring(Wiring):
    """Adapters of one process, made when first asked for and kept for its life."""

    def __init__(self, settings: FunctionSettings, right: Right) -> None:
        super().__init__(settings, right)
        self._clusters = Connections(self._connect_cluster)

    @functools.cached_property
    def catalog(self) -> BucketCatalog:
        """What can be bought in the Region."""
        notice = tell_person if self.right == Right.OWN else _catalogue_notice
        return BucketCatalog(
            self.session, bucket=self.settings.bucket, clock=self.clock, notice=notice
        )

    @functools.cached_property
    def ledger(self) -> DynamoLedger:
        """The ledger, with leases and what clusters share."""
        settings = self.settings
        span = settings.lease_span if isinstance(settings, ProvisionSettings) else _LEASE
        return DynamoLedger(
            self.session,
            table=settings.table,
            clock=self.clock,
            lease_span=span,
            burst=settings.fleet_burst,
            per_second=settings.fleet_per_second,
            notice=foreign_row,
        )

    def ports(self, cluster: str) -> ClusterPorts:
        """Return the ports of one cluster, connected under the role of the process's right.

        Raises:
            NotFoundError: If no such cluster is attached.
            UnavailableError: If the role is missing, until the cluster's stack is deployed again.
        """
        ports = self._clusters.to(self.registry.one(cluster))
        return dataclasses.replace(ports, brakes=self.registry.brakes(cluster))

    def _connect_cluster(self, attachment: ClusterAttachment) -> tuple[ClusterPorts, AskEndpoint]:
        cluster, role = attachment.name, self.role(attachment)
        cloud = Ec2Cloud(self.session, cluster=cluster, role=role, clock=self.clock)
        endpoint = cloud.endpoint()
        api = self.api(endpoint, role)
        ports = ClusterPorts(
            cluster=KubeCluster(
                cluster, api, now=self.clock.now, shelf_of=self._shelf_of(endpoint)
            ),
            cloud=cloud,
            catalog=self.catalog,
            ledger=self.ledger,
            decisions=BucketDecisions(self.session, bucket=self.settings.bucket),
            outbox=self.outbox,
            clock=self.clock,
            instance_profile=attachment.instance_profile,
            node_profiles=attachment.node_profiles,
            metadata=MetadataBound(
                hop_limit=attachment.metadata_hop_limit,
                tokens_required=attachment.metadata_tokens == "required",
            ),
            preference_policy=PreferencePolicy(attachment.preference_policy),
            daemonset_namespaces=frozenset(self.settings.daemonset_namespaces.split(",")),
            crew=Threads(),
            rivals=KubeRivals(api, self.clock.now, self.settings.autoscaler_namespaces.split(",")),
        )
        return ports, cloud.endpoint

    def _shelf_of(self, endpoint: ClusterEndpoint) -> ShelfOf:
        """Return where copies of pods and nodes lie; people's own commands read no copies.

        Each cluster of EKS has an endpoint and a certificate authority of its own, also a new one
        of a former name.
        """
        if self.right == Right.OWN:
            return no_shelf
        text = f"{endpoint.endpoint}\n{endpoint.certificate_authority}"
        return shelves(
            BucketCopies(self.session, bucket=self.settings.bucket),
            cluster=endpoint.name,
            server=hashlib.sha256(text.encode()).hexdigest(),
        )


def _catalogue_notice(text: str) -> None:
    """Log and count that another catalogue than the bucket's newest is used, or none."""
    logger.warning(text)
    count("CatalogFallbacks", 1)
