"""What launches of no use are remembered."""

from datetime import timedelta

from shared.model.ec2.launches import Trial
from shared.nodes.brakes.trials import recent_trials, save_trial
from tests.fakes.clock import FakeClock
from tests.fakes.ledger import FakeLedger


def test_trials_are_kept_for_an_hour() -> None:
    ledger, clock = FakeLedger(), FakeClock()
    both = frozenset({"a" * 12, "b" * 12})
    save_trial(ledger, "test", Trial(plan_id="p1", launched_at=clock.now(), subjects=both))
    rest = Trial(
        plan_id="p1",
        launched_at=clock.now(),
        subjects=frozenset({"b" * 12}),
        provisioners=frozenset({"x", "y"}),
    )
    save_trial(ledger, "test", rest)
    assert recent_trials(ledger, "test", clock.now()) == (rest,)
    assert recent_trials(ledger, "other", clock.now()) == ()
    clock.advance(timedelta(hours=1))
    assert recent_trials(ledger, "test", clock.now()) == ()
