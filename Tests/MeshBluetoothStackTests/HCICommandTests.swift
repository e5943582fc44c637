// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshBluetoothStack
import Testing

/// Against the commands of Bumble 0.0.236 in the transcripts.
struct HCICommandTests {
    @Test(arguments: Transcript.names) func `commands of the transcripts come out as they went in`(name: String) throws
    {
        for record in try Transcript(name).records where record.kind == .command {
            let command = try HCICommand.decode(record.packet.span.bytes)
            #expect(command.packet == record.packet)
            DecoderVerifier { try HCICommand.decode($0) }.verify(record.packet)
        }
    }

    private func first(_ opcode: HCIOpcode, in name: String = "passkey_sc") throws -> HCICommand {
        try #require(try Transcript(name).commands().first { $0.opcode == opcode })
    }

    @Test func `commands of the bring-up`() throws {
        #expect(HCICommand.reset == (try first(.reset)))
        #expect(HCICommand.read(.readSupportedCommands) == (try first(.readSupportedCommands)))
        // The mask of Bumble, in whose notation the lowest byte comes first: ff9fffbf07f8bf3d.
        #expect(HCICommand.setEventMask(0x3DBF_F807_BFFF_9FFF) == (try first(.setEventMask)))
        #expect(HCICommand.setEventMaskPage2(1 << 25) == (try first(.setEventMaskPage2)))
        #expect(HCICommand.writeDefaultDataLength(.maximum) == (try first(.writeDefaultDataLength)))
        #expect(
            HCICommand.setRandomAddress(DeviceAddress(0xC000_0000_0001, .random)) == (try first(.setRandomAddress)))
    }

    @Test func `scanning on the modes 1M and coded`() throws {
        let command = HCICommand.setExtendedScanParameters(
            isActive: true, interval: 96, window: 96, ownAddressKind: .random, phys: [.oneMegabit, .coded])
        #expect(command == (try first(.setExtendedScanParameters)))
        #expect(
            HCICommand.setExtendedScanEnable(true, filtersDuplicates: true).parameters.count
                == (try first(.setExtendedScanEnable)).parameters.count)
    }

    @Test func `disconnecting and encrypting`() throws {
        let disconnect = try first(.disconnect)
        #expect(HCICommand.disconnect(ConnectionHandle(UInt16(disconnect.parameters[0]))) == disconnect)
        let encrypt = try first(.enableEncryption)
        let handle = ConnectionHandle(UInt16(encrypt.parameters[0]))
        #expect(HCICommand.enableEncryption(handle, key: Array(encrypt.parameters.suffix(16))) == encrypt)
    }

    // Core 5.4 Vol 4 Part E §7.8.12: the layout, with this host's defaults.
    @Test func `creating a connection asks for a supervision timeout of at least 4 s (R24)`() {
        let request = ConnectionRequest(
            peer: DeviceAddress(0xC123_4567_89AB, .random), ownAddressKind: .random)
        let legacy = HCICommand.createConnection(request)
        #expect(
            legacy.parameters
                == hex("6000 6000 00 01 ab89674523c1 01 0600 0c00 0000 f401 0000 1800"))
        #expect(
            HCICommand.extendedCreateConnection(request).parameters
                == hex("00 01 01 ab89674523c1 01 6000 6000 0600 0c00 0000 f401 0000 1800"))
        for parameters in [ConnectionParameters.fast, .relaxed] {
            #expect(parameters.isValid)
            #expect(parameters.supervisionTimeout >= 400)
        }
        let short = ConnectionParameters(
            minimumInterval: 12, maximumInterval: 24, latency: 4, supervisionTimeout: 200)
        #expect(short.withSupervisionInBounds.supervisionTimeout == 400)
        #expect(short.withSupervisionInBounds.latency == 4)
        var long = short
        long.supervisionTimeout = 3200
        #expect(long.withSupervisionInBounds.supervisionTimeout == 1000)
        // A device that sleeps for so long needs it.
        for (interval, latency) in [(3200, 1), (3200, 2), (800, 9), (40, 300)] as [(UInt16, UInt16)] {
            let sleepy = ConnectionParameters(
                minimumInterval: interval, maximumInterval: interval, latency: latency, supervisionTimeout: 3200)
            let bounded = sleepy.withSupervisionInBounds
            #expect(bounded.isValid == sleepy.isValid)
            #expect(bounded.supervisionTimeout < 3200 && bounded.supervisionTimeout > 1000)
        }
    }

    @Test func `advertising`() {
        #expect(
            HCICommand.setAdvertisingParameters(
                minimumInterval: 32, maximumInterval: 48, ownAddressKind: .random
            ).parameters == hex("2000 3000 00 01 00 000000000000 07 00"))
        #expect(
            HCICommand.setAdvertisingData([2, 1, 6]).parameters == hex("03 020106") + [UInt8](repeating: 0, count: 28))
        #expect(
            HCICommand.setExtendedAdvertisingParameters(
                set: 0, minimumInterval: 32, maximumInterval: 48, ownAddressKind: .random
            ).parameters == hex("00 1300 200000 300000 07 01 00 000000000000 00 7f 01 00 01 00 00"))
        #expect(HCICommand.setExtendedAdvertisingData(set: 0, [2, 1, 6]).parameters == hex("00 03 01 03 020106"))
        #expect(HCICommand.setExtendedAdvertisingEnable(true, set: 0).parameters == hex("01 01 00 0000 00"))
    }
}
