// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import FoundationEssentials
public import MeshTransportAPI

/// The radio's channels.
extension MeshCoreSession {
    /// The channels that are set up, by index.
    ///
    /// Where the transport allows it several are asked for at once, each batch holding the lane until its last reply;
    /// replies are told apart by the index in them. What a batch leaves out is asked for again, one by one. How many
    /// channels there may be is told by ``deviceInfo``; where it is not, the radio is asked until it knows no more.
    public func channels() async throws(MeshError) -> [Channel] {
        guard let count = deviceInfo?.details?.maximumChannels else {
            var found: [Channel] = []
            for index in UInt8.min...UInt8.max {
                guard let channel = try await channel(index) else { break }
                found.append(channel)
            }
            return found.filter(\.isSetUp)
        }
        var found: [UInt8: Channel] = [:]
        if pipelinesReads, settings.pipelineWindow > 1 {
            for start in stride(from: 0, to: Int(count), by: settings.pipelineWindow) {
                let end = min(start + settings.pipelineWindow, Int(count))
                for channel in try await batch((start..<end).map { UInt8($0) }) { found[channel.index] = channel }
            }
        }
        for index in 0..<count where found[index] == nil { found[index] = try await channel(index) }
        return found.values.filter(\.isSetUp).sorted { $0.index < $1.index }
    }

    /// Asks for several channels at once. The lane waits for the last of them: a radio answers in the order it was asked,
    /// so when that reply has come, the others have or never will.
    private func batch(_ indices: [UInt8]) async throws(MeshError) -> [Channel] {
        var commands: [Data] = []
        for index in indices { commands.append(try encode(.getChannel(index: index))) }
        guard let last = commands.popLast() else { return [] }
        do throws(MeshError) {
            let replies = try await ask(last, .batch(leading: commands)).replies
            return replies.compactMap {
                if case .channelInfo(let channel)? = try? CompanionReply(decoding: $0) { channel } else { nil }
            }
        } catch {
            // The last one was lost: all are asked for again.
            guard error.code == .operationTimeout else { throw error }
            return []
        }
    }

    /// The channel in this place, set up or not; nil if the radio has no such place.
    public func channel(_ index: UInt8) async throws(MeshError) -> Channel? {
        try await found { () throws(MeshError) in
            try await ask(.getChannel(index: index)) { if case .channelInfo(let channel) = $0 { channel } else { nil } }
        }
    }

    /// Sets up a channel. Throws `radio.not-found` if the radio has no such place.
    public func setChannel(_ channel: Channel) async throws(MeshError) {
        try await confirm(.setChannel(channel))
    }

    /// Takes a channel away: an empty name and a key of zeros, as the radio has it where none is set up.
    public func removeChannel(_ index: UInt8) async throws(MeshError) {
        try await confirm(.setChannel(Channel(index: index, name: "", secret: Data(repeating: 0, count: 16))))
    }
}

extension Channel {
    /// Whether this is more than an empty place.
    var isSetUp: Bool { !name.isEmpty || secret.contains { $0 != 0 } }
}
