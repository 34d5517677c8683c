"""Artifacts in an object store (floor 4), over obstore: a directory here, S3, GCS or Azure elsewhere."""
