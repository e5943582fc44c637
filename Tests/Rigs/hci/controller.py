# SPDX-License-Identifier: Apache-2.0
# meshhost: a host for mesh radios and other byte-link devices
"""Bumble's virtual controller with what real ones do and Bumble 0.0.236 does not, and with faults.

Real behaviour added: HCI_Reset ends links (the peer sees 0x08) and stops advertising and scanning; the end of a cancelled
attempt to connect; LE_Set_Data_Length, LE_Set_PHY, Read_RSSI, Read_Remote_Version_Information; ACL fragments towards the
host; completed packets only for links that exist; a host that connects from its public address; several links to one
address space; scan responses.

Faults: `link_loss`, `vanish`, `stalled` (completed packets withheld), `mute` (nothing reaches the host any more),
`hardware_error`, slow, delayed or collected completed packets, the enhanced form of Connection Complete.
"""
import asyncio

from bumble import hci, ll
from bumble.controller import Controller
from bumble.core import PhysicalTransport
from bumble.link import LocalLink

COLLECT_AT_MOST = 0.005      # seconds a collected completed-packets count may wait for more


class Air(LocalLink):
    """The medium. Bumble's names every LE sender by its random address, also one that connected by its public one."""

    def send_acl_data(self, sender_controller, destination_address, transport, data):
        if transport != PhysicalTransport.LE:
            super().send_acl_data(sender_controller, destination_address, transport, data)
            return
        connection = sender_controller.le_connections.get(destination_address)
        receiver = self.find_le_controller(destination_address)
        if connection is not None and receiver is not None:
            asyncio.get_running_loop().call_soon(
                receiver.on_link_acl_data, connection.self_address, transport, data)


