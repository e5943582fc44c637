// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshWire

/// Carries one procedure out, request after request (Core Specification 5.4, Vol 3 Part G §4).
///
///                   next request
///               ┌───────────────────┐
///     start     ▼                   │
///     ──────▶ waiting for a response┴─▶ finished with a result or a failure
///
/// Every response has to bring the procedure on: handles rise, values grow. A server that answers in circles has given
/// a meaningless answer. The bearer, ``ATTClientStateMachine``, keeps the deadlines.
struct GATTProcedureStateMachine: Sendable {
    enum Action: Sendable, Hashable {
        case send(ATTPacket)
        case finish(Result<GATTResult, GATTFailure>)
    }

    let procedure: GATTProcedure
    let mtu: Int
    /// What was sent last.
    private(set) var request: ATTPacket?
    private var services: [RemoteService] = []
    private var characteristics: [RemoteCharacteristic] = []
    private var descriptors: [ATTPacket.TypedHandle] = []
    private var value: [UInt8] = []
    /// How much of a long value is prepared.
    private var preparedCount = 0
    /// Why a prepared write is being cancelled.
    private var cancellation: GATTFailure?

    init(_ procedure: GATTProcedure, mtu: Int) {
        self.procedure = procedure
        self.mtu = mtu
    }

    mutating func start(ownMTU: Int) -> Action {
        switch procedure {
        case .exchangeMTU: send(.exchangeMTURequest(UInt16(clamping: ownMTU)))
        case .discoverServices: send(.readByGroupTypeRequest(.all, .primaryService))
        case .discoverService(let uuid): send(serviceRequest(uuid, .all))
        case .discoverCharacteristics(let range): send(.readByTypeRequest(range, .characteristic))
        case .discoverDescriptors(let range): send(.findInformationRequest(range))
        case .read(let handle): send(.readRequest(handle))
        case .readByType(let uuid): send(.readByTypeRequest(.all, uuid))
        case .write(let handle, let value):
            if value.count > 512 {
                .finish(.failure(.valueTooLong))
            } else if value.count <= mtu - 3 {
                send(.writeRequest(handle, value))
            } else {
                send(preparation(handle, value))
            }
        }
    }

    /// The response to the last request came.
    mutating func responseReceived(_ packet: ATTPacket) -> Action {
        if case .errorResponse(_, let handle, let code) = packet { return refused(code, handle) }
        switch (procedure, packet) {
        case (.exchangeMTU, .exchangeMTUResponse(let peer)): return .finish(.success(.mtu(Int(peer))))
        case (.discoverServices, .readByGroupTypeResponse(let groups)): return found(groups)
        case (.discoverService(let uuid), .findByTypeValueResponse(let ranges)): return found(ranges, uuid)
        case (.discoverCharacteristics(let range), .readByTypeResponse(let entries)): return found(entries, range)
        case (.discoverDescriptors(let range), .findInformationResponse(let entries)):
            guard rises(entries.map(\.handle), after: descriptors.last?.handle, within: range) else { return nonsense }
            descriptors += entries
            return goOn(after: descriptors.last?.handle, range) { .findInformationRequest($0) }
        case (.read(let handle), .readResponse(let part)): return read(handle, part)
        case (.read(let handle), .readBlobResponse(let part)): return read(handle, part)
        case (.readByType, .readByTypeResponse(let entries)): return .finish(.success(.value(entries[0].value)))
        case (.write, .writeResponse): return .finish(.success(.written))
        case (.write(let handle, let value), .prepareWriteResponse): return prepared(handle, value, packet)
        case (.write, .executeWriteResponse):
            return .finish(cancellation.map { .failure($0) } ?? .success(.written))
        default: return nonsense
        }
    }

    // MARK: Steps

    private var nonsense: Action { .finish(.failure(.meaninglessAnswer)) }

    private mutating func send(_ packet: ATTPacket) -> Action {
        request = packet
        return .send(packet)
    }

    private func serviceRequest(_ uuid: BluetoothUUID, _ range: ATTPacket.HandleRange) -> ATTPacket {
        .findByTypeValueRequest(range, type: BluetoothUUID.primaryService.shortForm ?? 0, value: uuid.attributeBytes)
    }

