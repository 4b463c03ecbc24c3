"""Where simulations run: one small protocol, and the local pool behind it."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol, TypeVar

from sim.engine import Engine

T = TypeVar("T")
R = TypeVar("R")

_LONGEST_WAIT_S = 1.0


class Backend(Protocol):
    """Runs pieces of work on engines.

    `map` calls `work(engine, item)` for every item, in any order and several at a time, and yields (position, result)
    as they finish. No two calls share an engine at a time. An exception of `work` ends the iteration and is raised
    there; leaving the iteration early cancels what has not begun.
    """

    workers: int

    def map(self, work: Callable[[Engine, T], R], items: Sequence[T]) -> Iterator[tuple[int, R]]: ...

    def close(self) -> None:
        """Stop all processes, also those in the middle of something."""
        ...


class LocalPool:
    """Threads of this process, each driving a harness process of its own.

    Threads suffice: a worker waits for its harness nearly all the time (measured: 1 ms of Python a testbench).
    """

    def __init__(self, workers: int, make_engine: Callable[[], Engine]) -> None:
        self.workers = workers
        self._make_engine = make_engine
        self._idle: queue.LifoQueue[Engine] = queue.LifoQueue()
        self._engines: list[Engine] = []
        self._lock = threading.Lock()
        self._closed = False
        self._threads = ThreadPoolExecutor(workers, thread_name_prefix="simulate")

    def map(self, work: Callable[[Engine, T], R], items: Sequence[T]) -> Iterator[tuple[int, R]]:
        done: queue.SimpleQueue[tuple[int, R | None, BaseException | None]] = queue.SimpleQueue()
        stopped = threading.Event()

        def one(position: int, item: T) -> None:
            if stopped.is_set():
                return
            try:
                engine = self._take()
                try:
                    done.put((position, work(engine, item), None))
                finally:
                    self._idle.put(engine)
            except BaseException as error:
                done.put((position, None, error))

        futures = [self._threads.submit(one, i, item) for i, item in enumerate(items)]
        try:
            for _ in items:
                position, result, error = _next(done)
                if error is not None:
                    raise error
                yield position, result  # type: ignore[misc]
        finally:
            stopped.set()
            for future in futures:
                future.cancel()

    def call(self, work: Callable[[Engine], Any]) -> Any:
        """Run one piece of work in the calling thread."""
        engine = self._take()
        try:
            return work(engine)
        finally:
            self._idle.put(engine)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            engines, self._engines = self._engines, []
        for engine in engines:
            engine.abort()
        self._threads.shutdown(wait=True, cancel_futures=True)
        for engine in engines:
            engine.close()

    def _take(self) -> Engine:
        try:
            return self._idle.get_nowait()
        except queue.Empty:
            pass
        with self._lock:
            if self._closed:
                raise RuntimeError("the pool is closed")
            engine = self._make_engine()
            self._engines.append(engine)
        return engine


def _next(done: queue.SimpleQueue[T]) -> T:
    """The next entry. Waits with a timeout, since an untimed wait does not notice Ctrl-C: importing polars installs a
    signal handler with SA_RESTART, under which only timed waits are interrupted."""
    while True:
        try:
            return done.get(timeout=_LONGEST_WAIT_S)
        except queue.Empty:
            continue
