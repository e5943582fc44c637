# SPDX-License-Identifier: Apache-2.0
# meshhost: a host for mesh radios and other byte-link devices
"""What goes wrong on demand before a call is answered, and the switches that change how the facade behaves."""
import asyncio
import random
import shlex

from objects import DBusError

ABORT = ("Failed", "le-connection-abort-by-local")


class Chance:
    """How often: a number of times, or a share such as 50%."""

    def __init__(self, text="0", seed=1):
        self.share = float(text[:-1]) / 100 if text.endswith("%") else None
        self.left = 0 if self.share is not None else int(text)
        self.dice = random.Random(seed)

    def happens(self):
        if self.share is not None:
            return self.dice.random() < self.share
        self.left -= 1
        return self.left >= 0


class Faults:
    def __init__(self):
        self.failing, self.delays, self.hanging = {}, {}, {}      # by TARGET
        self.hung = []                           # (target, path, future) of the calls that hang
        self.abort = Chance()
        self.early_resolved = 0.0                # seconds by which ServicesResolved comes before the objects
        self.no_resolve = False                  # ServicesResolved never comes
        self.deaf = False                        # a search hears nothing until it is begun anew
        self.duplicate = False                   # every value is told twice
        self.old = False                         # as BlueZ 5.66: no Disconnected, Connect fails with a lost bond
        self.keep_gatt = False                   # bonded devices keep their GATT objects while disconnected

    def command(self, words):
        """True if the words are one of these faults."""
        word, *rest = shlex.split(" ".join(words))
        if word == "fail":                       # fail TARGET ERROR COUNT|SHARE% [TEXT]
            self.failing[rest[0]] = (Chance(rest[2]), DBusError(rest[1], " ".join(rest[3:])))
        elif word == "delay":                    # delay TARGET SECONDS COUNT|SHARE%
            self.delays[rest[0]] = (Chance(rest[2]), float(rest[1]))
        elif word == "hang":                     # hang TARGET COUNT|SHARE%
            self.hanging[rest[0]] = Chance(rest[1])
        elif word == "abort":                    # abort COUNT|SHARE%
            self.abort = Chance(rest[0])
        elif word == "early-resolved":
            self.early_resolved = float(rest[0])
        elif word in ("no-resolve", "duplicate", "keep-gatt", "old", "deaf"):
            setattr(self, word.replace("-", "_"), rest[0] == "on")
        elif word == "clear":
            self.__init__()
        else:
            return False
        return True

    async def before(self, target, path):
        """Called with "Device1.Connect" and the object's path before that is carried out."""
        for chance, seconds in self._for(self.delays, target, path):
            if chance.happens():
                await asyncio.sleep(seconds)
        for chance in self._for(self.hanging, target, path):
            if chance.happens():
                await self._hang(target, path)
        for chance, error in self._for(self.failing, target, path):
            if chance.happens():
                raise error

    @staticmethod
    def _for(faults, target, path):
        """Those whose TARGET, or TARGET@PART, this call is."""
        for key, fault in list(faults.items()):
            name, _, part = key.partition("@")
            if name in (target, target.partition(".")[2], "*") and part.replace(":", "_") in path:
                yield fault

    async def _hang(self, target, path):
        future = asyncio.get_running_loop().create_future()
        self.hung.append((target, path, future))
        await future                             # Disconnect ends a hanging Connect; the rest hang for ever

    def release(self, target, path):
        for name, where, future in self.hung:
            if (name, where) == (target, path) and not future.done():
                future.set_exception(DBusError(*ABORT))
        self.hung = [entry for entry in self.hung if not entry[2].done()]
