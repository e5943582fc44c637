// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import MeshTransportAPI

/// Files with certificates and keys. What is in them is for others to judge.
public enum PEMFile {
    /// Longer files hold something else: a system's whole list of authorities has 250 KiB.
    private static let maximumLength = 1_048_576

    /// Reads a file. `isPrivate`: it holds a key, and others must not be able to read it.
    ///
    /// Throws ``MeshError/Code-swift.struct/permissionDenied`` for a file that this user may not read and
    /// ``MeshError/Code-swift.struct/configurationInvalid`` for everything else: a key that others can read, for one.
    public static func read(_ path: String, isPrivate: Bool = false) throws(MeshError) -> [UInt8] {
        let file: BoundedFile
        do throws(BoundedFile.Problem) {
            file = try BoundedFile(path: path, maximumLength: maximumLength)
        } catch {
            throw MeshError(error.code, "\(path) \(error.description)", cause: error)
        }
        if isPrivate, file.isReadableByOthers {
            throw MeshError(.configurationInvalid, "\(path) can be read by everyone; run: chmod o-rwx \(path)")
        }
        return file.bytes
    }
}
