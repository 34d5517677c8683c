"""Clauses about the life of streams, consumers and servers: what is deleted, made anew, restarted, or loses its power."""

import pytest

from contract.broker.bench import ACK_WAIT, SOON, Answer, Bench, Denied, Gone
from contract.broker.clauses import clause


@clause("deleted_looks_idle")
async def a_pull_whose_consumer_is_deleted_looks_idle(bench: Bench) -> None:
    await bench.stream()
    await bench.consumer()

    assert await bench.standing(bench.delete_consumer) == []


@clause("deleted_raises_next")
async def the_next_pull_after_it_is_an_error(bench: Bench) -> None:
    await bench.stream()
    await bench.consumer()
    await bench.standing(bench.delete_consumer)

    with pytest.raises(Gone):
        await bench.pull(seconds=SOON)


@clause("new_consumer_from_start")
async def a_consumer_made_anew_is_given_what_was_unsettled(bench: Bench) -> None:
    await bench.stream()
    await bench.consumer()
    await bench.publish("unsettled")
    await bench.pull()
    await bench.delete_consumer()
    await bench.consumer()

    assert [held.body for held in await bench.pull()] == ["unsettled"]


@clause("new_consumer_counts_anew")
async def it_counts_deliveries_anew(bench: Bench) -> None:
    await bench.stream()
    await bench.consumer()
    await bench.publish()
    await (await bench.pull())[0].nak()
    assert (await bench.pull())[0].count == 2
    await bench.delete_consumer()
    await bench.consumer()

    assert (await bench.pull())[0].count == 1


@clause("limits_replayed")
async def a_new_consumer_of_a_limits_stream_gets_what_the_old_one_acked(bench: Bench) -> None:
    await bench.stream(retention="limits")
    await bench.consumer()
    await bench.publish("acked")
    await (await bench.pull())[0].ack()
    await bench.delete_consumer()
    await bench.consumer()

    assert [held.body for held in await bench.pull()] == ["acked"]


@clause("settled_by_name")
async def an_ack_from_before_works_on_the_consumer_made_anew(bench: Bench) -> None:
    await bench.stream()
    await bench.consumer()
    await bench.publish()
    before = await bench.pull()
    await bench.delete_consumer()
    await bench.consumer()
    await bench.pull()
    await before[0].ack()

    assert (await bench.state()).messages == 0


@clause("redeclared_is_same")
async def a_stream_that_is_declared_twice_is_the_same(bench: Bench) -> None:
    born = await bench.stream()
    await bench.publish()

    assert await bench.stream() == born
    assert (await bench.state()).messages == 1


@clause("recreated_is_another")
async def a_stream_made_anew_has_another_birth(bench: Bench) -> None:
    born = await bench.stream()
    await bench.delete_stream()

    assert await bench.stream() != born


@clause("recreated_from_one")
async def it_counts_from_one(bench: Bench) -> None:
    await bench.stream()
    await bench.publish()
    await bench.publish()
    await bench.delete_stream()
    await bench.stream()

    assert (await bench.publish()).sequence == 1


@clause("recreated_forgets_ids")
async def it_knows_no_message_id(bench: Bench) -> None:
    await bench.stream()
    await bench.publish(id="i")
    await bench.delete_stream()
    await bench.stream()

    assert await bench.publish(id="i") == Answer(1)


@clause("deleted_takes_consumers")
async def its_consumers_went_with_it(bench: Bench) -> None:
    await bench.stream()
    await bench.consumer()
    await bench.delete_stream()
    await bench.stream()
    await bench.publish()

    with pytest.raises(Gone):
        await bench.pull(seconds=SOON)


@clause("purge_denied")
async def a_stream_that_denies_purging_is_not_purged(bench: Bench) -> None:
    await bench.stream(deny_purge=True)
    await bench.publish()

    with pytest.raises(Denied):
        await bench.purge(by_force=False)
    assert (await bench.state()).messages == 1


@clause("purge_keeps_ids")
async def a_purge_swallows_what_is_published_again(bench: Bench) -> None:
    await bench.stream()
    await bench.publish(id="i")
    await bench.purge()

    assert (await bench.publish(id="i")).duplicate
    assert (await bench.state()).messages == 0


