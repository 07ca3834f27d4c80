# SPDX-License-Identifier: BSD-2-Clause
"""What a suite in Python says: a line of TAP for each test, and the plan as its last line."""
results = {"ok": 0, "not ok": 0}


def say(word, rest):
    results[word] += 1
    print(word, "-", rest, flush=True)


def ok(name):
    say("ok", name)


def skip(name, why):
    say("ok", f"{name} # SKIP {why}")


def fail(name, why="", details=""):
    say("not ok", name + (f": {why}" if why else ""))
    for line in str(details).splitlines():
        print("#    ", line)


def judge(name, why, details=""):
    """A test that passes if there is nothing to say against it."""
    if why:
        fail(name, why, details)
    else:
        ok(name)


def end():
    """Returns the exit status of the suite."""
    print(f"1..{sum(results.values())}", flush=True)
    return 1 if results["not ok"] else 0
