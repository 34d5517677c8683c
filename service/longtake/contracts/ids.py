"""Identities: derived, never random, so that a restored or repeated decision makes the same ones (P2).

Leaves to others: where an id is stored, and the epoch itself (it is a row of the store).
"""

import hashlib
import hmac
import re
import uuid
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import NewType

RunId = NewType("RunId", uuid.UUID)
EffectId = NewType("EffectId", uuid.UUID)
ProviderToken = NewType("ProviderToken", str)

NAME_PATTERN = r"^[A-Za-z0-9_-]{1,64}$"
"""Alphabet of client command ids and of every subject token (P25)."""

_NAME = re.compile(NAME_PATTERN)
_FENCE_EPOCH_BITS = 32


def is_name(text: str) -> bool:
    """Whether the text can be a client command id or a subject token (P25)."""
    # Not match(): its $ would let a newline end the name.
    return _NAME.fullmatch(text) is not None


def subject_token(text: str) -> str:
    """Write a name as one NATS subject token: dots become underscores (P25)."""
    return text.replace(".", "_")


def _digest(*parts: object) -> bytes:
    # Length-prefixed, so that ("ab", "c") and ("a", "bc") differ. One update: ids are made for every step.
    raws = [str(part).encode() for part in parts]
    return hashlib.sha256(b"".join([len(raw).to_bytes(4, "big") + raw for raw in raws])).digest()


def run_id_for(*, tenant: str, actor: str, client_command_id: str) -> RunId:
    """Derive a run's id from the command that starts it; a UUIDv7 command id lends its time prefix (P2)."""
    raw = bytearray(_digest("run", tenant, actor, client_command_id)[:16])
    version = 8
    try:
        client = uuid.UUID(client_command_id)
    except ValueError:
        client = None
    if client is not None and client.version == 7:
        raw[:6] = client.bytes[:6]
        version = 7
    raw[6] = (raw[6] & 0x0F) | (version << 4)
    raw[8] = (raw[8] & 0x3F) | 0x80
    return RunId(uuid.UUID(bytes=bytes(raw)))


def effect_id_for(run_id: uuid.UUID, *, step: str, attempt: int, kind: str, ordinal: int) -> EffectId:
    """Derive an effect's id: eight bytes of the run, eight of the digest, so a run's rows lie together (P2)."""
    tail = _digest("effect", run_id, step, attempt, kind, ordinal)[:8]
    return EffectId(uuid.UUID(bytes=run_id.bytes[:8] + tail))


def event_id_for(run_id: uuid.UUID, *, seq: int, store_epoch: int) -> uuid.UUID:
    """Derive an event's id from its place in history and the store's epoch (P2)."""
    return uuid.UUID(bytes=_digest("event", store_epoch, run_id, seq)[:16])


def signal_id_for(sender: uuid.UUID, *, kind: str, about: str) -> uuid.UUID:
    """Derive the id of a durable signal from who sends it and what it is about (P5)."""
    return uuid.UUID(bytes=_digest("signal", sender, kind, about)[:16])


def child_command_id_for(run_id: uuid.UUID, *, step: str, attempt: int) -> str:
    """The client command id under which a step's child run is admitted; its run id follows from it (P2)."""
    return "child-" + _digest("child", run_id, step, attempt)[:16].hex()


def artifact_id_for(run_id: uuid.UUID, *, step: str, name: str) -> uuid.UUID:
    """Derive the id under which a step's published artifact is served (H88)."""
    return uuid.UUID(bytes=_digest("artifact", run_id, step, name)[:16])


def inbox_id_for(*, tenant: str, provider: str, dedupe_key: str) -> uuid.UUID:
    """Derive the id of a provider callback's row, so that copies meet on one row (P4)."""
    return uuid.UUID(bytes=_digest("inbox", tenant, provider, dedupe_key)[:16])


def provider_token_for(run_id: uuid.UUID, *, step: str, attempt: int) -> ProviderToken:
    """Derive the token we give a provider: of the attempt, never of the fence (P1)."""
    return ProviderToken("lt" + _digest("token", run_id, step, attempt)[:16].hex())


def callback_token_for(secret: bytes, *, run_id: uuid.UUID, step: str, attempt: int) -> str:
    """Sign (run, step, attempt) into a URL token that a stale or forged attempt cannot have (P4)."""
    body = urlsafe_b64encode(f"{run_id.hex}|{step}|{attempt}".encode()).rstrip(b"=")
    mac = urlsafe_b64encode(hmac.new(secret, body, hashlib.sha256).digest()[:16]).rstrip(b"=")
    return f"{body.decode()}.{mac.decode()}"


def read_callback_token(secret: bytes, token: str) -> tuple[RunId, str, int] | None:
    """Return (run, step, attempt) of a callback token, or None when it was not signed by us."""
    body, separator, mac = token.partition(".")
    expected = urlsafe_b64encode(hmac.new(secret, body.encode(), hashlib.sha256).digest()[:16]).rstrip(b"=")
    if not separator or not hmac.compare_digest(expected, mac.encode()):
        return None
    try:
        run_hex, _, rest = urlsafe_b64decode(body + "=" * (-len(body) % 4)).decode().partition("|")
        step, _, attempt = rest.rpartition("|")
        return RunId(uuid.UUID(hex=run_hex)), step, int(attempt)
    except (ValueError, UnicodeDecodeError):
        return None


def fence_floor(store_epoch: int) -> int:
    """The number every fence of this store epoch exceeds, so that fences of a lost past are below it (P2)."""
    return store_epoch << _FENCE_EPOCH_BITS


def callback_part(run_id: uuid.UUID, parts: int) -> int:
    """The LT_CALLBACK part a run's signals travel in (P7)."""
    return run_id.bytes[15] % parts


def revision_etag(store_epoch: int, revision: int) -> str:
    """The ETag of a run's summary, with quotes: `"e1-r12"` (design.md 11)."""
    return f'"e{store_epoch}-r{revision}"'
