// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import Glibc

/// The file of a Unix socket that is listened on.
///
/// Whoever cleans up a folder may remove it, and a program that is started on the same path may put its own there. Nobody
/// can connect any more then, and a listener notices nothing of it by itself. So the file is watched (inotify(7) tells when
/// its last name goes), and made again. Nothing happens to connections that are there.
///
/// A file that is somebody else's is left alone while they live. Nobody listening does not mean that they do not: between
/// bind(2) and listen(2) there is a moment. So only a file that is found like that twice, some time apart, is replaced.
extension LoopListener {
    private static let firstDelay = Duration.seconds(1)
    private static let longestDelay = Duration.seconds(30)

    private var path: String { address.unixPath ?? "" }

    /// Watches the file that was made. Where that cannot be (inotify has limits) it is no reason not to listen: it is tried
    /// again, and the file looked at meanwhile.
    func startWatchingFile() {
        do throws(LoopError) {
            try watchFile()
        } catch {
            fileDelay = Self.firstDelay
            tryLater()
        }
    }

    private func watchFile() throws(LoopError) {
        // Watched by its name, which may be another's by now: looked at afterwards.
        fileWatch = try InotifyWatch(
            loop, path: path, for: IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF | IN_DONT_FOLLOW,
            "watch \(path)"
        ) { [unowned self] in fileChanged() }
        fileChanged()
    }

    /// The file may have gone.
    private func fileChanged() {
        guard FileIdentity(path) != socket.file else { return }
        fileWatch = nil
        fileDelay = Self.firstDelay
        deserted = nil
        // Not in the middle of what the watch has to do still.
        loop.performLater { [weak self] in self?.makeFile() }
    }

    /// Makes the file again, or tries it later.
    private func makeFile() {
        do throws(LoopError) {
            if FileIdentity(path) != socket.file {
                if !isFileLost {
                    isFileLost = true
                    onFileChange?(
                        LoopError(kind: .notFound, operation: "listen on \(path)", detail: "its file was removed"))
                }
                let new = try bindAgain()
                // The old one removes no file: the one at the path is not its own.
                try replaceSocket(with: new)
            }
            if isFileLost {
                isFileLost = false
                onFileChange?(nil)
            }
            try watchFile()
            // It may have gone again.
            if fileWatch != nil { fileTimer = nil }
        } catch {
            if isFileLost { onFileChange?(error) }
            tryLater()
        }
    }

    private func tryLater() {
        let timer = fileTimer ?? LoopTimer(loop)
        fileTimer = timer
        timer.schedule(after: fileDelay) { [unowned self] in makeFile() }
        fileDelay = min(fileDelay * 2, Self.longestDelay)
    }

    private func bindAgain() throws(LoopError) -> ListeningSocket {
        let (found, before) = (FileIdentity(path), deserted)
        deserted = nil
        // Throws where somebody listens.
        guard let found, try UnixSocket.isDeserted(path, "listen on \(path)") else {
            return try .unix(path, mode: mode, isNew: true)
        }
        if found == before { return try .unix(path, mode: mode) }
        deserted = found
        throw LoopError(
            kind: .addressInUse, operation: "listen on \(path)",
            detail: "another program's file is there, on which it does not listen")
    }
}
