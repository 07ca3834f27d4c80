#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Is exceeding the instruction budget noticed? Made-up counts against bench/budget.txt."""
import sys

sys.dont_write_bytecode = True
import budget

TEXT = budget.text_of(budget.BUDGET)
TODAY = {path: int(number) for path, number in budget.ROW.findall(TEXT)}
WHERE = budget.WITH.search(TEXT).group(1)

results = []


def equal(name, found, wanted):
    results.append(found == wanted)
    if found != wanted:
        print(f"# {found!r} and not {wanted!r}")
    print(f"{'ok' if found == wanted else 'not ok'} {len(results)} - {name}")


def scaled(factor):
    return {path: count * factor for path, count in TODAY.items()}


def faults(counts, text=TEXT):
    return [path for path, _, _, why in budget.judge(counts, text) if why]


def lower(counts, text=TEXT):
    return [path for path, now, may, _ in budget.judge(counts, text) if budget.remark(now, may)]


def test_paths():
    wanted = {f"ring {name}" for name in "post poll send write write_imm write_large srq xrc dc"
              .split()} | {f"udp {name}" for name in "post send write write_large".split()}
    equal("the budget has all hot paths", set(TODAY), wanted)


def test_growth():
    equal("what costs as much as it may is good", faults(TODAY), [])
    equal("2 % more is good", faults(scaled(1.02)), [])
    equal("4 % more is too much, on each path", faults(scaled(1.04)), list(TODAY))
    one = dict(TODAY, **{"ring dc": TODAY["ring dc"] * 1.04})
    equal("4 % more on one path is too much on that path", faults(one), ["ring dc"])
    tight = budget.rewritten(TEXT, scaled(0.96), WHERE)
    equal("a budget that is 4 % lower fails", faults(TODAY, tight), list(TODAY))


def test_less():
    equal("4 % less may be lowered, and fails nothing",
          (lower(scaled(0.96)), faults(scaled(0.96))), (list(TODAY), []))
    equal("2 % less is not worth a word", lower(scaled(0.98)), [])


def test_unknown():
    without = {path: count for path, count in TODAY.items() if path != "udp send"}
    equal("a path that nothing counts fails", faults(without), ["udp send"])
    equal("a path without a budget fails", faults(dict(TODAY, **{"udp more": 7})), ["udp more"])


def test_rewrite():
    equal("the same counts leave the file as it is", budget.rewritten(TEXT, TODAY, WHERE), TEXT)
    other = budget.rewritten(TEXT, dict(scaled(2), **{"udp more": 7}), "gcc 99")
    equal("other counts are written, of new paths too",
          faults(dict(scaled(2), **{"udp more": 7}), other), [])
    equal("and where they are from", budget.WITH.search(other).group(1), "gcc 99")


for test in (test_paths, test_growth, test_less, test_unknown, test_rewrite):
    test()
print(f"1..{len(results)}")
