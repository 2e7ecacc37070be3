"""The one part inside the cluster: watches, and says on the event bus what happened."""