    private mutating func refused(_ code: ATTErrorCode, _ handle: UInt16) -> Action {
        switch procedure {
        // The end of every discovery (§4.4.1 and on), and the answer of servers that know no exchange (§4.3.1).
        case .discoverServices, .discoverService:
            if code == .attributeNotFound { return .finish(.success(.services(services))) }
        case .discoverCharacteristics:
            if code == .attributeNotFound { return .finish(.success(.characteristics(characteristics))) }
        case .discoverDescriptors:
            if code == .attributeNotFound { return .finish(.success(.descriptors(descriptors))) }
        case .exchangeMTU: if code == .requestNotSupported { return .finish(.success(.mtu(23))) }
        // A value that ended with a full packet, at a server that does not answer with an empty rest.
        case .read:
            if !value.isEmpty, code == .attributeNotLong || code == .invalidOffset {
                return .finish(.success(.value(value)))
            }
        case .write:
            if let cancellation { return .finish(.failure(cancellation)) }
            // What was prepared before stays in the server's queue until it is cancelled (§4.9.4).
            if case .prepareWriteRequest = request, preparedCount > 0 {
                cancellation = .refused(code, handle: handle)
                return send(.executeWriteRequest(commits: false))
            }
        case .readByType: break
        }
        return .finish(.failure(.refused(code, handle: handle)))
    }

    /// Handles that rise, each of them behind `last` and in the range.
    private func rises(_ handles: [UInt16], after last: UInt16?, within range: ATTPacket.HandleRange) -> Bool {
        var last = last
        for handle in handles {
            guard handle >= range.first, handle <= range.last, handle > last ?? 0 else { return false }
            last = handle
        }
        return true
    }

    private mutating func goOn(
        after last: UInt16?, _ range: ATTPacket.HandleRange, _ next: (ATTPacket.HandleRange) -> ATTPacket
    ) -> Action {
        guard let last, last < range.last else { return refused(.attributeNotFound, 0) }
        return send(next(ATTPacket.HandleRange(last + 1, range.last)))
    }

    private mutating func found(_ groups: [ATTPacket.GroupValue]) -> Action {
        for group in groups {
            guard group.range.first > services.last?.range.last ?? 0, group.range.last >= group.range.first,
                let uuid = BluetoothUUID(attributeBytes: group.value)
            else { return nonsense }
            services.append(RemoteService(uuid: uuid, range: group.range))
        }
        return goOn(after: services.last?.range.last, .all) { .readByGroupTypeRequest($0, .primaryService) }
    }

    private mutating func found(_ ranges: [ATTPacket.HandleRange], _ uuid: BluetoothUUID) -> Action {
        for range in ranges {
            guard range.first > services.last?.range.last ?? 0, range.last >= range.first else { return nonsense }
            services.append(RemoteService(uuid: uuid, range: range))
        }
        // A service that comes twice is nothing this host can use, and to look for it costs a round trip.
        return .finish(.success(.services(services)))
    }

    private mutating func found(_ entries: [ATTPacket.HandleValue], _ range: ATTPacket.HandleRange) -> Action {
        let last = characteristics.last?.declarationHandle
        guard rises(entries.map(\.handle), after: last, within: range) else { return nonsense }
        for entry in entries {
            guard entry.value.count >= 3, let uuid = BluetoothUUID(attributeBytes: Array(entry.value[3...])) else {
                return nonsense
            }
            characteristics.append(
                RemoteCharacteristic(
                    uuid: uuid, properties: entry.value[0], declarationHandle: entry.handle,
                    valueHandle: UInt16(entry.value[1]) | UInt16(entry.value[2]) << 8))
        }
        // Behind a declaration comes its value (§3.3.2), and another declaration needs room for its own: where only one
        // attribute is left, a descriptor, to ask on would cost a round trip for nothing.
        guard let last = characteristics.last?.declarationHandle, Int(last) + 2 < Int(range.last) else {
            return refused(.attributeNotFound, 0)
        }
        return goOn(after: last, range) { .readByTypeRequest($0, .characteristic) }
    }

    private mutating func read(_ handle: UInt16, _ part: [UInt8]) -> Action {
        value += part
        // A packet that is not full is the last (§4.8.3). Values have at most 512 bytes.
        guard part.count >= mtu - 1, value.count < 512 else {
            return .finish(.success(.value(Array(value.prefix(512)))))
        }
        return send(.readBlobRequest(handle, offset: UInt16(value.count)))
    }

    private func preparation(_ handle: UInt16, _ value: [UInt8]) -> ATTPacket {
        let part = value.dropFirst(preparedCount).prefix(mtu - 5)
        return .prepareWriteRequest(handle, offset: UInt16(preparedCount), Array(part))
    }

    private mutating func prepared(_ handle: UInt16, _ value: [UInt8], _ response: ATTPacket) -> Action {
        // The server repeats what it got, so that a client can be sure (§4.9.5 asks for it, §4.9.4 allows it).
        guard case .prepareWriteRequest(let sentHandle, let sentOffset, let sent) = request,
            response == .prepareWriteResponse(sentHandle, offset: sentOffset, sent)
        else {
            cancellation = .preparedWriteMangled
            return send(.executeWriteRequest(commits: false))
        }
        preparedCount += sent.count
        if preparedCount < value.count { return send(preparation(handle, value)) }
        return send(.executeWriteRequest(commits: true))
    }
}
