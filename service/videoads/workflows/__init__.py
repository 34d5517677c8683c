"""The workflows of videoads: pure builders of plans. A changed graph, model or price is a new version (H20)."""
