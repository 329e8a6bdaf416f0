"""A system that lacks a layer, or is told to leave one out, says so."""

import pytest

from evaluator import confinement
from evaluator.judge import doctor
from evaluator.records import LAYERS


@pytest.fixture
def without(monkeypatch):
    """A kernel that lacks both landlock and seccomp filters."""
    monkeypatch.setattr(confinement._core, "landlock_abi", lambda: 0)
    monkeypatch.setattr(confinement._core, "seccomp_filters", lambda: False)


def test_this_kernel_has_seccomp():
    assert "seccomp" not in confinement.missing()
    assert "rlimits" not in confinement.missing()


def test_what_the_kernel_lacks_is_missing(without):
    assert confinement.missing() == ("landlock", "seccomp")


def test_what_is_left_out_is_missing():
    assert "rlimits" in confinement.missing(["landlock", "seccomp"])
    assert confinement.missing([]) == LAYERS


@pytest.mark.parametrize("layers", [("walls",), "rlimits,walls", ("rlimits", "Seccomp")])
def test_a_name_that_is_no_layer_is_refused(layers):
    with pytest.raises(ValueError, match="expected some of rlimits, landlock, seccomp"):
        confinement.missing(layers)


def test_a_missing_layer_is_a_warning_and_none_is_silence(recwarn):
    confinement.warn("a process", [])
    assert not recwarn
    with pytest.warns(RuntimeWarning, match="a process runs without landlock, seccomp: this kernel has no such thing"):
        confinement.warn("a process", ["landlock", "seccomp"])


def test_doctor_says_what_is_missing_and_the_cure(without):
    (finding,) = [finding for finding in doctor.examine() if finding.name == "sandbox"]
    assert "without landlock, seccomp" in finding.seen
    assert "lsm=landlock" in finding.cure
    assert "CONFIG_SECCOMP_FILTER" in finding.cure
