"""The reference application: a brief becomes a finished, verified video ad."""
