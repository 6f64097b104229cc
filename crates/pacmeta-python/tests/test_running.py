"""Threads, memory, Ctrl-C, progress, reports and figures."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
import time
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import sine_tasks

import pacmeta


def resident() -> int:
    """Bytes of this process in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="the memory of a process is read from /proc")
def test_memory_does_not_grow_over_a_thousand_calls(prior: pacmeta.Prior) -> None:
    x, y, query = np.linspace(-1, 1, 5), np.linspace(0, 1, 5), np.linspace(-2, 2, 5000)
    marked = [(x, y, [0, 1])]

    def calls(count: int) -> None:
        for _ in range(count):
            posterior = prior.adapt(x, y)
            posterior.predict(query)
            posterior.interval(query.tolist()[:50])
            prior.bound(marked)
            pacmeta.Prior.from_bytes(prior.to_bytes())
            with pytest.raises(ValueError):
                prior.adapt(x, y[:2])
        gc.collect()

    calls(200)
    before = resident()
    calls(1000)
    # A call makes arrays of 80 kB: were one of them kept, there would be 80 MB more.
    assert resident() - before < 8_000_000


def test_arrays_are_borrowed_not_kept(prior: pacmeta.Prior) -> None:
    x, y, query = np.linspace(-1, 1, 5), np.linspace(0, 1, 5), np.linspace(-2, 2, 7)
    before = [sys.getrefcount(array) for array in (x, y, query)]
    posterior = prior.adapt(x, y)
    mean, _ = posterior.predict(query)
    assert [sys.getrefcount(array) for array in (x, y, query)] == before
    x[:] = 100.0
    assert posterior.predict(query)[0].tobytes() == mean.tobytes(), "the posterior does not look at x again"
    # Any layout and type of numbers gives the same as the plain one.
    wide = np.stack([query, query], axis=1)
    for same in (wide[:, 0], query.tolist(), query.reshape(-1, 1), np.asfortranarray(wide)[:, :1]):
        assert posterior.predict(same)[0].tobytes() == mean.tobytes()
    whole = np.arange(-2, 3)
    assert posterior.predict(whole)[0].tobytes() == posterior.predict(whole.astype(float))[0].tobytes()


def test_queries_are_not_copied(prior: pacmeta.Prior) -> None:
    posterior = prior.adapt(*sine_tasks(1)[0])
    query = np.linspace(-2, 2, 400_000)

    def peak(array: Any) -> int:
        tracemalloc.start()
        posterior.predict(array)
        bytes_at_most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return bytes_at_most

    assert peak(query) < 1_000_000 and peak(query.reshape(-1, 1)) < 1_000_000
    assert peak(query.astype(np.float32)) > 3_000_000, "what NumPy allocates is seen"


def test_threads_at_once_get_the_same_numbers(prior: pacmeta.Prior) -> None:
    rng = np.random.default_rng(0)
    jobs = [(rng.uniform(-2, 2, 8), rng.normal(size=8), rng.uniform(-2, 2, 300)) for _ in range(64)]

    def job(parts: Any) -> bytes:
        x, y, query = parts
        return b"".join(array.tobytes() for array in prior.adapt(x, y).predict(query))

    expected = [job(parts) for parts in jobs]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(job, jobs)) == expected
        trained = list(pool.map(lambda seed: pacmeta.meta_learn(sine_tasks(5), beta=50, alpha=10, iterations=30, seed=0), range(4)))
    assert all(run.prior == trained[0].prior for run in trained)


def ticks_during(work: Any) -> int:
    """How often another thread has a turn: twice, before and after, if the lock is kept."""
    ticks = 0
    done = threading.Event()

    def count() -> None:
        nonlocal ticks
        while not done.is_set():
            ticks += 1
            time.sleep(0.001)

    other = threading.Thread(target=count)
    other.start()
    work()
    done.set()
    other.join()
    return ticks


def test_the_lock_is_released_while_training_and_predicting(prior: pacmeta.Prior) -> None:
    assert ticks_during(lambda: pacmeta.meta_learn(sine_tasks(10), beta=50, alpha=10, iterations=3000)) > 5
    posterior, query = prior.adapt(*sine_tasks(1)[0]), np.linspace(-2, 2, 400_000)
    assert ticks_during(lambda: posterior.predict(query)) > 5


