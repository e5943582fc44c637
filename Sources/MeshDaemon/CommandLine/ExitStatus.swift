// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// Exit statuses (sysexits.h).
enum ExitStatus: Int32 {
    case ok = 0
    case usage = 64
    case unavailable = 69
    case internalError = 70
    case inputOutput = 74
    case permission = 77
    case configuration = 78
}
