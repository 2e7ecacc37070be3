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


def test_shared_holds_only_what_a_function_or_the_forwarder_loads() -> None:
    """What people's commands alone need stands with them, in functions/cli."""
    graph = grimp.build_graph("functions", "shared", cache_dir=None)
    started = {name for name in graph.modules if name.endswith(STARTED)}
    deployed = {name for name in started if not name.startswith("functions.cli.")}
    reached = set[str]().union(*(graph.find_upstream_modules(name) for name in deployed))
    packages = {".".join(name.split(".")[:end]) for name in reached for end in range(1, 6)}
    assert not [
        name for name in graph.modules - reached - packages if name.split(".")[0] == "shared"
    ]
