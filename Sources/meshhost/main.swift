// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import Glibc
import MeshDaemon

exit(HostProgram.run(Array(CommandLine.arguments.dropFirst()), environment: ProcessInfo.processInfo.environment))
