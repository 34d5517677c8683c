"""Postgres, the authority (floor 4): the ports of the engine over asyncpg. SQL lives in queries/*.sql and migrations/."""
