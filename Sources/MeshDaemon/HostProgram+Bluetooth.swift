// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import Glibc
internal import MeshBluetoothStack
internal import MeshTransportAPI
internal import MeshWire

/// `decode` of what a host, its controller and their peers say to each other.
extension HostProgram {
    func decodeBluetooth(
        _ subject: HostCommand.BluetoothSubject, _ hex: String, _ wishes: HostCommand.DecodeOptions
    ) -> ExitStatus {
        do throws(UsageError) {
            let packets = try BluetoothDecoding(showsSecrets: wishes.showsSecrets).packets(subject, hex)
            if isJSON {
                Terminal.write(["schema": "meshhost.decode/1", "packets": .array(packets)])
            } else {
                for packet in packets { Terminal.write(packet.text() + "\n") }
            }
            return .ok
        } catch {
            Terminal.complain(error)
            return .usage
        }
    }

    /// How much of a recording is read at a time.
    private static let chunk = 65_536

    /// A line for each packet, as it is read: a recording may be of any size, and may not have ended.
    func decodeRecording(_ path: String, _ wishes: HostCommand.DecodeOptions) -> ExitStatus {
        let file = path == "-" ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return complain(of: path, String(cString: strerror(errno))) }
        defer { if file != STDIN_FILENO { Glibc.close(file) } }
        let decoding = BluetoothDecoding(showsSecrets: wishes.showsSecrets)
        var reader = BTSnoopReader()
        var describer = HCIRecordingDescriber()
        while true {
            let bytes = [UInt8](unsafeUninitializedCapacity: Self.chunk) { buffer, count in
                repeat { count = read(file, buffer.baseAddress, buffer.count) } while count < 0 && errno == EINTR
                if count < 0 { count = 0 }
            }
            if bytes.isEmpty { break }
            var text = ""
            do throws(DecodeError) {
                try reader.bytesReceived(bytes) { record in
                    let packet = describer.describe(record)
                    text += wishes.isLines ? decoding.json(record, packet).text() : decoding.line(record, packet)
                    text += "\n"
                }
            } catch {
                Terminal.write(text)
                return complain(
                    of: path, "\(reader.hasHeader ? "a broken recording" : "no btsnoop recording"): \(error)")
            }
            Terminal.write(text)
        }
        if !reader.hasHeader { return complain(of: path, "no btsnoop recording: it ends within its header") }
        if reader.unfinished > 0 {
            Terminal.complain("meshhost: the last record is cut: \(reader.unfinished) bytes of it are there")
        }
        return .ok
    }

    private func complain(of path: String, _ text: String) -> ExitStatus {
        Terminal.complain("meshhost: \(path): \(text)")
        return .usage
    }
}
