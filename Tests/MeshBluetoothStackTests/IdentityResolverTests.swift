// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshBluetoothStack
import Testing

struct IdentityResolverTests {
    private let roof = DeviceAddress(0xC011_2233_4455, .random)
    private let tower = DeviceAddress(0x00AA_BBCC_DD00, .public)
    private func key(_ number: UInt8) -> [UInt8] { [UInt8](repeating: number, count: 16) }

    @Test func `a private address is its device's, as long as the bond lasts`() throws {
        var resolver = IdentityResolver()
        let bonds: [IdentityResolver.Identity] = [(tower, key(2)), (roof, key(1))]
        for random: UInt32 in [1, 77, 0x3F_FFFF] {
            let address = try ResolvableAddress.make(key: key(1), random: random)
            for _ in 0..<2 { #expect(resolver.identity(of: address, among: bonds) == roof) }
            #expect(resolver.identity(of: address, among: [bonds[0]]) == address)
            #expect(resolver.identity(of: address, among: []) == address)
        }
        // A bond that is made later counts for addresses that were strange before.
        let address = try ResolvableAddress.make(key: key(3), random: 5)
        #expect(resolver.identity(of: address, among: bonds) == address)
        #expect(resolver.identity(of: address, among: bonds + [(tower, key(3))]) == tower)
    }

    @Test func `addresses that are not private are what they are`() {
        var resolver = IdentityResolver()
        for address in [roof, tower, DeviceAddress(0x0011_2233_4455, .random)] {
            #expect(resolver.identity(of: address, among: [(roof, key(1))]) == address)
        }
    }

    @Test func `strangers cost no more than the limit`() throws {
        var resolver = IdentityResolver(limit: 4)
        for random: UInt32 in 0..<100 {
            let address = try ResolvableAddress.make(key: key(9), random: random)
            #expect(resolver.identity(of: address, among: [(roof, key(1))]) == address)
        }
        let own = try ResolvableAddress.make(key: key(1), random: 1)
        #expect(resolver.identity(of: own, among: [(roof, key(1))]) == roof)
    }
}
