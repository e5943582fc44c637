// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import CFuzzer
import Glibc

// `@_cdecl("LLVMFuzzerTestOneInput")` does not link with SwiftPM 6.3.1; a main that calls the driver does.
var count = CommandLine.argc
var arguments: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>? = CommandLine.unsafeArgv
exit(
    LLVMFuzzerRunDriver(&count, &arguments) { data, size in
        FrameDecoderCheck.run(UnsafeRawBufferPointer(start: data, count: size))
        return 0
    })
