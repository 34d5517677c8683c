"""The habits of nats-server that the broker in memory keeps, one switch each.

All are on unless somebody wants to see what a kinder or a wronger broker would hide. Each was seen on the real server by the clause
of the contract suite that fails without it. Leaves to others: living by them (broker_stream.py, broker_consumer.py, broker.py).
"""

import msgspec


class Habits(msgspec.Struct, frozen=True, kw_only=True):
    """How a broker behaves; true is how nats-server does."""

    # --- publishing ---
    swallow_duplicates: bool = True
    """A message id met again within the window is acknowledged and not stored."""
    swallow_after_ack: bool = True
    """So it is when the first copy was acknowledged by its consumer long since."""
    window_fixed: bool = True
    """The window counts from the first copy; the copies it swallowed do not prolong it."""
    window_ends: bool = True
    """After the window the same id is a new message."""
    unheard_is_stored: bool = True
    """A publication whose answer was lost may be stored."""
    late_is_stored: bool = True
    """So may one that a client had buffered, when its connection is back."""
    subject_needs_stream: bool = True
    """A subject that no stream takes is refused."""
    refused_forgotten: bool = True
    """The id of a refused message may be used again."""
    duplicate_before_full: bool = True
    """A full stream still knows a duplicate when it sees one."""
    stream_expected: bool = True
    """A message for another stream than the one that takes its subject is refused."""
    size_bounded: bool = True
    """A message above the size limit is refused."""
    headers_weigh: bool = True
    """Headers count into its size."""
    discard_new: bool = True
    """A full stream refuses the new message and keeps the old ones."""
    aged_out: bool = True
    """Messages older than the age limit are gone, consumed or not."""

    # --- delivering ---
    order_kept: bool = True
    """What waits is given in the order in which it was stored."""
    limit_kept: bool = True
    """A pull brings no more than it asked for."""
    filter_kept: bool = True
    """A consumer gets its subject alone."""
    ack_wait_ends: bool = True
    """What is not settled within the ack wait comes again."""
    deliveries_counted: bool = True
    """Each delivery of a message has the next number."""
    redelivered_first: bool = True
    """What comes again comes before what is new."""
    pending_bounded: bool = True
    """At max_ack_pending nothing new is given."""
    redelivery_unbounded: bool = True
    """What comes again comes even then."""
    orphan_stays: bool = True
    """After max_deliver a message is given no more and stays in the stream."""
    orphan_told: bool = True
    """One advisory tells of it."""

    # --- settling ---
    unfenced_ack: bool = True
    """An ack of an older delivery counts, whoever holds the message now."""
    unfenced_nak: bool = True
    """So does a nak: the message is given to a third one."""
    orphan_ack_removes: bool = True
    """A late ack removes even a message that is given no more."""
    nak_at_once: bool = True
    """A nak without delay makes the message available at once."""
    nak_delay_kept: bool = True
    """A nak with a delay keeps it away so long, whatever the ack wait."""
    backoff_added: bool = True
    """A backoff adds its growth to the delay of a nak."""
    nak_after_ack_void: bool = True
    """Who acked cannot take it back."""
    term_ends: bool = True
    """A terminated message never comes again."""
    work_queue_forgets: bool = True
    """An acknowledged message leaves a work queue."""
    limits_keep: bool = True
    """An acknowledged message stays in a limits stream."""
    progress_extends: bool = True
    """A sign of progress starts the ack wait anew."""
    progress_keeps_count: bool = True
    """It does not change how often the message was delivered."""

    # --- the life of streams and consumers ---
    deleted_looks_idle: bool = True
    """The pull that stands when its consumer is deleted ends as if there were nothing."""
    deleted_raises_next: bool = True
    """The next one is an error."""
    new_consumer_from_start: bool = True
    """A consumer made anew is given everything that is stored."""
    limits_replayed: bool = True
    """Of a limits stream even what its predecessor acked."""
    settled_by_name: bool = True
    """A settlement from before works on the consumer made anew, once that gave the message."""
    new_consumer_counts_anew: bool = True
    """And its first delivery is number one."""
    work_queue_exclusive: bool = True
    """Two consumers of a work queue cannot take the same subject."""
    purge_denied: bool = True
    """A stream that denies purging is not purged."""
    purge_keeps_ids: bool = True
    """A purge forgets messages but not their ids."""
    purge_keeps_sequence: bool = True
    """Nor does it count anew."""
    purge_takes_held: bool = True
    """It takes what somebody holds, too."""
    deleted_message_skipped: bool = True
    """A single message that was deleted is not given."""
    recreated_from_one: bool = True
    """A stream made anew counts from one."""
    recreated_forgets_ids: bool = True
    """And knows no message id."""
    deleted_takes_consumers: bool = True
    """And has no consumer."""
    recreated_is_another: bool = True
    """And has another birth."""
    redeclared_is_same: bool = True
    """A stream that is declared once more keeps its birth and its messages."""
    oldest_counts_pending: bool = True
    """A message that was given and not settled is still in the stream."""

    # --- restarts ---
    restart_forgets_acked_ids: bool = True
    """A restart forgets the ids of messages that are not stored any more."""
    restart_keeps_stored_ids: bool = True
    """It keeps those of the others."""
    limits_remember_acked_ids: bool = True
    """In a limits stream acked messages are stored, so their ids are kept."""
    restart_keeps_messages: bool = True
    """It keeps messages, and which were settled."""
    restart_keeps_pending: bool = True
    """What was given before it is not given again until its ack wait ends."""
    power_loss_loses: bool = True
    """A power loss takes acknowledged publications of the last seconds with it."""
    power_loss_undoes_acks: bool = True
    """And settlements: what was done comes again."""
    power_loss_reuses_sequences: bool = True
    """The lost sequence numbers are given to other messages."""
