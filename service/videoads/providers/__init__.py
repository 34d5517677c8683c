"""The outsiders this application depends on: clients that talk to them, and a synthetic set of them to talk to.

`contract` holds the outcomes; `clips`, `voice`, `music` and `render` are clients; `synthetic` is a program of
its own that imports none of the clients; `witness` judges what that program wrote down.
"""
