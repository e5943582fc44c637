// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshTransportAPI

/// `hci info`: the running daemon is asked, so that a controller it uses is not disturbed. Without one, the module is loaded
/// into this process.
extension HostProgram {
    func runControllerInfo(_ controller: String) -> ExitStatus {
        reporting { () throws(MeshError) in
            let module = DoctorAdditions.controllerModule
            var answer = try askDaemon("describe", ["module": .string(module), "adapter": .string(controller)])
            if answer == nil {
                answer = try locally { (host: LocalHost) throws(MeshError) in
                    try await host.describe(controller, of: module)
                }
            }
            let shown = answer ?? .null
            options.isJSON
                ? Terminal.write(shown) : Terminal.write(ControllerText.text(shown["adapter"] ?? .null))
            return .ok
        }
    }
}

/// What `hci info` shows of the module's answer. Pure.
enum ControllerText {
    static func text(_ controller: JSONValue) -> String {
        var rows: [(String, String)] = [
            ("controller", word(controller["controller"]) + (controller["in_use"] == true ? ", in use" : "")),
            ("address", controller["address"]?.stringValue ?? "none of its own"),
            ("manufacturer", named(controller["manufacturer"], controller["manufacturer_name"])),
            (
                "version",
                "\(named(controller["hci_version"], controller["hci_version_name"])), revision "
                    + "\(word(controller["hci_revision"])), link layer \(word(controller["link_version"]))."
                    + word(controller["link_subversion"])
            ),
            ("kind", controller["dual_mode"] == true ? "LE and BR/EDR" : "LE"),
            (
                "buffers",
                "\(word(controller["buffers"]?["count"])) of \(word(controller["buffers"]?["length"])) bytes"
                    + (controller["buffers"]?["shared"] == true ? ", shared with BR/EDR" : "")
            ),
            ("commands", word(controller["commands"])),
            ("features", list(controller["features"])),
            ("data length", "\(word(controller["data_length"])) bytes"),
            ("lists", "accept \(word(controller["accept_list"])), resolving \(word(controller["resolving_list"]))"),
        ]
        for quirk in controller["quirks"]?.arrayValue ?? [] { rows.append(("quirk", word(quirk))) }
        let width = rows.map(\.0.count).max() ?? 0
        return rows.map { $0 + String(repeating: " ", count: width - $0.count + 2) + $1.shownOnOneLine + "\n" }.joined()
    }

    /// A number, and what people call it.
    private static func named(_ number: JSONValue?, _ name: JSONValue?) -> String {
        guard let name = name?.stringValue else { return word(number) }
        return "\(name) (\(word(number)))"
    }

    private static func list(_ value: JSONValue?) -> String {
        let words = (value?.arrayValue ?? []).map { word($0) }
        return words.isEmpty ? "none" : words.joined(separator: ", ")
    }

    private static func word(_ value: JSONValue?) -> String { DaemonQuestion.text(value) }
}
