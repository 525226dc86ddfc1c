"""The metadata log and who may write it: what the rest of the backend sees of the quorum, and today's single leader.

Knows no record and no image: both are type parameters. Touches no clock, loop or socket.
"""
