# SPDX-License-Identifier: Apache-2.0
# meshhost: a host for mesh radios and other byte-link devices
# Shell functions for the inside of the VM; sourced by guest/init and by tests.

logs=/run/vmrig

# wait_for SECONDS CMD...: try CMD until it succeeds.
wait_for() {
    local end=$((SECONDS + $1)); shift
    until "$@" >/dev/null 2>&1; do
        [ $SECONDS -lt $end ] || { echo "wait_for: gave up on: $*" >&2; return 1; }
        sleep 0.05
    done
}

# --- Controllers -------------------------------------------------------------------------------

# controllers_start [N]: N virtual LE controllers, hci0..hciN-1, which hear each other.
controllers_start() {
    local count=${1:-$VMRIG_CONTROLLERS} try
    # On a very busy machine the kernel may give up on a controller (2 s per command).
    for try in 1 2 3; do
        btvirt -L "-l$count" >>$logs/btvirt.log 2>&1 &
        echo $! >/run/btvirt.pid
        wait_for 15 controllers_ready "$count" && return
        controllers_stop
    done
    return 1
}

controllers_ready() { [ "$(mgmt info | grep -c '^hci')" = "$1" ]; }

# controllers_stop: as if all were unplugged.
controllers_stop() { stop "$(cat /run/btvirt.pid)" KILL; }

# power on|off [hciN]: through the kernel, as rfkill would, not through bluetoothd.
power() { mgmt -i "${2:-hci0}" power "$1" >/dev/null; }

# mgmt ARG...: btmgmt; which does nothing when its stdin has ended.
mgmt() { btmgmt "$@" <>/run/never-ending; }

# --- bluetoothd --------------------------------------------------------------------------------

# bluetoothd_start: it tells all it does when traffic is recorded, too. Returns when it serves hci0. Only hci0 is switched on (see guest/init).
bluetoothd_start() {
    local debug=
    [ "$VMRIG_BTMON" = 0 ] || debug=-d
    bluetoothd -n $debug >>$logs/bluetoothd.log 2>&1 &
    echo $! >/run/bluetoothd.pid
    wait_for 20 adapter_ready && power on
}

adapter_ready() {
    dbus-send --system --print-reply --dest=org.bluez /org/bluez/hci0 \
        org.freedesktop.DBus.Properties.Get string:org.bluez.Adapter1 string:Address
}

# bluetoothd_stop [SIGNAL]
bluetoothd_stop() { stop "$(cat /run/bluetoothd.pid)" "${1:-TERM}"; }

# stop PID [SIGNAL]: returns when the process is gone.
stop() {
    kill "-${2:-TERM}" "$1"
    while kill -0 "$1" 2>/dev/null; do wait "$1" 2>/dev/null || sleep 0.02; done
}
