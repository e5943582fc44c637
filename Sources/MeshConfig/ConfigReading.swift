// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// All layers of a configuration, in memory.
public struct ConfigInput: Sendable {
    /// The files, lowest layer first.
    public var texts: [ConfigText]
    /// The whole environment; only `MESHHOST__…` is looked at.
    public var environment: [String: String]
    /// The `--set` arguments, each `key=value`.
    public var settings: [String]
    /// What went wrong while the files were gathered.
    public var diagnostics: [ConfigDiagnostic]

    public init(
        texts: [ConfigText], environment: [String: String] = [:], settings: [String] = [],
        diagnostics: [ConfigDiagnostic] = []
    ) {
        self.texts = texts
        self.environment = environment
        self.settings = settings
        self.diagnostics = diagnostics
    }

    /// Reads the files: the `explicit` ones, or those of `folder` if there are none.
    public static func gathering(
        explicit: [String] = [], folder: String = "/etc/meshhost", environment: [String: String] = [:],
        settings: [String] = []
    ) -> ConfigInput {
        let (texts, diagnostics) = ConfigFiles.gather(explicit: explicit, folder: folder)
        return ConfigInput(texts: texts, environment: environment, settings: settings, diagnostics: diagnostics)
    }
}

/// What a configuration turned out to be.
public struct ConfigReading: Sendable {
    /// Nil with any error.
    public var config: HostConfig?
    /// Where a daemon that runs with this config listens, whatever else is wrong with it: it may have been changed since.
    public var controlSocket: String
    /// Each module that the config names, in a device or a section of its own, by name, whatever else is wrong with it.
    public var modules: [ModuleRequest]
    /// Folders that are searched for modules; empty means the built-in search path.
    public var modulePath: [String]
    /// What it relies on that lies outside of it, whatever else is wrong with it. Nobody has looked whether it is there.
    public var requirements: [ConfigRequirement]
    /// Errors and warnings in the order of the sources.
    public var diagnostics: [ConfigDiagnostic]
    let layout: SourceLayout

    /// ``diagnostics`` and what others have found, in the order of the sources.
    public func diagnostics(and others: [ConfigDiagnostic]) -> [ConfigDiagnostic] {
        layout.arranged(diagnostics + others)
    }
}

extension HostConfig {
    /// Reads, lays over each other and checks all layers, and finds everything that is wrong at once. Pure, as far as
    /// `modules` is; that is called once for each module.
    public static func reading(
        _ input: ConfigInput, modules: @escaping (ModuleRequest) -> ModuleLookup
    ) -> ConfigReading {
        var diagnostics = DiagnosticList()
        var layers = LayerMerge()
        input.diagnostics.forEach { diagnostics.append($0) }
        var isComplete = !input.diagnostics.hasErrors
        for text in input.texts {
            do throws(ConfigDiagnostic) {
                let node = try text.isJSON ? ConfigNode.parsing(json: text) : ConfigNode.parsing(toml: text)
                layers.add(node.table ?? ConfigTable(), &diagnostics)
            } catch {
                diagnostics.append(error)
                isComplete = false
            }
        }
        var overrides = ConfigOverride.all(in: input.environment)
        var sources = overrides.map(\.position.source)
        for argument in input.settings {
            do throws(ConfigDiagnostic) {
                let override = try ConfigOverride(argument: argument)
                overrides.append(override)
                sources.append(override.position.source)
            } catch {
                diagnostics.append(error)
                sources.append(error.position.source)
            }
        }
        for override in overrides {
            do throws(ConfigDiagnostic) {
                layers.add(try override.layer(over: layers.root), &diagnostics)
            } catch {
                diagnostics.append(error)
            }
        }
        var reader = HostConfigReader(diagnostics: diagnostics, isComplete: isComplete, modules: modules)
        let config = reader.read(layers.root)
        let layout = reader.diagnostics.layout(texts: input.texts, overrides: sources)
        let found = layout.arranged(reader.diagnostics.found)
        let names = Set(reader.lookups.keys).union(config.modules.map(\.name))
        return ConfigReading(
            config: found.hasErrors ? nil : config, controlSocket: config.daemon.controlSocket,
            modules: names.sorted().map { config.request(forModule: $0) }, modulePath: config.daemon.modulePath,
            requirements: reader.requirements, diagnostics: found, layout: layout)
    }
}
