// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import Testing

/// `#expect` for what a mutating method, or a value that cannot be copied, gives: the macro takes neither.
func expect<Value: Equatable>(
    _ value: Value, is expected: Value, _ comment: Comment? = nil, sourceLocation: SourceLocation = #_sourceLocation
) {
    #expect(value == expected, comment, sourceLocation: sourceLocation)
}
