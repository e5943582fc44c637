// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import FoundationEssentials

/// What goes first when several wait for the lane.
public enum LanePriority: Int, Sendable, Hashable, Comparable {
    /// The host's own look whether the radio is still there, and its slow refreshing.
    case probe
    /// What only reads.
    case read
    /// What goes into the mesh or changes the radio.
    case send

    public static func < (left: LanePriority, right: LanePriority) -> Bool { left.rawValue < right.rawValue }
}

/// One command for the lane, with the commands that have to be answered right before it.
public struct LaneEntry: Sendable, Hashable {
    /// A command that goes before another one.
    public struct Lead: Sendable, Hashable {
        public var frame: Data
        public var expectation: ReplyExpectation
        /// Whether the transaction ends with its refusal, which then is the reply.
        public var isRequired: Bool

        public init(_ frame: Data, expecting expectation: ReplyExpectation, isRequired: Bool = true) {
            self.frame = frame
            self.expectation = expectation
            self.isRequired = isRequired
        }
    }

    public var lead: [Lead]
    /// The command whose reply goes to the requester.
    public var frame: Data
    public var expectation: ReplyExpectation
    public var priority: LanePriority
    /// Whether it takes the radio's one pending mesh request: ``MeshRequestStateMachine``.
    public var isMeshRequest: Bool

    public init(
        _ frame: Data, expecting expectation: ReplyExpectation, after lead: [Lead] = [], priority: LanePriority = .read,
        isMeshRequest: Bool = false
    ) {
        self.lead = lead
        self.frame = frame
        self.expectation = expectation
        self.priority = priority
        self.isMeshRequest = isMeshRequest
    }
}
