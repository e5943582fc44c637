// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshBLE
internal import MeshDBus
internal import MeshLoop
internal import MeshTransportAPI

/// The driver of ``PairingBook``: the agent that bluetoothd asks during a pairing.
///
/// bluetoothd asks the agent of the connection that called `Pair`, else the default agent (BlueZ `src/agent.c`, `agent_get`).
/// So it is registered on the one connection there is, again whenever bluetoothd begins a new life or drops it, and as the
/// default agent only while a device is in use whose options say so: a desktop has one of its own.
extension BlueZService {
    /// Until a registration that failed, or that bluetoothd ended, is tried again.
    private static let agentDelays = (released: Duration.seconds(1), failed: Duration.seconds(30))

    /// Whether a device in use wants it to be the default agent.
    private var wantsDefaultAgent: Bool { observers.values.contains { $0.isDefaultAgent } }

    /// Registers the agent, if it is not. Without one, a pairing makes a bond that radios refuse.
    @discardableResult
    func registerAgent() async -> Bool {
        let work = registering ?? Task(executorPreference: loop.taskExecutor) { await self.registerAgentNow() }
        registering = work
        return await work.value
    }

    private func registerAgentNow() async -> Bool {
        await registerIfNeeded()
        await settleDefaultAgent()
        registering = nil
        return isAgentRegistered
    }

    private func registerIfNeeded() async {
        guard let bus, outage == nil, !isAgentRegistered else { return }
        do throws(DBusError) {
            if agentToken == nil {
                let token = try await bus.export(path: PairingAgent.path, interface: BlueZNames.agent) {
                    call in self.assumeIsolated { $0.agentCalled(call) }
                }
                // That of a connection that has ended meanwhile would pass for one of the next.
                guard self.bus === bus else { throw DBusError(DBusError.disconnected) }
                agentToken = token
            }
            do throws(DBusError) {
                _ = try await callAgentManager("RegisterAgent", [.string(PairingAgent.capability)])
            } catch {
                if BlueZFailure(error, during: .registerAgent) != .alreadyDone { throw error }
            }
            isAgentRegistered = true
            isDefaultAgent = false
            agentTimer = nil
        } catch {
            // Once, however often it is tried again.
            log(
                agentTimer == nil ? .notice : .debug, "the pairing agent is not registered",
                [("error", error.description)])
            registerAgentLater(Self.agentDelays.failed)
        }
    }

    /// Makes it the default agent, or an ordinary one again: bluetoothd has no other way back than to register anew, which
    /// would end a pairing.
    private func settleDefaultAgent() async {
        guard isAgentRegistered, wantsDefaultAgent != isDefaultAgent else { return }
        do throws(DBusError) {
            if wantsDefaultAgent {
                _ = try await callAgentManager("RequestDefaultAgent")
                isDefaultAgent = true
            } else if !book.isPairing {
                isAgentRegistered = false
                _ = try await callAgentManager("UnregisterAgent")
                await registerIfNeeded()
            } else {
                return
            }
            // Who wants it may have changed meanwhile.
            await settleDefaultAgent()
        } catch {
            log(.notice, "the default agent could not be changed", [("error", error.description)])
            registerAgentLater(Self.agentDelays.failed)
        }
    }

    /// Those who want it to be the default agent may have changed.
    func defaultAgentChanged() {
        if isAgentRegistered, wantsDefaultAgent != isDefaultAgent { registerAgentLater(.zero) }
    }

    private func registerAgentLater(_ delay: Duration) {
        guard bus != nil else { return }
        let timer = agentTimer ?? LoopTimer(loop)
        agentTimer = timer
        timer.schedule(after: delay) {
            self.agentWork = Task(executorPreference: self.loop.taskExecutor) { _ = await self.registerAgent() }
        }
    }

    private func callAgentManager(_ member: String, _ arguments: [DBusValue] = []) async throws(DBusError)
        -> [DBusValue]
    {
        try await call(
            BlueZNames.agentManagerPath, BlueZNames.agentManager, member, [.objectPath(PairingAgent.path)] + arguments)
    }

    private func agentCalled(_ call: DBusMethodCall) {
        // Nobody but bluetoothd gets a passkey, whatever the policy of the bus lets through.
        guard call.sender == owner else {
            call.fail(PairingAgent.rejected)
            return
        }
        guard let question = PairingAgent.question(of: call.member), let device = call.arguments.first?.text else {
            // It has dropped us: somebody else restarted it, or took our name.
            call.reply()
            if call.member == "Release" {
                isAgentRegistered = false
                registerAgentLater(Self.agentDelays.released)
            }
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
