// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshBLE
internal import MeshDBus
internal import MeshLoop
internal import MeshTransportAPI

/// The driver of ``PairingBook``: the agent that bluetoothd asks during a pairing.
///
/// bluetoothd asks the agent of the connection that called `Pair`, else the default agent (BlueZ `src/agent.c`, `agent_get`).
/// So it is registered on the one connection there is, again whenever bluetoothd begins a new life, and as the default agent only
/// if an option says so: a desktop has one of its own.
extension BlueZService {
    /// Registers the agent, if it is not. Without one, a pairing makes a bond that radios refuse.
    @discardableResult
    func registerAgent() async -> Bool {
        guard let bus, outage == nil else { return false }
        if isAgentRegistered { return true }
        let manager = (BlueZNames.agentManagerPath, BlueZNames.agentManager)
        do throws(DBusError) {
            if agentToken == nil {
                agentToken = try await bus.export(path: PairingAgent.path, interface: BlueZNames.agent) {
                    call in self.assumeIsolated { $0.agentCalled(call) }
                }
            }
            do throws(DBusError) {
                _ = try await call(
                    manager.0, manager.1, "RegisterAgent",
                    [.objectPath(PairingAgent.path), .string(PairingAgent.capability)])
            } catch {
                if BlueZFailure(error, during: .registerAgent) != .alreadyDone { throw error }
            }
            isAgentRegistered = true
            if wantsDefaultAgent {
                _ = try await call(manager.0, manager.1, "RequestDefaultAgent", [.objectPath(PairingAgent.path)])
            }
        } catch {
            log(.notice, "the pairing agent is not registered", [("error", error.description)])
        }
        return isAgentRegistered
    }

    /// Makes it the default agent, now or when it is registered.
    func requestDefaultAgent() async {
        if wantsDefaultAgent { return }
        wantsDefaultAgent = true
        isAgentRegistered = false
        await registerAgent()
    }

    private func agentCalled(_ call: DBusMethodCall) {
        // Nobody but bluetoothd gets a passkey, whatever the policy of the bus lets through.
        guard call.sender == owner else {
            call.fail(PairingAgent.rejected)
            return
        }
        guard let question = PairingAgent.question(of: call.member), let device = call.arguments.first?.text else {
            // It has dropped us: somebody else restarted it, or took our name.
            if call.member == "Release" { isAgentRegistered = false }
            call.reply()
            return
        }
        let answer = book.answer(question, from: device, address: objects.devices[device]?.address)
        let fields = [
            ("question", "\(question)"), ("device", device.split(separator: "/").last.map(String.init) ?? ""),
        ]
        if let reply = PairingAgent.reply(answer) {
            log(.info, "the pairing agent was asked", fields)
            call.reply(reply)
        } else {
            log(.notice, "the pairing agent refused", fields)
            call.fail(PairingAgent.rejected)
        }
    }
}
