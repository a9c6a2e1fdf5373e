"""A cluster without workers: all is done at once, here, and results are their own futures."""

from __future__ import annotations

from bayesring.engine.spread import Workers


class Serial(Workers):
    """Remembers the names of what it did."""

    def __init__(self, n_threads=1):
        self.n_threads = n_threads
        self.names = []

    def threads(self):
        return [f"worker {number}" for number in range(self.n_threads)]

    def submit(self, name, function, *arguments, worker=None, urgency=0):
        self.names.append(name)
        return function(*arguments)

    def keep(self, name, value):
        return value

    def results(self, futures):
        return list(futures)

    def wait(self, futures):
        return
