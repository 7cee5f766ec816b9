"""Where the per-bundle work runs: any executor of `concurrent.futures`; here, processes of this machine.

Workers are started afresh (spawn), never forked: polars has threads of its own, and a forked copy of it can hang.
This module must not import polars, so that a worker's setting of POLARS_MAX_THREADS comes before its import.
"""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor, as_completed
from multiprocessing.connection import wait
from typing import TypeVar

Task = TypeVar("Task")
Result = TypeVar("Result")
ExecutorMaker = Callable[[int], Executor]
"""Makes an executor with at most that many workers."""


def local_processes(worker_count: int) -> Executor:
    """Return a pool of worker processes on this machine; none is started before the first task."""
    context = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(max(1, worker_count), mp_context=context, initializer=_prepare_worker)


def processor_count() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0))


def _prepare_worker() -> None:
    os.environ["POLARS_MAX_THREADS"] = "1"  # each worker is one of as many as there are processors
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """A worker whose harvest was killed would wait for tasks for ever, and may hold a file of the next one's."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


def each_result(
    make_executor: ExecutorMaker,
    function: Callable[[Task], Result],
    tasks: Sequence[Task],
    crashed: Callable[[Task, str], Result],
) -> Iterator[Result]:
    """Yield `function(task)` for each task, in any order; a task that kills its worker gives `crashed(task, why)`.

    A dead worker takes the whole pool with it. Its unfinished tasks run again, one by one, each in a pool of its
    own, so that only the one that kills is given up.

    Raises:
        whatever `function` raises.
    """
    unfinished = dict(enumerate(tasks))
    with make_executor(min(processor_count(), len(tasks))) as executor:
        numbers: dict[Future[Result], int] = {executor.submit(function, task): n for n, task in enumerate(tasks)}
        try:
            for future in as_completed(numbers):
                result = future.result()
                del unfinished[numbers[future]]
                yield result
        except BrokenExecutor:
            pass
        except BaseException:
            executor.shutdown(cancel_futures=True)
            raise
    for task in unfinished.values():
        yield _alone(make_executor, function, task, crashed)


def _alone(
    make_executor: ExecutorMaker,
    function: Callable[[Task], Result],
    task: Task,
    crashed: Callable[[Task, str], Result],
) -> Result:
    with make_executor(1) as executor:
        try:
            return executor.submit(function, task).result()
        except BrokenExecutor as error:
            return crashed(task, f"its reader died: {error}")
