// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import Glibc

/// Finds and reads the configuration files. The only part of the library that touches the outside world, beside
/// ``SecretReference/resolve(_:)``.
public enum ConfigFiles {
    /// Longer files are refused.
    public static let maximumLength = 1_048_576

    /// Reads one file.
    public static func read(_ path: String) throws(ConfigDiagnostic) -> ConfigText {
        do throws(BoundedFile.Problem) {
            return ConfigText(path: path, bytes: try BoundedFile(path: path, maximumLength: maximumLength).bytes)
        } catch {
            var hint: String?
            if case .notPermitted = error { hint = "run meshhost as root, with sudo, or as a user who may read it" }
            throw ConfigDiagnostic(
                .error, .fileUnreadable, at: SourcePosition(source: path), "the file \(error.description)", hint: hint)
        }
    }

    /// Reads the files of all layers, lowest first.
    ///
    /// With `explicit` files these alone; otherwise `folder/config.toml` and `folder/config.d/*.toml` in byte order,
    /// each of which may be missing.
    public static func gather(
        explicit: [String] = [], folder: String = "/etc/meshhost"
    ) -> (texts: [ConfigText], diagnostics: [ConfigDiagnostic]) {
        var paths = explicit
        var diagnostics: [ConfigDiagnostic] = []
        if explicit.isEmpty {
            let main = "\(folder)/config.toml"
            let parts = "\(folder)/config.d"
            if access(main, F_OK) == 0 || errno != ENOENT {
                paths.append(main)
            }
            do throws(BoundedFile.Problem) {
                paths += try names(in: parts).filter { $0.hasSuffix(".toml") && !$0.hasPrefix(".") }
                    .sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }.map { "\(parts)/\($0)" }
            } catch .missing {
                // No such folder: nothing to add.
            } catch {
                diagnostics.append(
                    ConfigDiagnostic(
                        .error, .fileUnreadable, at: SourcePosition(source: parts), "the folder \(error.description)"))
            }
            if paths.isEmpty, diagnostics.isEmpty {
                diagnostics.append(
                    ConfigDiagnostic(
                        .warning, .nothingFound, at: SourcePosition(source: main),
                        "there is no configuration file", hint: "write one, or name one with --config"))
            }
        }
        var texts: [ConfigText] = []
        for path in paths {
            do throws(ConfigDiagnostic) {
                texts.append(try read(path))
            } catch {
                diagnostics.append(error)
            }
        }
        return (texts, diagnostics)
    }

    private static func names(in folder: String) throws(BoundedFile.Problem) -> [String] {
        guard let directory = opendir(folder) else { throw BoundedFile.Problem(errno: errno) }
        defer { closedir(directory) }
        var names: [String] = []
        while let entry = readdir(directory) {
            names.append(
                withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
                    String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
                })
        }
        return names
    }
}
