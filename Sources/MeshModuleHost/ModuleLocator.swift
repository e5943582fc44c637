// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import Glibc
internal import MeshTransportAPI

/// Where modules are looked for. Finding is not loading: only what a config names is loaded.
public struct ModuleLocator: Sendable {
    /// Folders in search order.
    public var folders: [String]
    /// The folder of the running program, the last resort of development builds; nil where it is not searched.
    public var programFolder: String?

    /// `configured` comes first, then the packages' folder, the administrator's, and the program's own.
    public init(configured: [String] = [], searchesProgramFolder: Bool = true) {
        folders = configured + Self.systemFolders
        programFolder = searchesProgramFolder ? Self.folderOfProgram() : nil
    }

    /// Only these folders.
    public init(only folders: [String]) {
        self.folders = folders
        programFolder = nil
    }

    /// `/usr/lib/<triplet>/meshhost/modules` for distribution packages and `/usr/local/lib/meshhost/modules`.
    public static var systemFolders: [String] {
        ["/usr/lib/\(multiarchTriplet)/meshhost/modules", "/usr/local/lib/meshhost/modules"]
    }

    /// The file that a module of this name would be loaded from, or nil. Follows the search order; no file is opened.
    public func path(ofModule name: String) -> String? {
        guard ModuleName.isValid(name) else { return nil }
        for folder in searched {
            for file in ["\(name).so", "meshhost-\(name).so", "libmeshhost-\(name).so"] {
                let path = "\(folder)/\(file)"
                var status = stat()
                if lstat(path, &status) == 0 { return path }
            }
        }
        return nil
    }

    /// The same, or what to tell somebody whose module is not there.
    public func existingPath(ofModule name: String) throws(ModuleRefusal) -> String {
        guard let path = path(ofModule: name) else { throw refusal(ofModule: name) }
        return path
    }

    /// The modules that come with meshhost.
    private static let shipped = ["bluez", "hci", "mock", "serial", "tcp"]

    /// Whether a module is one of meshhost's own, where meshhost is installed or was built.
    public func isShipped(_ name: String, path: String) -> Bool {
        let homes = Self.systemFolders + (Self.folderOfProgram().map { [$0, $0 + "/modules"] } ?? [])
        return Self.shipped.contains(name)
            && path.lastIndex(of: "/").map { homes.contains(String(path[..<$0])) } ?? false
    }

    /// Every module that lies in the folders, by name, each as ``path(ofModule:)`` would find it.
    public func installed() -> [(name: String, path: String)] {
        var names: Set<String> = []
        for folder in searched {
            for file in Self.files(in: folder) {
                // The program's folder also holds libraries that are no modules; there only the full name counts.
                if let name = Self.moduleName(ofFile: file, acceptsBareName: folder != programFolder) {
                    names.insert(name)
                }
            }
        }
        return names.sorted().compactMap { name in path(ofModule: name).map { (name, $0) } }
    }

    /// What to tell somebody whose module is not there.
    func refusal(ofModule name: String) -> ModuleRefusal {
        guard ModuleName.isValid(name) else {
            return ModuleRefusal(
                "module \"\(name)\"", "a module name looks like \(ModuleName.pattern)",
                advice: "correct the name in the config")
        }
        let others = installed().map(\.name)
        let near = NearestName.of(name, among: others).map { "did you mean \"\($0)\"? else " } ?? ""
        return ModuleRefusal(
            "module \"\(name)\"",
            "no file \(name).so, meshhost-\(name).so or libmeshhost-\(name).so in "
                + searched.joined(separator: ", "),
            advice: others.isEmpty
                ? "install it, or name its folder in module_path"
                : "\(near)install it, name its folder in module_path, or use one of: \(others.joined(separator: ", "))")
    }

    private var searched: [String] { folders + (programFolder.map { [$0] } ?? []) }

    private static func moduleName(ofFile file: String, acceptsBareName: Bool) -> String? {
        guard file.hasSuffix(".so") else { return nil }
        let stem = file.dropLast(3)
        for prefix in ["libmeshhost-", "meshhost-"] where stem.hasPrefix(prefix) {
            let name = String(stem.dropFirst(prefix.count))
            return ModuleName.isValid(name) ? name : nil
        }
        let name = String(stem)
        return acceptsBareName && ModuleName.isValid(name) ? name : nil
    }

    private static func files(in folder: String) -> [String] {
        guard let directory = opendir(folder) else { return [] }
        defer { closedir(directory) }
        var files: [String] = []
        while let entry = readdir(directory) {
            withUnsafePointer(to: &entry.pointee.d_name) { name in
                name.withMemoryRebound(to: CChar.self, capacity: 256) { files.append(String(cString: $0)) }
            }
        }
        return files
    }

    private static func folderOfProgram() -> String? {
        var buffer = [UInt8](repeating: 0, count: Int(PATH_MAX))
        let count = buffer.withUnsafeMutableBytes {
            readlink("/proc/self/exe", $0.baseAddress!.assumingMemoryBound(to: CChar.self), $0.count)
        }
        guard count > 0 else { return nil }
        let path = String(decoding: buffer[..<count], as: UTF8.self)
        return path.lastIndex(of: "/").map { String(path[..<$0]) }
    }

    private static var multiarchTriplet: String {
        #if arch(x86_64)
        "x86_64-linux-gnu"
        #elseif arch(arm64)
        "aarch64-linux-gnu"
        #elseif arch(arm)
        "arm-linux-gnueabihf"
        #elseif arch(riscv64)
        "riscv64-linux-gnu"
        #elseif arch(i386)
        "i386-linux-gnu"
        #else
        "unknown"
        #endif
    }
}

/// What a module may be called.
enum ModuleName {
    static let pattern = "^[a-z][a-z0-9_-]{0,62}$"

    static func isValid(_ name: String) -> Bool { matches(name, allowsDash: true) }

    /// Option names have the same form without the dash.
    static func isValidOption(_ name: String) -> Bool { matches(name, allowsDash: false) }

    private static func matches(_ name: String, allowsDash: Bool) -> Bool {
        let bytes = Array(name.utf8)
        guard (1...63).contains(bytes.count), (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(bytes[0]) else {
            return false
        }
        return bytes.allSatisfy {
            switch $0 {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"): true
            case UInt8(ascii: "-"): allowsDash
            default: false
            }
        }
    }
}
