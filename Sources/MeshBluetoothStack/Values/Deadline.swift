// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

extension Duration? {
    /// The earlier of two deadlines, either of which there may not be. Asked for after each packet, so without a list.
    public func orEarlier(_ other: Duration?) -> Duration? {
        guard let self else { return other }
        guard let other else { return self }
        return Swift.min(self, other)
    }
}
