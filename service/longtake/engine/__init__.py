"""The engine (floor 3): admission, dispatcher, relay, sweeper, intake, inbox, audit. Recipes over the ports."""
