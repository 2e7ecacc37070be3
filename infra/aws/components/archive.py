"""The bucket of decisions and catalogue."""

from aws_cdk import Duration, RemovalPolicy
from aws_cdk import aws_s3 as s3
from constructs import Construct

from infra.aws.acknowledge import acknowledge

DECISION_DAYS = 30
# A decision names a base that is at most an hour older. S3 deletes at the midnight (UTC) after the
# days, in any order, and may be late: with two more days, no base is deleted before its decisions.
# https://docs.aws.amazon.com/AmazonS3/latest/userguide/intro-lifecycle-rules.html (2026-11-25)
BASE_DAYS = DECISION_DAYS + 2
# S3 deletes at the first midnight (UTC) after: an open launch is resumed or abandoned in minutes.
LAUNCH_DAYS = 1
# Overwritten each minute: an older copy is of a cluster or a release that is gone.
COPY_DAYS = 1


class Archive(Construct):
    """One private bucket: decisions, their bases, launches and copies expire, the catalogue stays.

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
                    ("ExpireBases", "bases/", BASE_DAYS),
                    ("ExpireLaunches", "launches/", LAUNCH_DAYS),
                    ("ExpireCopies", "copies/", COPY_DAYS),
                )
            ],
            removal_policy=RemovalPolicy.RETAIN if keep else RemovalPolicy.DESTROY,
        )
        acknowledge(
            self.bucket,
            "S1",
            "only our functions reach it; what they decide is in the objects and their logs",
        )
