// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import CFuzzer
import Glibc

/// Gives libFuzzer's inputs to `check` until its time is over, and ends the process.
///
/// `@_cdecl("LLVMFuzzerTestOneInput")` does not link with SwiftPM 6.3.1; a main that calls the driver does.
public func fuzz(_ check: @convention(c) (UnsafePointer<UInt8>?, Int) -> Int32) -> Never {
    var count = CommandLine.argc
    var arguments: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>? = CommandLine.unsafeArgv
    exit(LLVMFuzzerRunDriver(&count, &arguments, check))
}
