// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import CTransportABI
internal import FoundationEssentials
internal import MeshLoop
internal import MeshTransportAPI

/// What carries out the functions of one running instance: the module's code in this process, or a child process.
///
/// Each method is the ABI's function of the same name, with its results; one that the module lacks gives `MH_ENOSUP`. What
/// the module says of it comes through the instance's ``InstanceInbox``, whichever way it is carried out. Used on the
/// loop's thread only.
protocol ModuleBackend: AnyObject {
    /// `options` is a JSON object.
    func connect(_ link: mh_link, device: String, options: Data) -> mh_status
    func disconnect(_ link: mh_link) -> mh_status
    /// The module's answer and, if the frame is done already, how that went.
    func send(
        _ link: mh_link, _ frame: Data, cookie: UInt64, withoutResponse: Bool
    ) -> (accepted: mh_status, done: mh_status?)
    /// The consumer of this link took so much.
    func framesTaken(_ link: mh_link, frames: Int, bytes: Int)
    /// Nothing is awaited about this ended link any more.
    func forget(_ link: mh_link)
    /// `filter` is a JSON object.
    func scan(isOn: Bool, filter: Data) -> mh_status
    /// `params` is a JSON object.
    func manage(_ request: UInt64, verb: String, params: Data) -> mh_status
    func cancelManage(_ request: UInt64) -> mh_status
    /// What the module says of its inside: JSON, perhaps not valid; nil where it says nothing.
    func diagnostics() async -> Data?
    /// What was measured of it, for diagnostics.
    var facts: [String: JSONValue] { get }
    /// Begins the end; ``HostEvent/stopped`` follows.
    func stop() -> mh_status
    /// Ends what does not stop, by force. True: ``HostEvent/stopped`` follows soon; false: it cannot be ended.
    func kill() -> Bool
    /// After ``HostEvent/stopped``, or a failed start. Nothing is called after it.
    func destroy()
}

/// A module that instances can be made of.
protocol HostedModule: AnyObject, Sendable {
    /// Name, version, vendor, license, capabilities and the option table.
    var descriptor: TransportDescriptor { get }
    /// Whether it looks for devices.
    var canScan: Bool { get }
    /// Whether a send without acknowledgement differs from one with.
    var canSendWithoutResponse: Bool { get }
    /// Whether it can be told to go on after `MH_AGAIN`; if not, what does not fit is lost at once.
    var canResume: Bool { get }
    /// What is known of it and of what runs of it.
    var status: ModuleStatus { get }

    /// What the module itself thinks of one device's options, as far as that is known without waiting.
    func validate(_ options: [String: JSONValue]) -> [OptionIssue]

    /// What has to be asked before that is known; nil if it is.
    func question(_ options: [String: JSONValue]) -> OptionQuestion?

    /// Asks it, and waits for the answers.
    func ask(_ questions: [OptionQuestion]) -> [OptionQuestion: [OptionIssue]]

    /// Which device options mean, as far as that is known without waiting; nil where it does not say.
    func identity(_ options: [String: JSONValue]) -> String?

    /// Returns when nothing is left of instances that have ended.
    func settled() async

    /// Creates and starts an instance with this configuration; what it says goes to `inbox`, which ``InstanceInbox/open``
    /// has been called of. On the loop's thread.
    func start(
        _ options: [String: JSONValue], inbox: InstanceInbox, loop: EventLoop, log: LogSink, settings: ModuleSettings
    ) throws(MeshError) -> any ModuleBackend
}

extension HostedModule {
    // In this process it costs nothing to ask.
    func question(_ options: [String: JSONValue]) -> OptionQuestion? { nil }
    func ask(_ questions: [OptionQuestion]) -> [OptionQuestion: [OptionIssue]] { [:] }

    /// Whether one instance carries the links of all devices.
    var isMultilink: Bool { descriptor.capabilities.rawValue & MH_CAP_MULTILINK != 0 }
}
