"""The embedded AWS API: moto, repaired, with the services around it that really run things.

Start it with `python -m infra.local.aws`, or as `EmbeddedAws()` from Python. It cannot show:
real capacity, IAM resources and conditions, quotas, latencies and duplicates of EventBridge and
SQS, the CPU share of a function. Alarms and bucket policies are kept, not acted on.
"""

from infra.local.aws.control import ACCOUNT_ID, Control, ControlError
from infra.local.aws.embedded import EmbeddedAws, call_verb
from infra.local.aws.service import Options

__all__ = ["ACCOUNT_ID", "Control", "ControlError", "EmbeddedAws", "Options", "call_verb"]
