"""The bucket of decisions and catalogue."""

from aws_cdk import Duration, RemovalPolicy
from aws_cdk import aws_s3 as s3
from constructs import Construct

from infra.aws.acknowledgements import acknowledge

DECISION_DAYS = 30
# S3 deletes at the first midnight (UTC) after: an open launch is resumed or abandoned in minutes.
LAUNCH_DAYS = 1


class Archive(Construct):
    """One private bucket; `decisions/` and, sooner, `launches/` expire, `catalog/` stays.

    Attributes:
        bucket: The bucket.
    """

    def __init__(self, scope: Construct, construct_id: str, *, keep: bool) -> None:
        super().__init__(scope, construct_id)
        self.bucket = s3.Bucket(
            self,
            "Bucket",
            encryption=s3.BucketEncryption.S3_MANAGED,
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            enforce_ssl=True,
            object_ownership=s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
            lifecycle_rules=[
                s3.LifecycleRule(
                    id=rule_id,
                    prefix=prefix,
                    expiration=Duration.days(days),
                    abort_incomplete_multipart_upload_after=Duration.days(1),
                )
                for rule_id, prefix, days in (
                    ("ExpireDecisions", "decisions/", DECISION_DAYS),
                    ("ExpireLaunches", "launches/", LAUNCH_DAYS),
                )
            ],
            removal_policy=RemovalPolicy.RETAIN if keep else RemovalPolicy.DESTROY,
        )
        acknowledge(
            self.bucket,
            "S1",
            "only our functions reach it; what they decide is in the objects and their logs",
        )