@clause("purge_keeps_sequence")
async def a_purge_does_not_count_anew(bench: Bench) -> None:
    await bench.stream()
    await bench.publish()
    await bench.purge()

    assert (await bench.publish()).sequence == 2


@clause("purge_takes_held")
async def a_purge_takes_even_what_somebody_holds(bench: Bench) -> None:
    await bench.stream()
    await bench.consumer(ack_wait_seconds=ACK_WAIT)
    await bench.publish()
    await bench.pull()
    await bench.purge()

    assert await bench.pull(seconds=ACK_WAIT * 2) == []


@clause("deleted_message_skipped")
async def a_deleted_message_is_not_given(bench: Bench) -> None:
    await bench.stream()
    await bench.consumer()
    for body in "abc":
        await bench.publish(body)
    await bench.delete_message(2)

    assert [held.body for held in await bench.pull(3)] == ["a", "c"]


@clause("restart_forgets_acked_ids", alone=True)
async def a_restart_forgets_ids_of_acked_messages(bench: Bench) -> None:
    await bench.stream()
    await bench.consumer()
    await bench.publish(id="i")
    await (await bench.pull())[0].ack()
    await bench.restart()

    assert await bench.publish(id="i") == Answer(2)


@clause("restart_keeps_stored_ids", alone=True)
async def it_keeps_ids_of_messages_that_are_there(bench: Bench) -> None:
    await bench.stream()
    await bench.publish(id="i")
    await bench.restart()

    assert (await bench.publish(id="i")).duplicate


@clause("limits_remember_acked_ids", alone=True)
async def a_limits_stream_keeps_ids_of_acked_messages_through_a_restart(bench: Bench) -> None:
    await bench.stream(retention="limits")
    await bench.consumer()
    await bench.publish(id="i")
    await (await bench.pull())[0].ack()
    await bench.restart()

    assert (await bench.publish(id="i")).duplicate


@clause("restart_keeps_messages", alone=True)
async def a_restart_keeps_messages_and_which_were_settled(bench: Bench) -> None:
    await bench.stream()
    await bench.consumer()
    await bench.publish("settled")
    await bench.publish("waiting")
    await (await bench.pull())[0].ack()
    await bench.restart()

    assert [held.body for held in await bench.pull(2)] == ["waiting"]


@clause("restart_keeps_messages", alone=True)
async def a_killed_server_keeps_what_it_acknowledged(bench: Bench) -> None:
    await bench.stream()
    await bench.publish("acknowledged")
    await bench.kill()

    assert (await bench.state()).messages == 1


@clause("restart_keeps_pending", alone=True)
async def what_was_held_comes_again_only_when_its_wait_ends(bench: Bench) -> None:
    await bench.stream()
    await bench.consumer(ack_wait_seconds=3)
    await bench.publish()
    await bench.pull()
    began = bench.elapsed()
    await bench.restart()

    assert [held.count for held in await bench.pull()] == [2]
    assert bench.elapsed() - began >= 1.5


@clause("power_loss_loses", alone=True)
async def a_power_loss_takes_acknowledged_messages_along(bench: Bench) -> None:
    await bench.stream()
    await bench.publish("synced")

    async def work() -> None:
        assert (await bench.publish("acknowledged")).code == 0

    await bench.power_loss_after(work)

    assert (await bench.state()).messages == 1


@clause("power_loss_reuses_sequences", alone=True)
async def it_gives_their_sequence_to_another_message(bench: Bench) -> None:
    await bench.stream()

    async def work() -> None:
        assert (await bench.publish("lost", id="i")).sequence == 1

    await bench.power_loss_after(work)

    assert await bench.publish("another", id="i") == Answer(1)


@clause("power_loss_undoes_acks", alone=True)
async def it_brings_back_what_was_acked(bench: Bench) -> None:
    await bench.stream()
    await bench.consumer()
    await bench.publish("done")

    async def work() -> None:
        await (await bench.pull())[0].ack()

    await bench.power_loss_after(work)

    assert [held.body for held in await bench.pull()] == ["done"]
