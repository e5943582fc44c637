// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import Glibc

exit(Program.run(Array(CommandLine.arguments.dropFirst())))
