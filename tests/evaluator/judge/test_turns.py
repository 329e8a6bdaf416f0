"""Turns: who goes next, that no more go in than there are places, and what is left after an interrupt."""

import dataclasses
import itertools
import random
import threading

import pytest

from evaluator.judge.turns import MOST_OVERTAKEN, Turns, next_of


@dataclasses.dataclass(eq=False)
class Queued:
    kind: str
    overtaken: int = 0


def order(kinds, last):
    """The kinds in the order in which they are let in, and the greatest number of those that any was passed by."""
    waiting, found, most = [Queued(kind) for kind in kinds], [], 0
    while waiting:
        chosen = next_of(waiting, lambda each, last=last: each.kind != last)
        waiting.remove(chosen)
        most = max(most, chosen.overtaken)
        last = chosen.kind
        found.append(chosen.kind)
    return "".join(found), most


@pytest.mark.parametrize(
    ("kinds", "last", "expected"),
    [("", "a", ""), ("abab", "", "aabb"), ("abab", "b", "bbaa"), ("abcabc", "c", "ccaabb"), ("aaaa", "b", "aaaa")],
)
def test_those_of_one_kind_go_in_a_row(kinds, last, expected):
    assert order(kinds, last)[0] == expected


def test_the_one_that_came_first_is_passed_a_few_times_at_most():
    found, most = order("b" + 30 * "a", "a")
    assert found == MOST_OVERTAKEN * "a" + "b" + (30 - MOST_OVERTAKEN) * "a"
    assert most == MOST_OVERTAKEN


def test_nobody_waits_for_ever_while_others_of_another_kind_keep_coming():
    waiting, endless = [Queued("b"), Queued("b")], itertools.count()
    for _ in endless:
        waiting.append(Queued("a"))
        chosen = next_of(waiting, lambda each: each.kind != "a")
        waiting.remove(chosen)
        if not any(each.kind == "b" for each in waiting):
            break
    assert next(endless) <= 2 * (MOST_OVERTAKEN + 1)


class Crowd:
    """Threads that take turns; those inside leave one by one when they are told to."""

    def __init__(self, turns):
        self.turns, self.inside, self.log, self.paused, self.threads = turns, {}, [], [], []
        self.changed = threading.Condition()

    def come(self, name, kind, **how):
        """A thread that asks for a turn; returns when it is inside or waits."""
        known = len(self.log) + len(self.paused)
        self.threads.append(threading.Thread(target=self._live, args=(name, kind, how), daemon=True))
        self.threads[-1].start()
        self.until(lambda: len(self.log) + len(self.paused) > known)

    def leave(self, name):
        """Returns when it has left."""
        self.inside[name].set()
        self.until(lambda: name not in self.inside)

    def _live(self, name, kind, how):
        with self.turns.taken(kind, lambda waits: self._note(self.paused, name) if waits else None, **how):
            leaves = self.inside[name] = threading.Event()
            self._note(self.log, name)
            leaves.wait(60)
        del self.inside[name]
        with self.changed:
            self.changed.notify_all()

    def _note(self, where, name):
        with self.changed:
            where.append(name)
            self.changed.notify_all()

    def until(self, happened):
        with self.changed:
            assert self.changed.wait_for(happened, 60)

    def run_out(self, count):
        """Lets everybody go, as they come in, until `count` have been inside."""
        while len(self.log) < count or self.inside:
            for name in list(self.inside):
                self.leave(name)
        for thread in self.threads:
            thread.join(60)
        return self.log


def test_short_work_first_then_the_kind_that_was_inside_then_who_came_first():
    crowd = Crowd(Turns())
    crowd.come("1", "a")
    for name, kind, first in (("2", "b", False), ("3", "a", False), ("4", "c", True), ("5", "a", False)):
        crowd.come(name, kind, first=first)
    assert crowd.paused == ["2", "3", "4", "5"]
    assert crowd.run_out(5) == ["1", "4", "3", "5", "2"]


def test_as_many_as_there_are_places_are_inside():
    crowd = Crowd(Turns(2))
    for number in range(4):
        crowd.come(str(number), number)
    assert sorted(crowd.inside) == ["0", "1"]
    crowd.leave("0")
    crowd.until(lambda: sorted(crowd.inside) == ["1", "2"])
    crowd.run_out(4)


def test_of_those_that_must_be_alone_one_is_inside_and_others_go_before():
    crowd = Crowd(Turns(2))
    crowd.come("1", "same", alone=True)
    crowd.come("2", "same", alone=True)
    crowd.come("3", "other", alone=True)
    assert sorted(crowd.inside) == ["1", "3"]
    assert crowd.run_out(3)[-1] == "2"


def test_a_turn_is_given_back_by_whoever_fails():
    turns = Turns()
    with pytest.raises(ValueError, match="inside"), turns.taken("a"):
        raise ValueError("inside")
    with turns.taken("a", lambda waits: pytest.fail("it waits")):
        pass


def test_who_is_interrupted_while_waiting_is_forgotten():
    crowd = Crowd(Turns())
    crowd.come("1", "a")

    def interrupted(waits):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), crowd.turns.taken("a", interrupted):
        pass
    crowd.come("2", "a")
    assert crowd.run_out(2) == ["1", "2"]


@pytest.mark.parametrize("places", [1, 3])
def test_many_threads_are_all_let_in_and_never_too_many(places):
    turns, lock, inside, most, done = Turns(places), threading.Lock(), [], [], []

    def live(seed):
        rng = random.Random(seed)
        for _ in range(20):
            with turns.taken(rng.randrange(4), first=rng.random() < 0.1, alone=rng.random() < 0.5):
                with lock:
                    inside.append(seed)
                    most.append(len(inside))
                with lock:
                    inside.remove(seed)
                    done.append(seed)

    threads = [threading.Thread(target=live, args=(seed,), daemon=True) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(done) == 160
    assert max(most) <= places
