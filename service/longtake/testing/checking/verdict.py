"""The verdict: all checkers over one body of evidence."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

import msgspec

from longtake.telemetry.recorder import Op
from longtake.testing.checking import (
    callbacks,
    cycles,
    effects,
    folded,
    linearizable,
    log,
    money,
    monotonic,
    observed,
    roles,
    set_full,
    tail_ok,
    transport,
)
from longtake.testing.checking.found import Checker, Evidence, Violation
from longtake.testing.checking.store import StoreDump
from longtake.testing.checking.witness import WitnessLine

CHECKERS: dict[str, Checker] = {
    "set_full": set_full.check,
    "log": log.check,
    "money": money.check,
    "effects": effects.check,
    "total_queue": effects.check_witness,
    "observed": observed.check,
    "callbacks": callbacks.check,
    "transport": transport.check,
    "folded": folded.check,
    "roles": roles.check,
    "monotonic": monotonic.check,
    "linearizable": linearizable.check,
    "cycles": cycles.check,
    "tail_ok": tail_ok.check,
}
"""By name, so that one can be left out."""

PRINTED_MAX = 20


class Verdict(msgspec.Struct, kw_only=True):
    """What was found, and how much was looked at."""

    violations: list[Violation]
    counters: dict[str, int]

    @property
    def ok(self) -> bool:
        """Nothing was found."""
        return not self.violations

    @property
    def invariants(self) -> set[str]:
        """Which invariants are broken."""
        return {violation.invariant for violation in self.violations}

    def text(self) -> str:
        """For people: the verdict, the counters, the violations with their traces."""
        head = "no violations" if self.ok else f"{len(self.violations)} VIOLATIONS"
        lines = [head, "  ".join(f"{name}={count}" for name, count in self.counters.items())]
        lines += [str(violation) for violation in self.violations[:PRINTED_MAX]]
        if len(self.violations) > PRINTED_MAX:
            rest = Counter(violation.invariant for violation in self.violations[PRINTED_MAX:])
            lines.append("and more: " + ", ".join(f"{name} x{count}" for name, count in sorted(rest.items())))
        return "\n".join(lines)


def judge(
    history: Sequence[Op],
    store: StoreDump,
    witness: Sequence[WitnessLine] = (),
    *,
    ok_floor: float = 0.0,
    fault_windows: Sequence[tuple[float, float]] = (),
    funded: Mapping[tuple[str, str], int] | None = None,
    all_clients: bool = True,
    settled: bool = True,
    restore_may_lose: bool = False,
    without: Collection[str] = (),
) -> Verdict:
    """Judge what clients were told, what the store holds and what the provider saw.

    `ok_floor`: the least share of calls of each client that were answered ok outside `fault_windows` (seconds of the
    history's clock; `fault` ops of the history are added). `funded`: credits put on each (tenant, account); balances are
    checked when it is given. `all_clients`: every command of the store was sent by somebody in the history.
    `settled`: the service is at rest, so nothing may be pending. `restore_may_lose`: what was acknowledged
    before a restore may be gone. `without`: names of CHECKERS that are left out.
    """
    evidence = Evidence(
        history,
        store,
        witness,
        ok_floor=ok_floor,
        fault_windows=fault_windows,
        funded=funded,
        all_clients=all_clients,
        settled=settled,
        restore_may_lose=restore_may_lose,
    )
    violations = [
        violation for name, check in CHECKERS.items() if name not in without for violation in check(evidence)
    ]
    return Verdict(violations=violations, counters=counters(evidence))


def counters(evidence: Evidence) -> dict[str, int]:
    """How much there was to judge."""
    sets = set_full.sort_out(evidence)
    types = Counter(call.type for call in evidence.calls)
    store = evidence.store
    return {
        "ops": len(evidence.calls),
        "ok": types["ok"],
        "fail": types["fail"],
        "info": types["info"],
        "attempts": len(sets.attempts),
        "acknowledged": len(sets.acknowledged),
        "read": len(sets.read),
        "recovered": len(sets.recovered),
        "unknown": len(sets.unknown),
        "lost": len(sets.lost),
        "unexpected": len(sets.unexpected),
        "decided": sum(call.f == "decide" and call.type == "ok" for call in evidence.calls),
        "reported": sum(call.f == "report" and call.type == "ok" for call in evidence.calls),
        "runs": len(store.runs),
        "events": len(store.events),
        "effects": len(store.effects),
        "claims": len(store.claims),
        "ledger": len(store.ledger),
        "inbox": len(store.inbox),
        "witness": len(evidence.witness),
        "charged": sum(line.charged for line in evidence.witness),
        "restores": len(evidence.restores),
        "passed_over": evidence.passed_over,
    }
