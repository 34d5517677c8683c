"""The contract of the transport's ports: every clause holds over nats-server and in memory, and finds out the port that breaks it."""

from pathlib import Path

import pytest

from contract.broker.port_clauses import PORT_CLAUSES, PortClause
from contract.broker.ports import MemoryPorts, real_ports
from longtake.errors import LongtakeError
from longtake.jetstream import topology
from longtake.memory import broker_rules
from longtake.memory.broker_rules import BrokerSettings, ConsumerRules, StreamRules

CLAUSES_MIN = 20

every_clause = pytest.mark.parametrize("clause", PORT_CLAUSES, ids=[clause.name for clause in PORT_CLAUSES])


@every_clause
async def test_jetstream_keeps_it(clause: PortClause, tmp_path: Path) -> None:
    async with real_ports(tmp_path) as ports:
        await clause.body(ports)


@every_clause
async def test_memory_keeps_it(clause: PortClause) -> None:
    ports = MemoryPorts()
    await ports.open()
    await clause.body(ports)


@every_clause
async def test_a_wrong_port_is_found_out(clause: PortClause) -> None:
    ports = MemoryPorts()
    await ports.open()
    with (
        clause.wrong(),
        pytest.raises((AssertionError, LongtakeError, pytest.fail.Exception)),
    ):
        await clause.body(ports)


def test_there_are_clauses_enough_and_each_has_its_own_name() -> None:
    assert len({clause.name for clause in PORT_CLAUSES}) == len(PORT_CLAUSES) >= CLAUSES_MIN


def test_both_transports_declare_the_same_streams() -> None:
    declared = [
        StreamRules(
            name=config.name or "",
            subject=(config.subjects or [""])[0],
            retention="limits" if config.retention == topology.RetentionPolicy.LIMITS else "work_queue",
            bytes_max=config.max_bytes,
            message_bytes_max=config.max_msg_size,
            age_seconds_max=config.max_age,
            duplicate_window_seconds=config.duplicate_window,
            deny_purge=bool(config.deny_purge),
        )
        for config in topology.stream_configs(topology.TopologySettings())
    ]

    assert tuple(declared) == broker_rules.stream_rules(BrokerSettings())


@pytest.mark.parametrize("durable", ["commands", "effects_short", "callback_0", "callback_3"])
def test_both_transports_declare_the_same_consumers(durable: str) -> None:
    stream, config = topology.consumer_config(topology.TopologySettings(), durable)

    assert broker_rules.consumer_rules(BrokerSettings(), durable) == ConsumerRules(
        stream=stream,
        durable=config.durable_name or "",
        subject=config.filter_subject,
        ack_wait_seconds=config.ack_wait or 0,
        max_deliver=config.max_deliver or 0,
        ack_pending_max=config.max_ack_pending or 0,
    )


def test_both_transports_take_bodies_of_the_same_size() -> None:
    assert broker_rules.BODY_BYTES_MAX == topology.MESSAGE_BYTES_MAX
