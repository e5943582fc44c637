// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import FoundationEssentials
internal import Glibc

/// What a module can change of the process around it, at one moment.
struct ProcessFacts {
    var descriptors = Self.count("/proc/self/fd")
    var threads = Self.count("/proc/self/task")
    /// Resident, in bytes.
    let memory: Int
    /// What has to stay as it is, with a word for each.
    let kept: [(name: String, value: String)]

    /// Those of libuv, for children and terminals, and of glibc, for its threads: no module's doing.
    private static let systemSignals: Set<Int> = [17, 28, 32, 33]

    init() {
        let pages = Self.text("/proc/self/statm").split(separator: " ")
        memory = (pages.count > 1 ? Int(pages[1]) ?? 0 : 0) * Int(sysconf(Int32(_SC_PAGESIZE)))
        var kept: [(String, String)] = []
        kept.append(("the working directory", FileManager.default.currentDirectoryPath))
        let status = Self.text("/proc/self/status").split(separator: "\n")
        func field(_ name: String) -> Substring {
            status.first { $0.hasPrefix(name) }?.dropFirst(name.count).drop { $0 == "\t" } ?? ""
        }
        kept.append(("the umask", String(field("Umask:"))))
        for (name, what) in [("SigCgt:", "is handled"), ("SigIgn:", "is ignored")] {
            let set = UInt64(field(name), radix: 16) ?? 0
            for signal in 1...64 where !Self.systemSignals.contains(signal) {
                kept.append(("whether signal \(signal) \(what)", "\(set >> UInt64(signal - 1) & 1)"))
            }
        }
        kept.append(("the locale", setlocale(LC_ALL, nil).map { String(cString: $0) } ?? ""))
        let environment = ProcessInfo.processInfo.environment.sorted { $0.key < $1.key }
        kept.append(("the environment", environment.map { "\($0.key)=\($0.value)" }.joined(separator: "\n")))
        self.kept = kept
    }

    /// What is not as it was.
    func changes(since before: ProcessFacts) -> [String] {
        zip(before.kept, kept).compactMap { $0.value == $1.value ? nil : $0.name }
    }

    private static func count(_ folder: String) -> Int {
        (try? FileManager.default.contentsOfDirectory(atPath: folder).count) ?? 0
    }

    private static func text(_ path: String) -> String {
        (try? Data(contentsOf: URL(filePath: path))).map { String(decoding: $0, as: UTF8.self) } ?? ""
    }
}
