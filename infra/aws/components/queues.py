"""The queue of wake-ups for provision, and the queues for what failed."""

from aws_cdk import Duration
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra.aws.acknowledge import acknowledge

# After five failures the cause is a defect of Dovetail or of the message, not chance.
MAX_RECEIVES = 5


class Queues(Construct):
    """The wake queue and two dead-letter queues.

    Attributes:
        wake: Wake-ups: provision is called for them.
        wake_failures: Wake-ups that failed `MAX_RECEIVES` times.
        dead_letters: Invalid records, events that could not be delivered to a target, and
            asynchronous calls that failed for good.
    """

    def __init__(
        self, scope: Construct, construct_id: str, *, consumer_timeout: Duration, window: Duration
    ) -> None:
        super().__init__(scope, construct_id)
        self.dead_letters = _queue(self, "DeadLetters", retention=Duration.days(14))
        acknowledge(
            self.dead_letters, "SQS3", "it is where events and calls end that failed for good"
        )
        self.wake_failures = _queue(self, "WakeFailures", retention=Duration.days(14))
        self.wake = sqs.Queue(
            self,
            "Wake",
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=True,
            retention_period=Duration.days(1),
            # AWS recommends six times the consumer's timeout plus the window.
            # Source: https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html
            # (2026-08).
            visibility_timeout=Duration.seconds(
                6 * int(consumer_timeout.to_seconds()) + int(window.to_seconds())
            ),
            dead_letter_queue=sqs.DeadLetterQueue(
                queue=self.wake_failures, max_receive_count=MAX_RECEIVES
            ),
        )


def _queue(scope: Construct, construct_id: str, *, retention: Duration) -> sqs.Queue:
    return sqs.Queue(
        scope,
        construct_id,
        encryption=sqs.QueueEncryption.SQS_MANAGED,
        enforce_ssl=True,
        retention_period=retention,
    )
