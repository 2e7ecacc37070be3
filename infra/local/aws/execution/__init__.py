"""Running Lambda functions: environments, their pool, invocations, logs and metrics."""
