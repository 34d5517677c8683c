"""Clauses about deliveries and settlements: none of them is fenced, and nothing is given once for all."""

import pytest

from contract.broker.bench import ACK_WAIT, SOON, Bench, Denied
from contract.broker.clauses import clause


@clause("order_kept")
async def what_waits_comes_in_order(bench: Bench) -> None:
    await bench.stream()
    await bench.consumer()
    for body in "abc":
        await bench.publish(body)

    assert [held.body for held in await bench.pull(3)] == ["a", "b", "c"]


@clause("limit_kept")
async def a_pull_brings_no_more_than_it_asked_for(bench: Bench) -> None:
    await bench.stream()
    await bench.consumer()
    for body in "abc":
        await bench.publish(body)

    assert [held.body for held in await bench.pull(2)] == ["a", "b"]
    assert [held.body for held in await bench.pull(2)] == ["c"]


@clause("filter_kept")
async def a_consumer_gets_its_subject_alone(bench: Bench) -> None:
    await bench.stream()
    await bench.consumer(subject="S.b")
    await bench.publish("a", subject="S.a")
    await bench.publish("b", subject="S.b")

    assert [held.body for held in await bench.pull()] == ["b"]


@clause("work_queue_exclusive")
async def two_consumers_of_a_work_queue_cannot_share_a_subject(bench: Bench) -> None:
    await bench.stream()
    await bench.consumer("one", subject="S.a")
    await bench.consumer("other", subject="S.b")

    with pytest.raises(Denied):
        await bench.consumer("third", subject="S.a")


@clause("ack_wait_ends")
async def what_is_not_settled_comes_again(bench: Bench) -> None:
    await bench.stream()
    await bench.consumer(ack_wait_seconds=ACK_WAIT)
    await bench.publish()
    await bench.pull()
    began = bench.elapsed()
    assert await bench.pull(seconds=SOON) == []

    assert len(await bench.pull()) == 1
    assert bench.elapsed() - began >= ACK_WAIT * 0.75


@clause("deliveries_counted")
async def each_delivery_has_the_next_number(bench: Bench) -> None:
    await bench.stream()
    await bench.consumer(ack_wait_seconds=ACK_WAIT)
    await bench.publish()
    counts = [(await bench.pull())[0].count]
    counts.append((await bench.pull())[0].count)
    held = await bench.pull()
    await held[0].nak()
    counts.append((await bench.pull())[0].count)

    assert counts == [1, 2, 4]


@clause("redelivered_first")
async def what_comes_again_comes_before_what_is_new(bench: Bench) -> None:
    await bench.stream()
    await bench.consumer()
    for body in "abcd":
        await bench.publish(body)
    held = await bench.pull(2)
    await held[1].nak()
    await held[0].nak()

    assert [again.body for again in await bench.pull(4)] == ["b", "a", "c", "d"]


@clause("pending_bounded")
async def unsettled_messages_stall_the_consumer(bench: Bench) -> None:
    await bench.stream()
    await bench.consumer(ack_pending_max=2)
    for body in "abc":
        await bench.publish(body)
    held = await bench.pull(2)
    assert len(held) == 2
    assert await bench.pull(seconds=SOON) == []
    await held[0].ack()

    assert [new.body for new in await bench.pull()] == ["c"]


@clause("redelivery_unbounded")
async def what_comes_again_comes_even_at_the_bound(bench: Bench) -> None:
    await bench.stream()
    await bench.consumer(ack_pending_max=2)
    for body in "abc":
        await bench.publish(body)
    held = await bench.pull(2)
    await held[0].nak()

    assert [again.body for again in await bench.pull(2, seconds=SOON)] == ["a"]


@clause("orphan_stays")
async def after_max_deliver_a_message_stays_and_is_given_no_more(bench: Bench) -> None:
    await bench.stream()
    await bench.consumer(ack_wait_seconds=ACK_WAIT / 2, max_deliver=2)
    await bench.publish()
    assert [(await bench.pull())[0].count, (await bench.pull())[0].count] == [1, 2]
    assert await bench.pull(seconds=ACK_WAIT * 2) == []

    assert (await bench.state()).messages == 1


@clause("orphan_told")
async def one_advisory_tells_of_it(bench: Bench) -> None:
    await bench.stream()
    await bench.consumer(ack_wait_seconds=ACK_WAIT / 2, max_deliver=1)
    await bench.publish()
    await bench.pull()
    assert await bench.pull(seconds=ACK_WAIT * 2) == []

    assert await bench.advisories() == [(1, 1)]


