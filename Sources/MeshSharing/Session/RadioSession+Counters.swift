// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

extension RadioSession {
    /// What this session and its clients have been through.
    public struct Counters: Sendable, Hashable {
        /// Frames from the radio.
        public var framesReceived: UInt64 = 0
        /// Commands sent to the radio.
        public var commandsSent: UInt64 = 0
        /// Clients' commands that the host answered itself.
        public var answeredHere: UInt64 = 0
        /// Commands answered with an error because the radio was away.
        public var commandsWhileAway: UInt64 = 0
        /// Commands that did not reach the radio because of their length, their fields or the client's role.
        public var commandsRefused: UInt64 = 0
        /// Sends refused because the share's clients have used up their air time.
        public var airtimeRefused: UInt64 = 0
        /// Commands whose reply did not come in time.
        public var commandTimeouts: UInt64 = 0
        /// Mesh requests that were refused because another one took too long.
        public var meshRequestsRefused: UInt64 = 0
        /// Mesh requests that the mesh did not answer in time.
        public var meshRequestsUnanswered: UInt64 = 0
        /// Replies that nobody had asked for.
        public var unaskedReplies: UInt64 = 0
        /// Replies that came after their command had timed out.
        public var lateReplies: UInt64 = 0
        /// Answers from the mesh whose asker is not known or has gone.
        public var orphanAnswers: UInt64 = 0
        /// Messages taken from the radio into the journal.
        public var messagesStored: UInt64 = 0
        /// Messages that the radio gave out again.
        public var messagesRepeated: UInt64 = 0
        /// Messages that came while too many waited for a journal that takes none.
        public var messagesLost: UInt64 = 0
        /// Messages given to clients, each client counted.
        public var messagesDelivered: UInt64 = 0
        /// Messages given again because the client had not got them.
        public var messagesRedelivered: UInt64 = 0
        /// Passes over the radio's contacts.
        public var contactPasses: UInt64 = 0
        /// Clients whose connection ended, by reason.
        public var left: [LeaveReason: UInt64] = [:]
    }
}
