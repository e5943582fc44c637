// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import Glibc
internal import MeshTransportAPI

/// Shows what a scan finds: live on a terminal, else at its end; as lines or one document of JSON on request.
struct ScanReport {
    private enum Form {
        case live
        case table
        case lines
        case document
    }

    /// The live table is drawn so often at most.
    private static let pace: Duration = .milliseconds(250)

    private let form: Form
    private let start = ContinuousClock.now
    private var table = SightingTable()
    /// Who looks, or did until it failed.
    private(set) var modules: [String] = []
    /// Who cannot, and why, in the order it was told.
    private var failures: [(module: String, error: MeshError)] = []
    private var drawnLines = 0
    private var lastDrawn: Duration?

    init(_ scan: HostCommand.ScanOptions, _ options: HostOptions) {
        form =
            scan.isLines
            ? .lines : options.isJSON ? .document : isatty(STDOUT_FILENO) == 1 && !options.isQuiet ? .live : .table
    }

    /// Nothing was heard.
    var isEmpty: Bool { table.isEmpty }

    /// Why nobody could look; nil if somebody did.
    var failure: MeshError? {
        modules.allSatisfy { module in failures.contains { $0.module == module } } ? failures.first?.error : nil
    }

    private var now: Duration { start.duration(to: .now) }

    /// Takes an event of the scan. Returns whether more are wanted.
    mutating func take(_ event: JSONValue) -> Bool {
        switch event["type"]?.stringValue.flatMap(ScanEvent.init(rawValue:)) {
        case .ready:
            modules = (event["modules"]?.arrayValue ?? []).compactMap(\.stringValue)
            if form == .live { draw() }
        case .seen:
            table.take(event, now: now)
            if form == .lines { Terminal.write(event.text() + "\n") }
            if form == .live, lastDrawn.map({ now - $0 >= Self.pace }) ?? true { draw() }
        case .fail:
            failures.append(
                (
                    event["module"]?.stringValue ?? "",
                    MeshError(
                        event["code"]?.stringValue.flatMap { MeshError.Code(slug: $0) } ?? .internalError,
                        event["message"]?.stringValue ?? "")
                ))
            if form == .lines { Terminal.write(event.text() + "\n") }
            // A table that is drawn anew would wipe it out.
            if form != .live { complain(of: failures.count - 1) }
        case .end: return false
        case nil: break  // of a later version
        }
        return true
    }

    /// The scan is over.
    mutating func finish() {
        switch form {
        case .live:
            draw()
            for index in failures.indices { complain(of: index) }
        case .table: Terminal.write(table.text(now: now))
        case .lines: break
        case .document:
            Terminal.write([
                "schema": "meshhost.scan/1", "modules": .array(modules.map { .string($0) }),
                "devices": .array(table.json(now: now)),
                "failures": .array(
                    failures.map {
                        [
                            "module": .string($0.module), "code": .string($0.error.code.slug),
                            "message": .string($0.error.message),
                        ]
                    }),
            ])
        }
    }

    private func complain(of index: Int) {
        let (module, error) = failures[index]
        Terminal.complain("meshhost: module \(module): \(error.message)")
    }

    /// In place of the table before. Not longer than the screen, or the cursor would not find its way back.
    private mutating func draw() {
        lastDrawn = now
        var size = winsize()
        let hasSize = ioctl(STDOUT_FILENO, UInt(TIOCGWINSZ), &size) == 0 && size.ws_row > 4 && size.ws_col > 20
        let (rows, columns) = hasSize ? (Int(size.ws_row), Int(size.ws_col)) : (24, 80)
        let lines = table.text(now: now, limit: rows - 3).split(separator: "\n")
        // CUU to go back, ED to erase what was there (ECMA-48 8.3.22, 8.3.39). A line that wraps would count twice.
        let back = drawnLines > 0 ? "\u{1B}[\(drawnLines)A\u{1B}[J" : ""
        Terminal.write(back + lines.map { $0.prefix(columns - 1) + "\n" }.joined())
        drawnLines = lines.count
    }
}
