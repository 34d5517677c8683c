"""Opening a run: the events and the ledger entry of its acceptance (P9)."""

import msgspec


class AcceptedFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What admission knows of the command that opens a run."""

    workflow: str
    workflow_version: int
    project: str
    actor: str
    account: str
    command_id: str
    conversation: str | None = None
    fingerprint: str
    application: str
    price_list: str
