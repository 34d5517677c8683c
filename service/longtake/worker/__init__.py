"""Workers (floor 5): the registry of activities, the executor of claimed effects, the loop that feeds it."""
