// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// Rules of the module ABI that hold all the time, whatever else is being tried. Each is a sentence.
enum StandingRule: String, CaseIterable, Sendable {
    case links = "a link has one link_up at most, and one link_down as its last word"
    case sends = "each accepted send has one tx_done, in order"
    case frames = "frames come on links that are up, with 1 to 4,096 bytes"
    case room = "a frame that found no room is offered again after rx_ready, not before"
    case requests = "each accepted request has one managed"
    case stopped = "stopped comes once, when every link has ended"
    case silence = "after destroy the module is silent"
    case form = "what the module says is well-formed"
    case secrets = "secrets are not shown"
    case surroundings = "the process is left as it was"
    case handles = "after destroy no handle of the module is on the loop"
}

/// Something that a standing rule forbids.
struct Breach: Sendable, Hashable {
    var rule: StandingRule
    /// What happened, with the numbers.
    var what: String
}
