"""An engine whose blocks live in other processes, for tests only."""

from __future__ import annotations

import multiprocessing
import pickle

from bayesring.engine.protocol import Engine


def serve(pipe):
    """Keep blocks, and work on them when asked, until told to stop."""
    kept = {}
    while True:
        message = pipe.recv_bytes()
        if not message:
            return
        name, *rest = pickle.loads(message)
        if name == "keep":
            place, block = rest
            kept[place] = block
        else:
            operation, task, places = rest
            pipe.send_bytes(pickle.dumps([operation(task, kept[place]) for place in places]))


class Processes(Engine):
    """Workers that hold blocks and nothing else; tasks and results travel as bytes."""

    def __init__(self, n_jobs=2):
        self.n_jobs = n_jobs
        self._placed = {}
        context = multiprocessing.get_context("spawn")
        self._pipes, self._workers = [], []
        for _ in range(n_jobs):
            ours, theirs = context.Pipe()
            worker = context.Process(target=serve, args=(theirs,), daemon=True)
            worker.start()
            self._pipes.append(ours)
            self._workers.append(worker)

    def __exit__(self, *exception):
        for pipe, worker in zip(self._pipes, self._workers, strict=True):
            pipe.send_bytes(b"")
            worker.join()

    def place(self, blocks):
        for block in blocks:
            place = len(self._placed)
            self._placed[id(block)] = (place, block)  # the block stays alive, and its number unique
            self._pipes[place % self.n_jobs].send_bytes(pickle.dumps(("keep", place, block)))
        return blocks

    def map_blocks(self, operation, task, blocks):
        places = [self._placed[id(block)][0] for block in blocks]
        results = {}
        for worker, pipe in enumerate(self._pipes):
            own = [place for place in places if place % self.n_jobs == worker]
            pipe.send_bytes(pickle.dumps(("work", operation, task, own)))
            results |= dict(zip(own, pickle.loads(pipe.recv_bytes()), strict=True))
        return [results[place] for place in places]

    def map_chains(self, work, chains):
        return [work(chain) for chain in chains]

    def map_pieces(self, work, pieces):
        return [work(piece) for piece in pieces]
