// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshTransportAPI

/// Who gets onto a share, and how what they say is protected.
struct ShareAccess {
    var isInsecure = false
    var tls: ShareTLSConfig?
    var tokens: [ShareTokenConfig] = []
    /// Tokens were written, whether or not they could be read.
    var wantsTokens = false
    /// TLS was written, whether or not all of it could be read.
    var wantsTLS = false
}

extension HostConfigReader {
    mutating func readAccess(kind: ShareKind?, in section: Section) -> ShareAccess {
        typealias Keys = ConfigSchema.Share
        var access = ShareAccess(isInsecure: value(Keys.insecure, in: section))
        access.tls = readTLS(kind: kind, in: section)
        access.wantsTLS = section.table["tls_certificate"] != nil || section.table["tls_key"] != nil
        hideSecrets(in: section)
        let nodes = elements("token", header: "share.token", of: section)
        access.wantsTokens = !nodes.isEmpty
        var names: [String: SourcePosition] = [:]
        for (index, node) in nodes.enumerated() {
            if let token = readToken(node, ordinal: index + 1, &names, in: section) { access.tokens.append(token) }
        }
        if access.wantsTokens, let role = section.table["role"] {
            diagnostics.warning(
                .contradiction, at: role.node.position, in: section.label.text,
                "\"role\" means nothing for a share with tokens", hint: "write it in each [[share.token]]")
        }
        return access
    }

    /// A secret may stand in the share itself by mistake, also under a key that is misspelt.
    private mutating func hideSecrets(in share: Section) {
        for entry in share.table.entries where NearestKey.of(entry.key, among: ["token", "secret"]) != nil {
            if case .array(let elements) = entry.node.value {
                for element in elements where element.table == nil { diagnostics.hideLine(at: element.position) }
            } else {
                diagnostics.hideLine(at: entry.node.position)
            }
        }
    }

    private mutating func readTLS(kind: ShareKind?, in section: Section) -> ShareTLSConfig? {
        typealias Keys = ConfigSchema.Share
        let certificate = section.table["tls_certificate"]
        let key = section.table["tls_key"]
        let path = value(Keys.tlsCertificate, in: section)
        let keyPath = value(Keys.tlsKey, in: section)
        guard let written = certificate ?? key else { return nil }
        if kind == .companionUnix {
            diagnostics.error(
                .contradiction, at: written.node.position, in: section.label.text,
                "\"\(written.key)\" does not go with type \"companion-unix\"",
                hint: "what a Unix socket carries does not leave this host")
        } else if certificate == nil || key == nil {
            let other = certificate == nil ? "tls_certificate" : "tls_key"
            if isComplete, !section.proposed.contains(other) {
                diagnostics.error(
                    .contradiction, at: written.node.position, in: section.label.text,
                    "\"\(written.key)\" needs \"\(other)\" as well")
            }
        }
        guard let path, let keyPath, let certificate, let key else { return nil }
        let tls = ShareTLSConfig(certificate: path, key: keyPath)
        requirements.append(
            ConfigRequirement(
                .certificate(tls, keyPosition: key.node.position), at: certificate.node.position,
                in: section.label.text))
        return tls
    }

    private mutating func readToken(
        _ node: ConfigNode, ordinal: Int, _ names: inout [String: SourcePosition], in share: Section
    ) -> ShareTokenConfig? {
        typealias Keys = ConfigSchema.Token
        guard let table = node.table else {
            diagnostics.error(
                .wrongType, at: node.position, in: share.label.text,
                "\"token\" takes a list of tables, and this is \(node.typeName)", hint: "write [[share.token]]")
            return nil
        }
        let written = table["name"]?.node
        let label = share.label.element(of: "share.token", name: written?.text, ordinal: ordinal)
        var section = Section(label: label, table: table, position: node.position)
        section.overridePath =
            ["share", share.table["name"]?.node.text ?? "NAME", "token", written?.text ?? "NAME"]
        // Under a key that is misspelt there may be the secret as well.
        for entry in table.entries where !["name", "role"].contains(entry.key) {
            if case .unparsed = entry.node.value {} else { diagnostics.hideLine(at: entry.node.position) }
        }
        judgeKeys(of: &section, Keys.section.keys)
        reportMissing(
            Keys.section.keys, in: section, hint: overrideHint(section, list: "share.token", names: names.keys.sorted())
        )
        let name = value(Keys.name, in: section)
        let role = value(Keys.role, in: section)
        let secret = table["secret"].flatMap { readTokenSecret($0, in: section) }
        guard let name, let written else { return nil }
        if let other = names[name] {
            diagnostics.error(
                .nameTaken, at: written.position, in: share.label.text, "there are two tokens named \(name.quoted)",
                hint: "the other one is at \(other)")
            return nil
        }
        names[name] = written.position
        guard let secret else { return nil }
        var token = ShareTokenConfig(name: name, secret: secret)
        token.role = role
        if case .inline = secret { return token }
        requirements.append(
            ConfigRequirement(.token(token), at: table["secret"]?.node.position ?? node.position, in: label.text))
        return token
    }

    private mutating func readTokenSecret(_ entry: ConfigEntry, in section: Section) -> SecretReference? {
        let reference = readSecret(entry, in: section)
        // What a reference leads to is looked at when it is read.
        if case .inline(let text) = reference, text.revealed.count < ShareTokenConfig.shortestSecret {
            diagnostics.error(
                .valueNotAllowed, at: entry.node.position, in: section.label.text, "\"secret\" is too short",
                hint: "take \(ShareTokenConfig.shortestSecret) characters or more, such as from: openssl rand -hex 32")
        }
        return reference
    }

    /// A listener that others than programs on this host reach needs tokens and TLS, or has to be asked for in so many
    /// words.
    mutating func judgeExposure(
        _ address: ListenAddress, at place: SourcePosition, _ access: ShareAccess, in section: Section
    ) {
        guard case .tcp(_, let port) = address, !address.isLocal, !access.isInsecure else { return }
        switch (access.wantsTokens, access.wantsTLS) {
        case (true, true): return
        case (true, false):
            diagnostics.error(
                .listenerExposed, at: place, in: section.label.text,
                "\"listen\" opens \"\(address)\" to the network without TLS",
                hint: """
                    what follows the proof of a token is neither secret nor protected; write one of these:
                    tls_certificate = "/path" and tls_key = "/path"   # clients speak TLS
                    insecure = true   # the network is trusted
                    """)
        case (false, let wantsTLS):
            diagnostics.error(
                .listenerExposed, at: place, in: section.label.text,
                "\"listen\" opens \"\(address)\" to the network without authentication",
                hint: """
                    write one of these:
                    listen = "127.0.0.1:\(port)"   # this host only
                    [[share.token]]\(wantsTLS ? "" : ", tls_certificate and tls_key")   # who has a token
                    insecure = true   # everyone who reaches this port
                    """)
        }
    }
}
