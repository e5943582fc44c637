// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import FoundationEssentials
public import MeshLoop
public import MeshTransportAPI
internal import MeshWire

extension CompanionStream {
    /// Why a frame was not sent.
    public enum SendFailure: Error {
        /// Nothing of it was sent, and the connection goes on.
        case refused(MeshError)
        /// The connection is broken.
        case lost(LoopError)
    }

    /// How many frames may be under way to the kernel; a caller waits for each, so only a runaway one gets there.
    private static let sendLimit = 1_024

    /// Sends one frame and returns when the kernel has all of it. Frames of concurrent callers are sent whole, in order.
    public func send(
        _ frame: Data, _ context: MeshError.Context, isolation: isolated (any Actor)? = #isolation
    ) async throws(SendFailure) {
        guard let connection else {
            throw .lost(LoopError(kind: .notConnected, operation: "write", detail: "there is no connection"))
        }
        guard sendsUnderWay < Self.sendLimit else {
            throw .refused(
                MeshError(
                    .queueFull, "\(sendsUnderWay) frames wait to be sent to \(context.peer ?? "the device")",
                    context: context))
        }
        outgoing.removeAll(keepingCapacity: true)
        do throws(CompanionFrameEncoder.Failure) {
            try encoder.encode(frame.bytes, into: &outgoing)
        } catch {
            throw .refused(MeshError(error, context: context))
        }
        do throws(LoopError) {
            // Nearly always the kernel takes the frame at once, and nothing has to wait.
            let bytes = outgoing
            let sent = try bytes.span.bytes.withUnsafeBytes { (bytes) throws(LoopError) in
                try connection.stream.writeAtOnce(bytes)
            }
            if sent < outgoing.count {
                // The rest is with the stream before anything is awaited, so that no other frame comes in between.
                let outcome = LoopResult<LoopError?>()
                write(outgoing[sent...], to: connection) { outcome.set($0) }
                connection.tell(.frameSent)
                if let error = await outcome.get() { throw error }
            } else {
                connection.tell(.frameSent)
            }
        } catch {
            throw .lost(error)
        }
        count(frame)
    }

    /// Sends one frame if that needs no waiting. False: nothing was sent. A connection that breaks takes the frame along, and
    /// its end is told of.
    public func sendAtOnce(_ frame: Data) -> Bool {
        guard let connection, connection.stream.pendingWriteBytes == 0 else { return false }
        outgoing.removeAll(keepingCapacity: true)
        guard (try? encoder.encode(frame.bytes, into: &outgoing)) != nil else { return false }
        do throws(LoopError) {
            let bytes = outgoing
            let sent = try bytes.span.bytes.withUnsafeBytes { (bytes) throws(LoopError) in
                try connection.stream.writeAtOnce(bytes)
            }
            guard sent > 0 else { return false }
            if sent < outgoing.count {
                write(outgoing[sent...], to: connection) { error in
                    if let error { connection.tell(.ended(error)) }
                }
            }
        } catch {
            connection.tell(.ended(error))
        }
        count(frame)
        connection.tell(.frameSent)
        return true
    }

    private func count(_ frame: Data) {
        counters.framesSent += 1
        counters.bytesSent += Int64(frame.count + CompanionFraming.headerLength)
    }

    /// Writes the rest of a frame; `completion` is called when the kernel has it, or the connection has ended.
    private func write(
        _ rest: ArraySlice<UInt8>, to connection: Connection, completion: @escaping (LoopError?) -> Void
    ) {
        sendsUnderWay += 1
        connection.tell(.writeBegan)
        rest.withUnsafeBytes { bytes in
            connection.stream.write(bytes) { error in
                self.sendsUnderWay -= 1
                connection.tell(.writeEnded)
                completion(error)
            }
        }
    }
}

extension MeshError {
    /// A payload that cannot be framed.
    init(_ failure: CompanionFrameEncoder.Failure, context: Context) {
        switch failure {
        case .empty:
            self.init(.invalidArgument, "an empty frame cannot be sent: radios do not answer it", context: context)
        case .tooLong(let length, let ceiling):
            self.init(
                .frameTooLong, "a frame of \(length) bytes exceeds the \(ceiling) that the link carries",
                context: context)
        }
    }
}
