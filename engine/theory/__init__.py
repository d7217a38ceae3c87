"""Theory: closed forms of queues that are simple enough to have one, to hold beside what is simulated."""

from engine.theory.waiting import allen_cunneen, erlang_c, kingman, pollaczek_khinchine

__all__ = ["allen_cunneen", "erlang_c", "kingman", "pollaczek_khinchine"]
