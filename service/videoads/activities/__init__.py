"""The activities of videoads: each one versioned piece of work that touches the outside world."""
