// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import Glibc
import MeshLoop
import MeshTransportAPI

/// The command line, and the loop that everything else runs on.
enum Program {
    private static let usage = """
        usage: EmbeddedHost PATH

        Keeps a link to the radio behind the Unix socket PATH and prints what happens, a line of JSON for each event, until it
        gets SIGINT or SIGTERM.
        """

    /// Returns the exit status.
    static func run(_ words: [String]) -> Int32 {
        guard words.count == 1, !words[0].hasPrefix("-") else {
            Output.line(usage, to: STDERR_FILENO)
            return 64
        }
        let loop = EventLoop()
        let outcome = Outcome()
        let host = RadioHost(loop: loop, path: words[0])
        // It ends before the loop does: `run` of the loop waits for it.
        Task(executorPreference: loop.taskExecutor) {
            do {
                try await host.run()
            } catch {
                outcome.failure = "\(error)"
            }
            loop.stop()
        }
        loop.run()
        do throws(LoopError) {
            // Names what was left open: there should be nothing.
            try loop.shutDown()
        } catch {
            outcome.failure = outcome.failure ?? "\(error)"
        }
        guard let failure = outcome.failure else { return 0 }
        Output.line("EmbeddedHost: \(failure)", to: STDERR_FILENO)
        return 70
    }

    /// How the host ended. Sendable: written on the loop's thread, and read by it after the loop has ended.
    private final class Outcome: @unchecked Sendable {
        var failure: String?
    }
}