class RigController(Controller):
    fragment_to_host = 0           # bytes of an ACL packet to the host; 0 leaves them whole
    stalled = False
    muted = False
    completed_delay = 0.0          # seconds between an ACL packet and its Number_Of_Completed_Packets
    completed_collect = 1          # packets reported in one event
    enhanced_complete = False
    supported_max_tx_octets = supported_max_rx_octets = 251
    supported_max_tx_time = supported_max_rx_time = 17040

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.withheld = []         # (connection, packets) completed while stalled
        self.collected = []        # the same, not yet reported because more may follow

    # faults -----------------------------------------------------------------------------------------------------------
    def link_loss(self, reason=hci.HCI_ErrorCode.CONNECTION_TIMEOUT_ERROR, tell_host=True):
        """End links as a supervision timeout does, on both sides at once."""
        for connection in list(self.le_connections.values()):
            connection.send_ll_control_pdu(ll.TerminateInd(reason))
            if tell_host:
                self.on_le_disconnected(connection, reason)
            else:
                self.le_connections.pop(connection.peer_address, None)

    def vanish(self):
        """End links on this side only: the peer's controller goes on believing in them."""
        for connection in list(self.le_connections.values()):
            self.on_le_disconnected(connection, hci.HCI_ErrorCode.CONNECTION_TIMEOUT_ERROR)

    def stall(self, on):
        self.stalled = on
        if not on:
            withheld, self.withheld = self.withheld, []
            self._report_completed(withheld)

    def mute(self, on):
        self.muted = on

    def hardware_error(self):
        self.host.on_packet(bytes((hci.HCI_EVENT_PACKET, 0x10, 1, 0x42)))

    def power_cycle(self):
        """Everything the controller holds is gone, as after a reset; peers see their links time out."""
        self.link_loss(tell_host=False)
        self.le_scan_enable = False
        self.pending_le_connection = None
        if self.le_legacy_advertiser.enabled:
            self.le_legacy_advertiser.stop()
        for advertising_set in self.advertising_sets.values():
            advertising_set.stop()
        self.advertising_sets.clear()
        self.withheld.clear()
        self.collected.clear()

    # commands ---------------------------------------------------------------------------------------------------------
    def on_hci_reset_command(self, command):
        self.power_cycle()
        return super().on_hci_reset_command(command)

    def on_hci_le_create_connection_cancel_command(self, command):
        if self.pending_le_connection is None:
            return hci.HCI_StatusReturnParameters(hci.HCI_ErrorCode.COMMAND_DISALLOWED_ERROR)
        self.pending_le_connection = None
        cancelled = hci.HCI_LE_Connection_Complete_Event(
            status=hci.HCI_ErrorCode.UNKNOWN_CONNECTION_IDENTIFIER_ERROR, connection_handle=0, role=0,
            peer_address_type=0, peer_address=hci.Address.ANY, connection_interval=0, peripheral_latency=0,
            supervision_timeout=0, central_clock_accuracy=0)
        asyncio.get_running_loop().call_soon(self.send_hci_packet, cancelled)
        return hci.HCI_StatusReturnParameters(hci.HCI_ErrorCode.SUCCESS)

    def on_hci_le_set_data_length_command(self, command):
        change = hci.HCI_LE_Data_Length_Change_Event(
            connection_handle=command.connection_handle, max_tx_octets=min(command.tx_octets, 251),
            max_tx_time=command.tx_time, max_rx_octets=251, max_rx_time=2120)
        asyncio.get_running_loop().call_soon(self.send_hci_packet, change)
        return hci.HCI_StatusAndConnectionHandleReturnParameters(status=0, connection_handle=command.connection_handle)

    def on_hci_le_set_phy_command(self, command):
        self._send_hci_command_status(0, command.op_code)
        phy = 2 if command.tx_phys & 2 else 1
        self.send_hci_packet(hci.HCI_LE_PHY_Update_Complete_Event(
            status=0, connection_handle=command.connection_handle, tx_phy=phy, rx_phy=phy))

    def on_hci_read_rssi_command(self, command):
        return hci.HCI_Read_RSSI_ReturnParameters(status=0, handle=command.handle, rssi=-50)

    def on_hci_read_remote_version_information_command(self, command):
        self._send_hci_command_status(0, command.op_code)
        self.send_hci_packet(hci.HCI_Read_Remote_Version_Information_Complete_Event(
            status=0, connection_handle=command.connection_handle, version=0x0B, manufacturer_name=0x0059,
            subversion=1))

    # towards the host -------------------------------------------------------------------------------------------------
    def send_hci_packet(self, packet):
        if self.muted:
            return
        if isinstance(packet, hci.HCI_Number_Of_Completed_Packets_Event):
            for handle, count in zip(packet.connection_handles, packet.num_completed_packets):
                self._completed(self.find_connection_by_handle(handle), count)
        elif isinstance(packet, (hci.HCI_LE_Advertising_Report_Event, hci.HCI_LE_Extended_Advertising_Report_Event)):
            self._answer_scan_request(packet)
            super().send_hci_packet(packet)
        elif isinstance(packet, hci.HCI_LE_Connection_Complete_Event) and self.enhanced_complete:
            super().send_hci_packet(_enhanced(packet))
        elif isinstance(packet, hci.HCI_AclDataPacket) and 0 < self.fragment_to_host < len(packet.data):
            for start in range(0, len(packet.data), self.fragment_to_host):
                piece = packet.data[start:start + self.fragment_to_host]
                boundary = 2 if start == 0 else 1
                super().send_hci_packet(hci.HCI_AclDataPacket(packet.connection_handle, boundary, 0, len(piece), piece))
        else:
            super().send_hci_packet(packet)

    def _answer_scan_request(self, packet):
        """Bumble reports the advertising data as the scan response, too."""
        legacy = hci.HCI_LE_Advertising_Report_Event.EventType.SCAN_RSP
        extended = hci.HCI_LE_Extended_Advertising_Report_Event.EventType.SCAN_RESPONSE
        for report in packet.reports:
            kind = extended if isinstance(packet, hci.HCI_LE_Extended_Advertising_Report_Event) else legacy
            if not report.event_type & extended if kind == extended else report.event_type != legacy:
                continue
            sender = self.link.find_le_controller(report.address)
            if sender is not None and sender.le_legacy_advertiser.enabled:
                report.data = bytes(sender.le_legacy_advertiser.scan_response_data)
            elif sender is not None:
                report.data = next((bytes(each.scan_response_data) for each in sender.advertising_sets.values()), b"")

    def _completed(self, connection, count):
        loop = asyncio.get_running_loop()
        if self.stalled:
            self.withheld.append((connection, count))
        elif self.completed_collect > 1:
            if not self.collected:
                loop.call_later(COLLECT_AT_MOST, self._report_collected)
            self.collected.append((connection, count))
            if len(self.collected) >= self.completed_collect:
                self._report_collected()
        elif self.completed_delay:
            loop.call_later(self.completed_delay, self._report_completed, [(connection, count)])
        else:
            self._report_completed([(connection, count)])

    def _report_collected(self):
        completed, self.collected = self.collected, []
        if self.stalled:
            self.withheld += completed
        else:
            self._report_completed(completed)

    def _report_completed(self, completed):
        """One event, with a count for each handle; a link that ended took its packets with it."""
        counts = {}
        for connection, count in completed:
            if self.find_connection_by_handle(connection.handle) is connection:
                counts[connection.handle] = counts.get(connection.handle, 0) + count
        if counts:
            super().send_hci_packet(hci.HCI_Number_Of_Completed_Packets_Event(
                connection_handles=list(counts), num_completed_packets=list(counts.values())))


def _enhanced(packet):
    return hci.HCI_LE_Enhanced_Connection_Complete_Event(
        status=packet.status, connection_handle=packet.connection_handle, role=packet.role,
        peer_address_type=packet.peer_address_type, peer_address=packet.peer_address,
        local_resolvable_private_address=hci.Address.ANY, peer_resolvable_private_address=hci.Address.ANY,
        connection_interval=packet.connection_interval, peripheral_latency=packet.peripheral_latency,
        supervision_timeout=packet.supervision_timeout, central_clock_accuracy=packet.central_clock_accuracy)
