"""What may happen in a small world: every act of the protocol that a state allows, with the state it leads to.

A fair act happens sooner or later wherever it stays possible; everything else is drawn from a budget, or is somebody's
choice. Leaves to others: how an act is carried out (exhaustive_machine.py), what the provider says (exhaustive_outside.py).
"""

import uuid
from collections.abc import Iterator
from itertools import chain

import msgspec

from longtake.contracts.outcomes import Succeeded
from longtake.testing.exhaustive_machine import Broken, Machine
from longtake.testing.exhaustive_outside import answers
from longtake.testing.exhaustive_state import Held, Look, Node, Slow, coming
from longtake.testing.exhaustive_worlds import Budget

ACTION_OF = {
    "cancel": "cancel_generation", "retry": "retry_generation", "pause": "pause_generation",
    "resume": "resume_generation", "provide_input": "provide_generation_input",
}  # fmt: skip


class Move(msgspec.Struct, frozen=True):
    """One act."""

    label: str
    node: Node
    fair: bool = True


def spend(budget: Budget, name: str) -> Budget | None:
    """The budget after one more of these; None when it is used up."""
    left = getattr(budget, name)
    return msgspec.structs.replace(budget, **{name: left - 1}) if left else None


class Moves:
    """The acts of one machine."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._repeated: set[tuple[str, bytes]] = set()
        """Commands that were said twice, with the history that the first left."""

    def of(self, node: Node) -> Iterator[Move]:
        """Every act that the state allows."""
        acting = chain(
            self._deliver(node),
            self._work(node),
            self._dispatch(node),
            self._write_late(node),
            self._relay(node),
            self._sweep(node),
        )
        busy = False
        for move in acting:
            busy |= move.fair
            yield move
        yield from self._die(node)
        yield from self._outside(node)
        yield from self._wishes(node)
        yield from self._lose(node)
        yield from self._tick(node, busy=busy)

    # --- workers --------------------------------------------------------------------------------------------------------

    def _deliver(self, node: Node) -> Iterator[Move]:
        free = next((index for index, held in enumerate(node.workers) if held is None), None)
        if free is None:
            return
        machine = self._machine
        for work in sorted(node.work):
            effect = machine.claim(node, work, f"w{free}")
            what = self._name(node, work[0])
            held = None if effect is None else Held(effect=effect)
            after = machine.after(node, work=node.work - {work}, workers=_put(node, free, held))
            yield Move(f"w{free} claims {what}" if held else f"w{free} finds {what} taken", after)
            if held is None:
                continue
            # Two free workers are one as good as the other, and so are the two faults: the message comes again.
            if (less := spend(node.budget, "duplicate")) is not None:
                again = msgspec.structs.replace(after, work=node.work, budget=less)
                yield Move(f"w{free} claims {what}, whose message comes again", again, fair=False)
            if (less := spend(node.budget, "trouble")) is not None:
                dead = msgspec.structs.replace(after, work=node.work, workers=node.workers, budget=less)
                yield Move(f"w{free} claims {what} and dies before it acks", dead, fair=False)

    def _work(self, node: Node) -> Iterator[Move]:
        for index, held in enumerate(node.workers):
            if held is None:
                continue
            if held.stage == "answered":
                yield from self._report(node, index, held)
            elif held.stage == "claimed" and self._calls_out(held):
                opened = self._machine.open_call(node, held.effect)
                stays = msgspec.structs.replace(held, stage="open") if opened else None
                after = self._machine.after(node, workers=_put(node, index, stays))
                what = "opens the call of" if opened else "may not call for"
                yield Move(f"w{index} {what} {_of(held)}", after)
            else:
                yield from self._act(node, index, held)

    def _calls_out(self, held: Held) -> bool:
        if held.effect.kind not in ("execute", "compensate"):
            return False
        return self._machine.app.activities[held.effect.activity].calls_out

    def _act(self, node: Node, index: int, held: Held) -> Iterator[Move]:
        facts = self._machine.app.activities[held.effect.activity].facts()
        for said in answers(node, held.effect, facts, calls_out=self._calls_out(held)):
            if said.taken is not None and not self._machine.was_written(node, said.taken):
                raise Broken("I13", f"{_of(held)} is asked for without a committed effect")
            budget: Budget | None = node.budget
            if said.costs is not None:
                budget = spend(node.budget, said.costs)
            if budget is None:
                continue
            done = msgspec.structs.replace(held, stage="answered", outcome=said.outcome)
            after = msgspec.structs.replace(
                node, workers=_put(node, index, done), jobs=said.jobs, budget=budget
            )
            yield Move(f"w{index} {_of(held)}: {said.label}", after, fair=said.costs is None)

    def _report(self, node: Node, index: int, held: Held) -> Iterator[Move]:
        assert held.outcome is not None, "it is answered"
        looks = self._machine.report(node, held.effect, f"w{index}", held.outcome)
        after = self._machine.after(node, workers=_put(node, index, None), looks=node.looks | looks)
        yield Move(f"w{index} reports {_of(held)}", after)
        if looks - node.looks and (less := spend(node.budget, "trouble")) is not None:
            silent = msgspec.structs.replace(after, looks=node.looks, budget=less)
            yield Move(f"w{index} reports {_of(held)} and dies before it says so", silent, fair=False)

    def _die(self, node: Node) -> Iterator[Move]:
        less = spend(node.budget, "trouble")
        if less is None:
            return
        for index, held in enumerate(node.workers):
            if held is None:
                continue
            dead = msgspec.structs.replace(node, workers=_put(node, index, None), budget=less)
            yield Move(f"w{index} dies with {_of(held)}, {held.stage}", dead, fair=False)
            row = node.tables.effects[held.effect.id]
            if node.holds(held) and row.lease_until is not None and row.lease_until > node.clock:
                self._machine.lapse(node, row.id)
                yield Move(
                    f"w{index} stands still past the lease of {_of(held)}",
                    self._machine.after(node, budget=less),
                    fair=False,
                )

    # --- dispatcher -----------------------------------------------------------------------------------------------------

    def _dispatch(self, node: Node) -> Iterator[Move]:
        batches: list[tuple[Look, ...]] = [(look,) for look in sorted(node.looks)]
        if len(batches) > 1:
            batches.append(tuple(sorted(node.looks)))
        for looks in batches:
            told = ", ".join(f"{what} {self._name(node, id_)}" for what, id_ in looks)
            commit = self._machine.decide(node, looks)
            rest = node.looks - set(looks)
            if commit is None:
                yield Move(f"nothing behind {told}", self._machine.after(node, looks=rest))
                continue
            stands, work, more = self._machine.write(node, commit)
            if not stands:
                # What it wanted to end was answered meanwhile: that is decided together with it (P1).
                answered: tuple[Look, ...] = tuple(("effect", closing.id) for closing in commit.closings)
                commit = self._machine.decide(
                    node, (*looks, *(look for look in answered if look not in looks))
                )
                assert commit is not None, "something lay behind it"
                stands, work, more = self._machine.write(node, commit)
                if not stands:
                    raise Broken("P21", f"a decision about {told} is not taken though nothing moved")
            after = self._machine.after(node, work=node.work | work, looks=rest | more)
            yield Move(f"decides {told}", after)
            if (less := spend(node.budget, "duplicate")) is not None:
                again = msgspec.structs.replace(after, looks=node.looks | more, budget=less)
                yield Move(f"decides {told}, which comes again", again, fair=False)
            if (less := spend(node.budget, "trouble")) is not None:
                silent = msgspec.structs.replace(after, work=node.work, looks=node.looks, budget=less)
                yield Move(f"decides {told} and dies before it publishes", silent, fair=False)
                if node.slow is None:
                    slow = msgspec.structs.replace(
                        node, slow=Slow(commit=commit, looks=looks), looks=rest, budget=less
                    )
                    yield Move(f"decides {told} and stops before it writes", slow, fair=False)

    def _write_late(self, node: Node) -> Iterator[Move]:
        if node.slow is None:
            return
        stands, work, more = self._machine.write(node, node.slow.commit)
        again = () if stands else tuple(("effect", closing.id) for closing in node.slow.commit.closings)
        looks = node.looks | more | (frozenset() if stands else frozenset((*node.slow.looks, *again)))
        after = self._machine.after(node, work=node.work | work, looks=looks, slow=None)
        yield Move("the old decision is written" if stands else "the old decision is taken again", after)

    # --- from outside ---------------------------------------------------------------------------------------------------

    def _outside(self, node: Node) -> Iterator[Move]:
        for index, job in enumerate(node.jobs):
            if job.state == "working":
                ends = [("done", node.budget)]
                if (less := spend(node.budget, "failure")) is not None:
                    ends.append(("failed", less))
                for state, budget in ends:
                    ended = msgspec.structs.replace(job, state=state)
                    jobs = (*node.jobs[:index], ended, *node.jobs[index + 1 :])
                    yield Move(
                        f"the provider ends {job.step}/{job.attempt}: {state}",
                        msgspec.structs.replace(node, jobs=jobs, budget=budget),
                        fair=state == "done",
                    )
            elif job.state in ("done", "failed"):
                kind = "duplicate" if job.called else "callback"
                if (less := spend(node.budget, kind)) is not None:
                    looks = self._machine.call_back(node, job)
                    told = msgspec.structs.replace(job, called=True)
                    jobs = (*node.jobs[:index], told, *node.jobs[index + 1 :])
                    after = self._machine.after(node, jobs=jobs, looks=node.looks | looks, budget=less)
                    yield Move(f"callback of {job.step}/{job.attempt}", after, fair=False)

    def _wishes(self, node: Node) -> Iterator[Move]:
        run = node.tables.runs[self._machine.run_id]
        for wish in self._machine.setting.wishes:
            if wish.name in node.given or (wish.after and wish.after not in node.given):
                continue
            if ACTION_OF[wish.kind].encode() not in (run.summary or b""):
                continue
            answer, work, looks = self._machine.command(node, wish, run.revision)
            given = tuple(sorted((*node.given, wish.name)))
            after = self._machine.after(node, work=node.work | work, looks=node.looks | looks, given=given)
            moved = after.tables.runs[self._machine.run_id].revision != run.revision
            if answer.receipt.status == "rejected" and not moved:
                raise Broken("P3", f"{wish.name} is offered and refused: {answer.receipt.problem}")
            # A refusal of a run that moved: what workers had answered was decided first, and it has changed what is offered.
            told = f"somebody says {wish.name}" + (
                ", too late" if answer.receipt.status == "rejected" else ""
            )
            yield Move(told, after, fair=False)
            if (work - node.work or looks - node.looks) and (
                less := spend(node.budget, "trouble")
            ) is not None:
                silent = msgspec.structs.replace(after, work=node.work, looks=node.looks, budget=less)
                yield Move(f"{told}, and the process dies before it publishes", silent, fair=False)
            said = (wish.name, after.tables.runs[self._machine.run_id].head_hash)
            if said in self._repeated:
                continue
            self._repeated.add(said)
            again, _, _ = self._machine.command(after, wish, run.revision)
            if not again.replayed or again.receipt != answer.receipt:
                raise Broken("I9", f"{wish.name} said again is answered otherwise")

    def _lose(self, node: Node) -> Iterator[Move]:
        less = spend(node.budget, "trouble")
        if less is None:
            return
        for work in sorted(node.work):
            lost = msgspec.structs.replace(node, work=node.work - {work}, budget=less)
            yield Move(f"the pointer to {self._name(node, work[0])} is lost", lost, fair=False)
        for look in sorted(node.looks):
            lost = msgspec.structs.replace(node, looks=node.looks - {look}, budget=less)
            yield Move(f"the doorbell of {look[0]} {self._name(node, look[1])} is lost", lost, fair=False)

    # --- relay, sweeper, time -------------------------------------------------------------------------------------------

    def _relay(self, node: Node) -> Iterator[Move]:
        if not any(
            row.state == "queued" and row.not_before <= node.clock and (row.id, row.attempt) not in node.work
            for row in node.effects()
        ):
            return
        work = self._machine.publish(node)
        yield Move("the relay publishes", self._machine.after(node, work=node.work | work))

    def _sweep(self, node: Node) -> Iterator[Move]:
        looks = self._machine.look_around(node)
        if looks <= node.looks and not any(
            row.state == "leased" and row.lease_until is not None and row.lease_until <= node.clock
            for row in node.effects()
        ):
            return
        yield Move("the sweeper looks around", self._machine.after(node, looks=node.looks | looks))

    def _tick(self, node: Node, *, busy: bool) -> Iterator[Move]:
        """The next moment comes: by itself when all who could act have, else at the cost of haste."""
        moments = sorted(coming(node))
        budget = spend(node.budget, "haste") if busy else node.budget
        if not moments or budget is None:
            return
        clock = moments[0][0]
        self._machine.renew(node, clock)
        due = [what for moment, what in moments if moment == clock]
        told = ", ".join(what if what.startswith("timer") else what.split()[0] for what in due)
        how = "passes too soon" if busy else "passes"
        yield Move(
            f"time {how}: {told}", self._machine.after(node, clock=clock, budget=budget), fair=not busy
        )

    def _name(self, node: Node, id_: uuid.UUID) -> str:
        row = node.tables.effects.get(id_)
        if row is not None:
            return f"{row.kind} {row.step}/{row.attempt}"
        callback = node.tables.inbox.get(id_)
        return "the run" if callback is None else f"{callback.step}/{callback.attempt}"


def _put(node: Node, index: int, held: Held | None) -> tuple[Held | None, ...]:
    return (*node.workers[:index], held, *node.workers[index + 1 :])


def _of(held: Held) -> str:
    said = f" {type(held.outcome).__name__}" if held.outcome is not None else ""
    marker = " adopted" if isinstance(held.outcome, Succeeded) and held.outcome.adopted else ""
    return f"{held.effect.kind} {held.effect.step}/{held.effect.attempt}{said}{marker}"
