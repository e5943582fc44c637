#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# meshhost: a host for mesh radios and other byte-link devices
"""A device behind a datagram socket that gives back every frame, for as long as a program runs.

    echo.py PATH PROGRAM...      the exit status is the program's
"""
import os
import socket
import subprocess
import sys
import threading


def echo(device):
    while True:
        frame, host = device.recvfrom(65536)
        try:
            device.sendto(frame, host)
        except OSError:
            pass                                         # It has gone in between.


def main(path, *program):
    device = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    if os.path.exists(path):
        os.unlink(path)
    device.bind(path)
    threading.Thread(target=echo, args=(device,), daemon=True).start()
    try:
        return subprocess.run(program, check=False).returncode
    finally:
        os.unlink(path)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