SCRIPT = """
import signal, sys, numpy as np, pacmeta
# A shell without job control lets what it starts in the background ignore Ctrl-C.
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.path.insert(0, {tests!r})
from conftest import sine_tasks
told = []
def progress(done, total, objective):
    if not told:
        print("begun", flush=True)
    told.append(done)
try:
    pacmeta.meta_learn(sine_tasks(10), {arguments}, out={out!r}, progress=progress)
except KeyboardInterrupt:
    print("interrupted", told[-1] if told else 0, flush=True)
"""


def test_ctrl_c_stops_training_which_then_continues(tmp_path: Path) -> None:
    arguments = "beta=50, alpha=10, iterations=20000, settings={'training.checkpoint_every': 5000}"
    tests = str(Path(__file__).parent)
    text = SCRIPT.format(tests=tests, arguments=arguments, out=str(tmp_path / "run"))
    child = subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert child.stdout.readline() == "begun\n"
    child.send_signal(signal.SIGINT)
    word, reached = child.stdout.read().split()
    assert word == "interrupted"
    assert child.wait() == 0
    assert any((tmp_path / "run/checkpoints").iterdir()), "a checkpoint was written"
    settings = {"training.checkpoint_every": 5000}
    common = {"beta": 50, "alpha": 10, "iterations": 20000, "settings": settings}
    told: list[int] = []
    continued = pacmeta.meta_learn(
        sine_tasks(10), **common, out=tmp_path / "run", progress=lambda done, total, value: told.append(done)
    )
    assert told[0] > int(reached), "what was learned before is not learned again"
    assert told[-1] == 20000
    assert continued.prior == pacmeta.meta_learn(sine_tasks(10), **common).prior


def test_ctrl_c_stops_the_search_for_temperatures(tmp_path: Path) -> None:
    text = SCRIPT.format(
        tests=str(Path(__file__).parent), arguments="settings={'search.iterations': 100000}", out=str(tmp_path / "run")
    )
    child = subprocess.Popen([sys.executable, "-c", text.replace("try:", "print('begun', flush=True)\ntry:")], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert child.stdout.readline() == "begun\n"
    time.sleep(0.5)
    child.send_signal(signal.SIGINT)
    assert "interrupted 0" in child.stdout.read()
    assert child.wait() == 0


def test_what_progress_raises_stops_and_is_raised(tasks: Any) -> None:
    def refuse(done: int, total: int, objective: float) -> None:
        raise LookupError("enough")

    with pytest.raises(LookupError, match="enough"):
        pacmeta.meta_learn(tasks, beta=50, alpha=10, iterations=100_000, progress=refuse)
    told: list[tuple[int, int, float]] = []
    pacmeta.meta_learn(tasks, beta=50, alpha=10, iterations=50, progress=lambda *values: told.append(values))
    assert told[-1][:2] == (50, 50) and np.isfinite(told[-1][2])
    pacmeta.meta_learn(tasks, beta=50, alpha=10, iterations=50, progress=True)


def test_reports_are_shown_inline(run: pacmeta.Run) -> None:
    shown = run._repr_html_()
    assert shown.startswith("<iframe srcdoc=") and "&lt;svg" in shown
    assert "RMSE" in repr(run)
    assert list(run.scores) == ["pacmaml", "plain GP, support only", "prior mean, not adapted"]


def test_figures(run: pacmeta.Run, prior: pacmeta.Prior) -> None:
    import matplotlib

    matplotlib.use("Agg")
    x, y = np.linspace(-1, 1, 5), np.sin(np.linspace(-1, 1, 5))
    ax = pacmeta.plot(prior, support=(x, y))
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels == ["prior mean", "posterior mean", "95% interval", "50% interval", "support"]
    mean = ax.lines[1].get_ydata()
    grid = ax.lines[1].get_xdata()
    np.testing.assert_array_equal(mean, prior.adapt(x, y).predict(grid)[0])
    assert pacmeta.plot(posterior=prior.adapt(x, y), low=-1, high=1).lines
    assert pacmeta.plot(run, low=-1, high=1).lines
    for wrong in ({}, {"prior": prior}, {"prior": "file"}):
        with pytest.raises(ValueError, match="expected a prior|give low and high|expected a pacmeta.Prior, found str"):
            pacmeta.plot(**wrong)


def test_a_prior_is_what_a_posterior_of_nothing_would_be(prior: pacmeta.Prior) -> None:
    query = np.linspace(-2, 2, 9)
    mean, std = prior.predict(query)
    # At a temperature near zero nothing is learned from the support.
    posterior = prior.adapt([0.0], [100.0], temperature=1e-9)
    np.testing.assert_allclose(posterior.predict(query)[0], mean, atol=1e-4)
    assert (std > 0).all() and np.ptp(std) < 1e-12
