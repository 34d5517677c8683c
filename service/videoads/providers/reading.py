"""Reads fields from a provider's JSON without trusting its shape: a field of another kind counts as absent."""

from collections.abc import Sequence

from videoads.providers.contract import Document


def text(document: Document, name: str) -> str:
    """A text, or an empty one."""
    value = document.get(name)
    return value if isinstance(value, str) else ""


def number(document: Document, name: str) -> float:
    """A number, or zero."""
    value = document.get(name)
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else 0


def sub_document(document: Document, name: str) -> Document:
    """An object, or an empty one."""
    value = document.get(name)
    return value if isinstance(value, dict) else {}


def sub_documents(document: Document, name: str) -> Sequence[Document]:
    """The objects of a list."""
    value = document.get(name)
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
