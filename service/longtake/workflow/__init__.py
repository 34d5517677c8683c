"""The pure core (floor 1): plans, state, the reducer, money, retries, summaries. No await, clock, random or I/O."""
