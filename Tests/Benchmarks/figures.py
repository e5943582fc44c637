# SPDX-License-Identifier: Apache-2.0
# meshhost: a host for mesh radios and other byte-link devices
"""What is measured of a process, and what was promised."""
import contextlib
import os


class Figures:
    """What was measured, and what was promised."""

    def __init__(self, judging):
        self.rows, self.judging = [], judging

    def add(self, name, text, value=None, bound=None, unit=""):
        """`value` at most `bound`, where there is one."""
        if not self.judging:
            bound = None
        if bound is None:
            verdict = ""
        else:
            verdict = f"bound {bound:g}{unit}: {'met' if value <= bound else 'MISSED'}"
        self.rows.append((name, text, verdict, bound is None or value <= bound))
        print(f"  {name}: {text}{'  ' if verdict else ''}{verdict}", flush=True)

    @property
    def missed(self):
        return [row for row in self.rows if not row[3]]


def processor_seconds(pid):
    """What all threads of a process have used, in nanosecond steps where the kernel tells them."""
    try:
        total = 0
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/schedstat", encoding="ascii") as file:
                total += int(file.read().split()[0])
        if total:
            return total / 1e9
    except OSError:
        pass
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def wake_ups(pid):
    """How often each thread has gone to sleep, by thread: threads may come and end meanwhile."""
    counts = {}
    for task in os.listdir(f"/proc/{pid}/task"):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{task}/status", encoding="ascii") as file:
            counts[task] = next(int(line.split()[1]) for line in file if line.startswith("voluntary_ctxt_switches"))
    return counts
