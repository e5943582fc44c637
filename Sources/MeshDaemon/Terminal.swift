// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import FoundationEssentials
internal import Glibc
internal import MeshTransportAPI

/// Standard output for data, standard error for diagnostics.
enum Terminal {
    /// Opens `/dev/null` in the place of standard descriptors that are closed: what is opened next would take their
    /// numbers, and get what is meant for a terminal.
    static func openMissingDescriptors() {
        for descriptor in STDIN_FILENO...STDERR_FILENO where fcntl(descriptor, F_GETFD) < 0 {
            // The lowest free number: this one.
            _ = open("/dev/null", O_RDWR)
        }
    }

    /// Writes data. Ends the program quietly when nobody reads any more, as `head` does to its neighbours, and with
    /// ``ExitStatus/inputOutput`` when the data cannot be written.
    static func write(_ text: String) {
        write(Data(text.utf8))
    }

    static func write(_ data: Data) {
        var bytes = [UInt8](data)[...]
        while !bytes.isEmpty {
            let count = bytes.withUnsafeBytes { Glibc.write(STDOUT_FILENO, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else {
                let reason = errno
                if reason == EPIPE { exit(ExitStatus.ok.rawValue) }
                complain("meshhost: cannot write to standard output: \(String(cString: strerror(reason)))")
                exit(ExitStatus.inputOutput.rawValue)
            }
            bytes = bytes.dropFirst(count)
        }
    }

    /// Writes one JSON document.
    static func write(_ document: JSONValue) {
        write(document.serialized(pretty: true) + Data("\n".utf8))
    }

    /// Tells of a mistake on the command line, and where its help is.
    static func complain(_ error: UsageError) {
        complain("meshhost: \(error.message)\ntry `meshhost \(error.topic.map { "\($0) --help" } ?? "help")`")
    }

    /// Writes a line to standard error. Waits for who reads it, or for so many milliseconds only and then gives up: a
    /// daemon must not stay because of its last words.
    static func complain(_ text: String, waitingAtMost milliseconds: Int32 = -1) {
        let bytes = Array("\(text)\n".utf8)
        var facts = pollfd(fd: STDERR_FILENO, events: Int16(POLLOUT), revents: 0)
        guard poll(&facts, 1, milliseconds) != 0 else { return }
        _ = Glibc.write(STDERR_FILENO, bytes, bytes.count)
    }
}

/// Columns as wide as their widest cell.
struct TextTable {
    private var rows: [[String]]

    init(header: [String]) {
        rows = [header]
    }

    mutating func add(_ cells: [String]) {
        rows.append(
            cells.map {
                String(
                    $0.unicodeScalars.map { $0.properties.generalCategory == .control ? "?" : $0 }.map(Character.init))
            })
    }

    var text: String {
        let widths = rows[0].indices.map { column in rows.map { $0[column].count }.max() ?? 0 }
        return rows.map { row in
            let cells = zip(row, widths).map { cell, width in
                cell + String(repeating: " ", count: width - cell.count)
            }
            var line = cells.joined(separator: "  ")
            while line.last == " " { line.removeLast() }
            return line + "\n"
        }.joined()
    }
}
