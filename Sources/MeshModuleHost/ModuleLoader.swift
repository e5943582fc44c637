// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import CTransportABI
internal import Glibc
internal import MeshTransportAPI
internal import Synchronization

/// Brings modules into the process. One for the whole process: a file is loaded once, however often it is asked for.
///
/// May be used from any thread, but a module's entry function runs inside ``load(_:path:)``.
public final class ModuleLoader: Sendable {
    /// Where modules are looked for.
    public let locator: ModuleLocator
    private let loaded = Mutex<[ModuleFile.Identity: LoadedModule]>([:])

    public init(locator: ModuleLocator = ModuleLocator()) {
        self.locator = locator
    }

    /// The module that a config calls `name`, from `path` or from the search folders; with `pin` only the file of that
    /// digest. Reads its description; runs nothing else of it. Throws with one line that says which file, which rule and
    /// what to do.
    public func load(
        _ name: String, path: String? = nil, pin: ModuleDigest? = nil
    ) throws(ModuleRefusal) -> LoadedModule {
        guard ModuleName.isValid(name), let path = path ?? locator.path(ofModule: name) else {
            throw locator.refusal(ofModule: name)
        }
        let file = try ModuleFile.open(path, pin: pin)
        let identity = file.identity
        if let module = loaded.withLock({ $0[identity] }) {
            guard module.descriptor.name == name else {
                throw ModuleRefusal(
                    path, "is the module \"\(module.descriptor.name)\", not \"\(name)\"",
                    advice: "write module = \"\(module.descriptor.name)\" in the config, or install the right file")
            }
            return module
        }
        let module = try Self.open(file, name: name)
        return loaded.withLock { loaded in
            // Two threads may have opened it at once: the linker gave both the same image.
            if let first = loaded[identity] { return first }
            loaded[identity] = module
            return module
        }
    }

    /// What is known of a module without loading it: `found`, `missing`, `refused`, or `loaded` if it is loaded already.
    public func status(of name: String, path given: String? = nil) -> ModuleStatus {
        guard ModuleName.isValid(name), let path = given ?? locator.path(ofModule: name) else {
            return ModuleStatus(
                name: name, path: nil, state: .missing, reason: locator.refusal(ofModule: name).description)
        }
        do throws(ModuleRefusal) {
            let file = try ModuleFile.open(path)
            let identity = file.identity
            if let module = loaded.withLock({ $0[identity] }) { return ModuleStatus(module) }
            return ModuleStatus(name: name, path: path, state: .found)
        } catch {
            return ModuleStatus(name: name, path: path, state: .refused, reason: error.description)
        }
    }

    /// ``load(_:path:)`` with its outcome as a status.
    public func describe(_ name: String, path given: String? = nil) -> ModuleStatus {
        do throws(ModuleRefusal) {
            return ModuleStatus(try load(name, path: given))
        } catch {
            return ModuleStatus(name, path: given ?? locator.path(ofModule: name), refusal: error)
        }
    }

    private static func open(_ file: borrowing ModuleFile, name: String) throws(ModuleRefusal) -> LoadedModule {
        // This descriptor stays open for the life of the process. The linker knows a library by its path: with the
        // number free for another module, "/proc/self/fd/7" would give that one the library loaded here.
        var kept = fcntl(file.descriptor, F_DUPFD_CLOEXEC, 64)
        // A number out of the way of short-lived ones, unless the process may not have as many.
        if kept < 0 { kept = fcntl(file.descriptor, F_DUPFD_CLOEXEC, 3) }
        guard kept >= 0 else {
            throw ModuleRefusal(
                file.path, "no descriptor is left (\(String(cString: strerror(errno))))", advice: "raise LimitNOFILE")
        }
        // RTLD_NODELETE, and never dlclose: unloading crashes the shared Swift runtime.
        guard let library = dlopen("/proc/self/fd/\(kept)", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE) else {
            let reason = dlerror().map { String(cString: $0) } ?? "unknown reason"
            throw ModuleRefusal(
                file.path, "the dynamic linker refuses it (\(reason.replacingDescriptor(kept, with: file.path)))",
                advice: "install what it needs, or a build for this system")
        }
        typealias Entry = @convention(c) () -> UnsafePointer<mh_transport_info>?
        guard let symbol = dlsym(library, MH_ENTRY_SYMBOL) else {
            let other = (0...9).filter { $0 != MH_ABI_MAJOR }
                .first { dlsym(library, "mh_transport_entry_v\($0)") != nil }
            throw other.map { major in
                ModuleRefusal(
                    file.path, "is built for ABI major \(major), this daemon has ABI \(ModuleABI.version)",
                    advice: "install the module's build for ABI \(MH_ABI_MAJOR)")
            }
                ?? ModuleRefusal(
                    file.path, "does not export \(MH_ENTRY_SYMBOL)",
                    advice: "it is no meshhost module, or its vendor forgot to export the symbol")
        }
        return try ModuleDescription.read(unsafeBitCast(symbol, to: Entry.self)(), path: file.path, name: name)
    }
}

extension String {
    /// The linker's message with the file's name in the place of the descriptor it was given.
    fileprivate func replacingDescriptor(_ descriptor: Int32, with path: String) -> String {
        let prefix = "/proc/self/fd/\(descriptor)"
        return hasPrefix(prefix) ? path + dropFirst(prefix.count) : self
    }
}
