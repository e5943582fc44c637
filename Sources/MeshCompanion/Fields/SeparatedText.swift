// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

extension String {
    /// What stands between separators, as radios see them: by bytes. `split` looks for characters, and `\r\n` is one, as is
    /// a colon with an accent.
    func parts(separatedBy separator: Unicode.Scalar, maximum: Int = .max) -> [String] {
        unicodeScalars.split(separator: separator, maxSplits: maximum - 1, omittingEmptySubsequences: false)
            .map(String.init)
    }
}
