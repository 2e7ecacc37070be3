"""EventBridge: taking events, matching rules, delivering to targets, schedules."""
