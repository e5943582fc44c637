# SPDX-License-Identifier: Apache-2.0
# meshhost: a host for mesh radios and other byte-link devices
"""The air between radios of one process: what one sends, the others hear, later, or not at all."""
import asyncio
import random

from openhop_core.hardware.base import LoRaRadio


class Ether:
    def __init__(self, latency=0.0, loss=0.0, seed=1):
        self.radios, self.latency, self.loss = [], latency, loss
        self.chance = random.Random(seed)
        self.deaf = set()                        # pairs of radios that do not hear each other

    def hears(self, a, b, yes):
        for pair in ((a, b), (b, a)):
            (self.deaf.discard if yes else self.deaf.add)(pair)

    def send(self, sender, data):
        for receiver in self.radios:
            if receiver is sender or (sender, receiver) in self.deaf:
                continue
            if self.loss and self.chance.random() < self.loss:
                continue
            asyncio.get_running_loop().call_later(self.latency, receiver.receive, data)


class EtherRadio(LoRaRadio):
    """What openhop-core drives in the place of LoRa hardware.

    The spreading factor and bandwidth here only set openhop-core's waiting times before it relays, so they are the
    fastest there are; what a companion tells its client is set apart from them.
    """
    spreading_factor, bandwidth, coding_rate, frequency, tx_power = 5, 500000, 5, 869525000, 20
    rssi, snr = -60, 9.5

    def __init__(self, ether):
        self.ether, self.callback = ether, None
        self.sent = self.received = 0
        ether.radios.append(self)

    def receive(self, data):
        if self.callback:
            self.received += 1
            self.callback(data, self.rssi, self.snr)

    async def send(self, data):
        self.sent += 1
        self.ether.send(self, bytes(data))
        return {"ok": True}

    def begin(self):
        return True

    async def wait_for_rx(self):
        await asyncio.Event().wait()

    def sleep(self):
        pass

    def get_last_rssi(self):
        return self.rssi

    def get_last_snr(self):
        return self.snr

    def set_rx_callback(self, callback):
        self.callback = callback

    def configure_radio(self, **_):              # accepted, without effect on this air
        return True

    def set_tx_power(self, power):
        self.tx_power = power
        return True
