"""Synthetic providers: a program of its own that makes real media and is as forgetful as real providers are.

There is no idempotency key: a repeated create is a second job and a second cost. Start it with
`python -m videoads.providers.synthetic --data DIR`. Its jobs, uploads, media and witness file live in DIR and
survive a kill. It imports nothing of longtake and none of the clients, so neither side can flatter the other.
"""
