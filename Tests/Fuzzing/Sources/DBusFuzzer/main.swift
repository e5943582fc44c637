// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FuzzDriver

fuzz { data, size in
    DBusCheck.run(UnsafeRawBufferPointer(start: data, count: size))
    return 0
}
