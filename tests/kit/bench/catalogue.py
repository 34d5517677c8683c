"""All faults there are, by name; each module faults_*.py gives its own."""

import importlib
import pkgutil

import kit.bench
from kit.bench import Fault


def all_faults() -> dict[str, Fault]:
    """New ones of every module, by name. Raises ValueError when two have one name."""
    found: dict[str, Fault] = {}
    for module in pkgutil.iter_modules(kit.bench.__path__):
        if not module.name.startswith("faults_"):
            continue
        for fault in importlib.import_module(f"kit.bench.{module.name}").faults():
            if fault.name in found:
                raise ValueError(f"two faults are named {fault.name}")
            found[fault.name] = fault
    return dict(sorted(found.items()))
