// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

extension HostCommand {
    static let usage = """
        meshhost: a host for mesh radios and other byte-link devices

        usage: meshhost COMMAND [options]

          run                       load modules, connect devices, serve clients
          check                     check the config without touching any device
          config show | schema      the config in force (secrets hidden) | every key it may have
          modules                   transport modules: found, loaded or refused, and why
          modules reset [NAME]      let modules be started again that crashed too often
          modules verify [NAME|FILE]...    whether they may be loaded, and their digests; loads nothing
          module-test MODULE.so     try a module against the rules [module-test --help]
          status                    how the daemon itself is, and what is wrong with it
          devices                   all devices with their links
          device NAME [VERB]        status | connect | disconnect | release [--for 10m] | reconnect
          clients                   who is connected to the shares
          listen [DEVICE]           events as JSON lines [--type link,advert] [--since SEQ] [--count N]
          reload                    the daemon reads its config again and changes what is different
          scan                      devices that can be heard [--for 10s] [--module NAME] [--jsonl]
          pair DEVICE|ADDRESS       pair with a device [--pin 123456|-] [--module bluez] [--adapter hci0]
          unpair DEVICE|ADDRESS     forget a device's keys [--module bluez] [--adapter hci0]
          doctor                    whether all that links need is there, and what to do if not
          hci info CONTROLLER       what a controller is and can do: hci1, unix:PATH or tcp:HOST:PORT
          bridge                    local clients reach a share of another host: --to HOST:PORT --listen HOST:PORT|PATH
                                    [--tls | --ca FILE | --pin SHA256] [--token NAME --secret-file FILE]
          decode companion HEX      what a companion frame says [--request HEX] [--secrets]
          decode packet HEX         what a packet over the air says [--channel '#NAME'|NAME=KEY]...
          decode lpp HEX            what sensor readings say
          decode hci|att|smp HEX    what Bluetooth packets say [--secrets]
          decode btsnoop FILE       a recording of them, packet by packet [--jsonl] [--secrets]
          encode companion JSON     the bytes of a command, reply or push, from what decode shows of one
          encode packet JSON        the bytes of a packet
          encode lpp JSON           the bytes of an array of sensor readings
          version                   version of this program

        options:
          -c, --config FILE         config file; repeatable; then /etc/meshhost is not read
              --set KEY=VALUE       override one key, such as daemon.log_level=debug
              --control PATH        control socket of the running daemon (or MESHHOST_CONTROL)
              --json                one JSON document instead of a table
          -q, --quiet               no output but errors
          -h, --help                this text

        Data goes to stdout, diagnostics to stderr. Exit status: 0 ok, 64 usage, 69 no daemon or another
        instance, not all could be applied, or doctor or status found a problem, 70 internal, 74 output, 77 permission,
        78 configuration.

        """
}

/// Exit statuses (sysexits.h).
enum ExitStatus: Int32 {
    case ok = 0
    case usage = 64
    case unavailable = 69
    case internalError = 70
    case inputOutput = 74
    case permission = 77
    case configuration = 78
}
