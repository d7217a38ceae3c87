"""The states in which an attempt can end, and the reasons for them; codes are positions in these tuples."""

from __future__ import annotations

STATES = ("completed", "rejected", "timed_out", "unfinished")
COMPLETED, REJECTED, TIMED_OUT, UNFINISHED = range(4)

REJECT_REASONS = ("throttled", "rate_limited", "no_replica", "too_long", "queue_full", "shed", "codel")
TIMEOUT_REASONS = ("timeout", "ttft_timeout", "queue_timeout")
REASONS = ("", *REJECT_REASONS, *TIMEOUT_REASONS)
"""Reason codes; 0 means that the state needs none."""

THROTTLED = REASONS.index("throttled")
NO_REPLICA = REASONS.index("no_replica")
SHED = REASONS.index("shed")
CODEL = REASONS.index("codel")
RATE_LIMITED = REASONS.index("rate_limited")
TOO_LONG = REASONS.index("too_long")
QUEUE_FULL = REASONS.index("queue_full")
