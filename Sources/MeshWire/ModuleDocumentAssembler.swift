// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// Puts the parts of documents together. One document is under way at a time; messages that are none may come between its
/// parts. Pure; holds at most ``ModuleMessage/maximumDocument`` bytes.
public struct ModuleDocumentAssembler: Sendable {
    /// What a message comes to.
    public enum Result: Sendable, Hashable {
        /// It is whole, and the payload is its own.
        case whole
        /// It completes this document.
        case document([UInt8])
        /// More is to come.
        case partial
        /// The parts do not belong together, or are too many.
        case breach
    }

    private var head: ModuleMessage?
    private var document: [UInt8] = []

    public init() {}

    public mutating func take(_ message: ModuleMessage, _ payload: UnsafeRawBufferPointer) -> Result {
        guard message.kind.isDocument else { return .whole }
        let goesOn = message.flags.contains(.more)
        if let head {
            guard head.kind == message.kind, head.cookie == message.cookie, head.link == message.link else {
                return .breach
            }
        } else if !goesOn {
            return .whole
        }
        guard document.count + payload.count <= ModuleMessage.maximumDocument, !goesOn || !payload.isEmpty else {
            return .breach
        }
        document.append(contentsOf: payload)
        if goesOn {
            head = message
            return .partial
        }
        defer {
            head = nil
            document = []
        }
        return .document(document)
    }
}
