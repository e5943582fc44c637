// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import MeshTransportAPI
internal import MeshWire

/// What users write about the framing, the same for every module whose links are streams.
extension CompanionStream.Configuration {
    /// Rows of a module's option table. 176 is `MAX_FRAME_SIZE` of firmware src/helpers/BaseSerialInterface.h.
    public static let options: [OptionSpec] = [
        OptionSpec(
            "max_frame", .int, default: "176", help: "The largest frame in bytes, 1 to 512; some forks exceed 176."),
        OptionSpec(
            "partial_frame_timeout", .duration, default: "2s",
            help: "How long the rest of a frame may take before the bytes are searched for another."),
        OptionSpec(
            "layout_check", .bool, default: "true",
            help: "Whether frames shorter than their code's layout are searched for others; off for other protocols."),
    ]

    /// The largest frame, in bytes, as it is written; what is no length becomes an issue.
    public static func maximumFrame(_ options: OptionValues, _ issues: inout [OptionIssue]) -> Int {
        let maximumFrame = options.int("max_frame")
        if !(1...512).contains(maximumFrame) {
            issues.append(
                OptionIssue(
                    option: "max_frame", message: "max_frame is \(maximumFrame), outside 1 to 512",
                    hint: "radios use \(CompanionFraming.maximumPayload)"))
        }
        return maximumFrame
    }
}
