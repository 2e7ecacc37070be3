"""Every module is there for something that runs."""

import grimp

# What AWS Lambda, the forwarder's pod and the command line start.
STARTED = (".handler", ".__main__", "cli.commands")


def test_every_module_is_imported_by_something_that_runs() -> None:
    graph = grimp.build_graph("functions", "shared", cache_dir=None)
    started = {name for name in graph.modules if name.endswith(STARTED)}
    reached = started.union(*(graph.find_upstream_modules(name) for name in started))
    packages = {".".join(name.split(".")[:end]) for name in reached for end in range(1, 6)}
    assert not graph.modules - reached - packages
