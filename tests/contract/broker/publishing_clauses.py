"""Clauses about publications: ids, windows, limits, and answers that are lost."""

from contract.broker.bench import Answer, Bench
from contract.broker.clauses import clause

WRONG_STREAM = 10060
TOO_LARGE = 10054
FULL = 10077
NOBODY = 503


async def _forgotten(bench: Bench, *, tries: int) -> Answer:
    """The answer to the id when it is new again, or the last one to say that it is known."""
    answer = await bench.publish(id="i")
    for _ in range(tries):
        if not answer.duplicate:
            break
        await bench.pass_seconds(0.1)
        answer = await bench.publish(id="i")
    return answer


@clause("swallow_duplicates")
async def the_same_id_is_swallowed_and_called_a_duplicate(bench: Bench) -> None:
    await bench.stream()
    await bench.publish("first", id="i")

    assert await bench.publish("second", id="i") == Answer(1, duplicate=True)
    assert (await bench.state()).messages == 1


@clause("swallow_after_ack")
async def it_is_swallowed_although_the_first_copy_is_acked_and_gone(bench: Bench) -> None:
    await bench.stream()
    await bench.consumer()
    await bench.publish(id="i")
    await (await bench.pull())[0].ack()

    assert (await bench.publish(id="i")).duplicate
    assert (await bench.state()).messages == 0


@clause("window_ends")
async def after_the_window_the_same_id_is_new(bench: Bench) -> None:
    await bench.stream(duplicate_window_seconds=0.3)
    await bench.publish(id="i")
    await bench.pass_seconds(0.4)

    # The server forgets ids by a timer of its own, a little later when the machine is busy.
    assert await _forgotten(bench, tries=20) == Answer(2)


@clause("window_fixed")
async def copies_do_not_prolong_the_window(bench: Bench) -> None:
    await bench.stream(duplicate_window_seconds=0.8)
    await bench.publish(id="i")
    await bench.pass_seconds(0.5)
    assert (await bench.publish(id="i")).duplicate
    await bench.pass_seconds(0.4)

    # A window that began anew with the copy would last until 1.3 s.
    assert not (await _forgotten(bench, tries=3)).duplicate


@clause("refused_forgotten")
async def the_id_of_a_refused_message_is_free(bench: Bench) -> None:
    await bench.stream(message_bytes_max=200)
    assert (await bench.publish("y" * 500, id="i")).code == TOO_LARGE

    assert await bench.publish("small", id="i") == Answer(1)


@clause("duplicate_before_full")
async def a_full_stream_still_knows_a_duplicate(bench: Bench) -> None:
    await bench.stream(bytes_max=400)
    codes = [(await bench.publish("z" * 100, id=f"k{number}")).code for number in range(4)]
    assert FULL in codes

    assert (await bench.publish("z" * 100, id="k0")).duplicate


@clause("discard_new")
async def a_full_stream_refuses_the_new_and_keeps_the_old(bench: Bench) -> None:
    await bench.stream(bytes_max=400)
    answers = [await bench.publish("z" * 100) for _ in range(5)]

    assert [answer.code for answer in answers if answer.code] == [FULL] * len([a for a in answers if a.code])
    assert answers[-1].code == FULL
    assert (await bench.state()).first_sequence == 1


@clause("stream_expected")
async def a_message_for_another_stream_is_refused(bench: Bench) -> None:
    await bench.stream()

    assert (await bench.publish(expected="T")).code == WRONG_STREAM
    assert (await bench.publish(expected="S")).code == 0


@clause("subject_needs_stream")
async def a_subject_that_no_stream_takes_is_refused(bench: Bench) -> None:
    await bench.stream()

    assert (await bench.publish(subject="S.a.b")).code == NOBODY


@clause("size_bounded")
async def a_message_above_the_size_limit_is_refused(bench: Bench) -> None:
    await bench.stream(message_bytes_max=100)

    assert (await bench.publish("y" * 101)).code == TOO_LARGE
    assert (await bench.publish("y" * 100)).code == 0


@clause("headers_weigh")
async def headers_count_into_the_size(bench: Bench) -> None:
    await bench.stream(message_bytes_max=100)

    assert (await bench.publish("y" * 90, id="a-message-id")).code == TOO_LARGE
    assert (await bench.publish("y" * 90)).code == 0


@clause("aged_out")
async def messages_above_the_age_limit_are_gone_unread(bench: Bench) -> None:
    await bench.stream(retention="limits", age_seconds_max=0.3, duplicate_window_seconds=0.3)
    await bench.consumer()
    await bench.publish()
    await bench.pass_seconds(0.9)

    assert await bench.pull(seconds=0.1) == []
    assert (await bench.state()).messages == 0


@clause("unheard_is_stored", alone=True)
async def a_publication_without_an_answer_may_be_stored(bench: Bench) -> None:
    await bench.stream()
    await bench.consumer()
    await bench.publish_unheard("unheard")

    assert [held.body for held in await bench.pull()] == ["unheard"]


@clause("late_is_stored", alone=True)
async def what_a_client_buffered_while_cut_off_arrives_after_later_messages(bench: Bench) -> None:
    await bench.stream()
    await bench.consumer()

    async def meanwhile() -> None:
        await bench.publish("later")

    await bench.publish_buffered("early", meanwhile)

    assert (await bench.state()).messages == 2


@clause("oldest_counts_pending")
async def the_oldest_message_is_there_until_it_is_settled(bench: Bench) -> None:
    await bench.stream()
    await bench.consumer()
    assert await bench.oldest("S.a") is None
    await bench.publish("old")
    await bench.publish("young")
    held = await bench.pull()
    assert await bench.oldest("S.a") == "old"
    await held[0].ack()

    assert await bench.oldest("S.a") == "young"
    assert await bench.oldest("S.b") is None
