// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import Glibc
internal import MeshBluetoothStack
internal import MeshLoop
internal import MeshTransportAPI

/// Records all that host and controller say, as a file that `btmon -r` and Wireshark read.
///
/// Packets are noted on the loop and written on another thread: what a link has to wait for is a copy in memory. A capture
/// that cannot be written is told of and given up; links do not suffer.
actor HCICapture {
    /// What may wait for the disk.
    private static let bufferLimit = 512 << 10

    nonisolated let loop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
    private let settings: CaptureSettings
    private let log: LogSink
    /// Begun with the first packet: one for all the time that the controller is used, however often it is lost.
    private var file: CaptureFile?
    /// Nothing more is recorded, since it cannot be written, or the end has come.
    private var isOver = false
    private var buffer = CaptureBuffer(limit: bufferLimit)
    private var writer: Task<Void, Never>?

    init(_ loop: EventLoop, _ settings: CaptureSettings, log: LogSink) {
        self.loop = loop
        self.settings = settings
        self.log = log.adding([("capture", settings.path)])
    }

    /// Notes a packet.
    nonisolated func record(_ packet: HCIPacket, isFromController: Bool) {
        assumeIsolated { $0.take(packet, isFromController) }
    }

    /// Writes what is noted, and ends the file.
    func close() async {
        isOver = true
        await writer?.value
        let file = file
        self.file = nil
        if let file { await loop.blocking { file.close() } }
        if buffer.drops > 0 { log(.notice, "the recording is not complete", [("drops", "\(buffer.drops)")]) }
    }

    private func take(_ packet: HCIPacket, _ isFromController: Bool) {
        guard !isOver else { return }
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        buffer.append(
            packet, isFromController: isFromController,
            time: Int64(time.tv_sec) * 1_000_000 + Int64(time.tv_nsec) / 1_000)
        guard writer == nil else { return }
        writer = Task(executorPreference: loop.taskExecutor) { await self.drain() }
    }

    /// Packets that come while some are being written share the next write.
    private func drain() async {
        do throws(MeshError) {
            while !buffer.isEmpty {
                let records = buffer.take()
                file = try await write(records, to: file)
            }
        } catch {
            log(.notice, "nothing is recorded any more", [("error", error.message)])
            isOver = true
            file = nil
        }
        writer = nil
    }

    private func write(_ records: [UInt8], to begun: CaptureFile?) async throws(MeshError) -> CaptureFile {
        if begun == nil { log(.notice, "all that goes over the controller is recorded, keys and messages too", []) }
        return try await loop.blocking { [settings] () throws(MeshError) in
            var file: CaptureFile
            if let begun { file = begun } else { file = try CaptureFile.begin(settings) }
            do throws(MeshError) {
                try file.write(records)
            } catch {
                file.close()
                throw error
            }
            return file
        }
    }
}
