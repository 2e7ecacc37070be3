"""The adapters of a process that plans and launches; wiring.py has the others."""

import functools
import hashlib
from datetime import timedelta

from shared.aws.copies import BucketCopies
from shared.aws.decisions import BucketDecisions
from shared.aws.ec2.catalog import BucketCatalog
from shared.aws.ec2.cloud import Ec2Cloud
from shared.aws.ledger.ledger import DynamoLedger
from shared.kube.cluster import KubeCluster
from shared.kube.kept.stored import CopyStoreFactory, copy_stores, no_copy_store
from shared.kube.rivals import KubeRivals
from shared.model.policy import PreferencePolicy
from shared.model.provisioner import MetadataBound
from shared.model.values import replace
from shared.ports import ClusterEndpoint, ClusterPorts
from shared.runtime.logs_and_metrics import count, logger
from shared.runtime.threads import Threads
from shared.runtime.wiring import (
    ActingRole,
    Connections,
    ReadEndpoint,
    Wiring,
    print_note,
    report_foreign_row,
)
from shared.settings import ClusterAttachment, FunctionSettings, ProvisionSettings

_LEASE = timedelta(seconds=50)


class ProvisioningWiring(Wiring):
    """Adapters of one process, created on first use and kept for its lifetime."""

    def __init__(self, settings: FunctionSettings, role: ActingRole) -> None:
        super().__init__(settings, role)
        self._clusters = Connections(self._connect_cluster)

    @functools.cached_property
    def catalog(self) -> BucketCatalog:
        """The catalogue of the Region."""
        notice = print_note if self.role == ActingRole.OWN else _catalogue_notice
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
            notice=report_foreign_row,
        )

    def ports(self, cluster: str) -> ClusterPorts:
        """Return the ports of one cluster, connected under the process's acting role.

        Raises:
            NotFoundError: If no such cluster is attached.
            UnavailableError: If the role is missing, until the cluster's stack is deployed again.
        """
        ports = self._clusters.to(self.registry.one(cluster))
        return replace(ports, brakes=self.registry.brakes(cluster))

    def _connect_cluster(self, attachment: ClusterAttachment) -> tuple[ClusterPorts, ReadEndpoint]:
        cluster, role = attachment.name, self.role_arn(attachment)
        cloud = Ec2Cloud(self.session, cluster=cluster, role=role, clock=self.clock)
        endpoint = cloud.endpoint()
        api = self.api(endpoint, role)
        ports = ClusterPorts(
            cluster=KubeCluster(
                cluster, api, now=self.clock.now, copy_store_of=self._copy_store_of(endpoint)
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
            executor=Threads(),
            rivals=KubeRivals(api, self.clock.now, self.settings.autoscaler_namespaces.split(",")),
        )
        return ports, cloud.endpoint

    def _copy_store_of(self, endpoint: ClusterEndpoint) -> CopyStoreFactory:
        """Return the stores of pod and node copies; commands of users read no copies.

        Each EKS cluster has its own endpoint and certificate authority, even one that is recreated
        under the same name.
        """
        if self.role == ActingRole.OWN:
            return no_copy_store
        text = f"{endpoint.endpoint}\n{endpoint.certificate_authority}"
        return copy_stores(
            BucketCopies(self.session, bucket=self.settings.bucket),
            cluster=endpoint.name,
            server=hashlib.sha256(text.encode()).hexdigest(),
        )


def _catalogue_notice(text: str) -> None:
    """Log and count that a catalogue other than the bucket's newest is used, or none."""
    logger.warning(text)
    count("CatalogFallbacks", 1)
