#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# meshhost: a host for mesh radios and other byte-link devices
#
# Starts the program with the Swift runtime it was installed with. The program and every module it loads take their
# libraries from there: two runtimes in one process do not work, and one of a toolchain may be replaced at any time.
here=$(dirname "$(readlink -f "$0")")
LD_LIBRARY_PATH=$here/../lib/meshhost/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export LD_LIBRARY_PATH
exec "$here/../lib/meshhost/meshhost" "$@"
