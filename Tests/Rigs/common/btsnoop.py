# SPDX-License-Identifier: Apache-2.0
# meshhost: a host for mesh radios and other byte-link devices
"""Reads btsnoop recordings without the host's help: RFC 1761 with Symbian's data links, packets by Bumble."""
import struct
from collections import namedtuple

from bumble.hci import HCI_Packet

H4 = 1002
# Microseconds from the year 0 to 1970.
EPOCH = 0x00DCDDB30F2F8000

Record = namedtuple("Record", "packet from_controller is_control drops time")


def read(path):
    """All records of a file; an assertion fails for what is none."""
    with open(path, "rb") as file:
        data = file.read()
    magic, version, link = struct.unpack_from(">8sII", data)
    assert (magic, version, link) == (b"btsnoop\0", 1, H4), (magic, version, link)
    at, records = 16, []
    while at < len(data):
        original, included, flags, drops, time = struct.unpack_from(">IIIIQ", data, at)
        assert original == included, f"a packet was cut at {at}"
        raw = data[at + 24:at + 24 + included]
        assert len(raw) == included, f"the record at {at} is not whole"
        records.append(Record(HCI_Packet.from_bytes(raw), bool(flags & 1), bool(flags & 2), drops, (time - EPOCH) / 1e6))
        at += 24 + included
    return records