@clause("orphan_ack_removes")
async def a_late_ack_removes_even_an_orphan(bench: Bench) -> None:
    await bench.stream()
    await bench.consumer(ack_wait_seconds=ACK_WAIT / 2, max_deliver=1)
    await bench.publish()
    held = await bench.pull()
    assert await bench.pull(seconds=ACK_WAIT * 2) == []
    await held[0].ack()

    assert (await bench.state()).messages == 0


@clause("unfenced_ack")
async def the_ack_of_a_zombie_takes_the_message_from_whoever_holds_it(bench: Bench) -> None:
    await bench.stream()
    await bench.consumer(ack_wait_seconds=ACK_WAIT)
    await bench.publish()
    zombie = await bench.pull()
    holder = await bench.pull()
    assert holder[0].count == 2
    await zombie[0].ack()

    assert (await bench.state()).messages == 0
    assert await bench.pull(seconds=ACK_WAIT * 2) == []


@clause("unfenced_nak")
async def the_nak_of_a_zombie_gives_the_message_to_a_third_one(bench: Bench) -> None:
    await bench.stream()
    await bench.consumer(ack_wait_seconds=ACK_WAIT)
    await bench.publish()
    zombie = await bench.pull()
    await bench.pull()
    await zombie[0].nak()

    assert [third.count for third in await bench.pull(seconds=SOON)] == [3]


@clause("nak_at_once")
async def a_nak_gives_it_back_at_once(bench: Bench) -> None:
    await bench.stream()
    await bench.consumer()
    await bench.publish()
    await (await bench.pull())[0].nak()

    assert [again.count for again in await bench.pull(seconds=SOON)] == [2]


@clause("nak_delay_kept")
async def a_delayed_nak_keeps_it_away_whatever_the_ack_wait(bench: Bench) -> None:
    await bench.stream()
    await bench.consumer(ack_wait_seconds=30)
    await bench.publish()
    held = await bench.pull()
    began = bench.elapsed()
    await held[0].nak(0.3)

    assert len(await bench.pull()) == 1
    assert 0.25 <= bench.elapsed() - began < 1


@clause("backoff_added")
async def a_backoff_adds_its_growth_to_a_delayed_nak(bench: Bench) -> None:
    await bench.stream()
    await bench.consumer(backoff_seconds=(0.3, 0.9), max_deliver=5)
    await bench.publish()
    await (await bench.pull())[0].nak(0.2)
    held = await bench.pull()
    began = bench.elapsed()
    await held[0].nak(0.2)

    assert len(await bench.pull()) == 1
    assert bench.elapsed() - began >= 0.2 + 0.9 - 0.3 - 0.05


@clause("nak_after_ack_void")
async def who_acked_cannot_take_it_back(bench: Bench) -> None:
    await bench.stream(retention="limits")
    await bench.consumer()
    await bench.publish()
    held = await bench.pull()
    await held[0].ack()
    await held[0].nak()

    assert await bench.pull(seconds=SOON) == []


@clause("term_ends")
async def a_terminated_message_never_comes_again(bench: Bench) -> None:
    await bench.stream()
    await bench.consumer(ack_wait_seconds=ACK_WAIT)
    await bench.publish()
    await (await bench.pull())[0].term()

    assert await bench.pull(seconds=ACK_WAIT * 2) == []
    assert (await bench.state()).messages == 0


@clause("work_queue_forgets")
async def an_acked_message_leaves_a_work_queue(bench: Bench) -> None:
    await bench.stream()
    await bench.consumer()
    await bench.publish()
    await (await bench.pull())[0].ack()

    assert (await bench.state()).messages == 0


@clause("limits_keep")
async def an_acked_message_stays_in_a_limits_stream(bench: Bench) -> None:
    await bench.stream(retention="limits")
    await bench.consumer()
    await bench.publish()
    await (await bench.pull())[0].ack()

    assert (await bench.state()).messages == 1


@clause("progress_extends")
async def a_sign_of_progress_starts_the_wait_anew(bench: Bench) -> None:
    await bench.stream()
    await bench.consumer(ack_wait_seconds=ACK_WAIT)
    await bench.publish()
    held = await bench.pull()
    await bench.pass_seconds(ACK_WAIT * 0.75)
    await held[0].progress()
    began = bench.elapsed()

    assert len(await bench.pull()) == 1
    assert bench.elapsed() - began >= ACK_WAIT * 0.75


@clause("progress_keeps_count")
async def progress_does_not_change_the_number_of_deliveries_on_one_server(bench: Bench) -> None:
    await bench.stream()
    await bench.consumer(ack_wait_seconds=ACK_WAIT)
    await bench.publish()
    await bench.pull()
    held = await bench.pull()
    await held[0].progress()

    assert [again.count for again in await bench.pull()] == [3]
