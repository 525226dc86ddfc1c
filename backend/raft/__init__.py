"""The metadata quorum: KRaft's rules as a pure state machine, and what the rest of the backend sees of it.

Knows no record and no image: both are type parameters. Touches no clock, loop or socket.
"""
