// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import Testing

@testable import MeshDaemon

/// What `encode` says of a mistake: which frame, which field, and what to write.
struct EncodingTests {
    private static func message(_ subject: HostCommand.DecodeSubject, _ json: String) -> String? {
        do throws(UsageError) {
            _ = try Encoding.bytes(of: json, subject)
            return nil
        } catch {
            return error.message
        }
    }

    @Test(arguments: [
        (
            #"{"name":"GET_CHANEL"}"#,
            #"GET_CHANEL: name: not allowed here; there is no "GET_CHANEL"; did you mean "GET_CHANNEL"?"#
        ),
        (
            #"{"name":"reply.curentTime"}"#,
            #"reply.curentTime: name: not allowed here; there is no "reply.curentTime"; did you mean "reply.currentTime"?"#
        ),
        (
            #"{"name":"FLY"}"#,
            #"FLY: name: not allowed here; there is no "FLY"; commands are written as GET_CHANNEL, replies as reply.currentTime, pushes as push.advert, all else as UNKNOWN"#
        ),
        (#"{"name":"GET_CHANNEL"}"#, "GET_CHANNEL: channel: missing; write a whole number from 0 to 255"),
        (#"{"name":"GET_CHANNEL","chanel":3}"#, #"GET_CHANNEL: channel: missing; there is "chanel" instead"#),
        (
            #"{"name":"GET_CHANNEL","channel":3,"chanel":3}"#,
            #"GET_CHANNEL: chanel: no such field; did you mean "channel"?"#
        ),
        (#"{"name":"GET_CHANNEL","channel":3,"x":3}"#, "GET_CHANNEL: x: no such field; there are: channel"),
        (#"{"name":"GET_CHANNEL","channel":300}"#, "GET_CHANNEL: channel: not between 0 and 255"),
        (
            #"{"name":"GET_CHANNEL","channel":"3"}"#,
            "GET_CHANNEL: channel: not an integer; write a whole number from 0 to 255"
        ),
        (
            #"{"name":"GET_CHANNEL","channel":3,"code":5}"#,
            "GET_CHANNEL: code: not allowed here; GET_CHANNEL has the code 31; leave it out"
        ),
        (
            #"{"name":"GET_CHANNEL","channel":3,"direction":"up"}"#,
            "GET_CHANNEL: direction: not allowed here; write from-client or from-radio"
        ),
        (
            #"{"name":"LOGOUT","public_key":"0123"}"#,
            "LOGOUT: public_key: not 32 bytes; write 64 hexadecimal digits in quotes"
        ),
        (
            #"{"name":"SET_ADVERT_LATLON","latitude_deg":9000,"longitude_deg":0}"#,
            "SET_ADVERT_LATLON: latitude_deg: not between -2147.483648 and 2147.483647"
        ),
        (
            "{name: GET_CHANNEL}",
            #"not a JSON document; write it between single quotes: meshhost encode companion '{"name": "GET_CHANNEL", "channel": 3}'"#
        ),
    ])
    func `of a frame`(_ json: String, _ text: String) {
        #expect(Self.message(.companion, json) == "encode companion: \(text)")
    }

    @Test(arguments: [
        ("{}", "readings: not an array"),
        (
            #"[{"channel":1,"type":"temprature","value":3}]"#,
            #"readings[0].type: not allowed here; there is no "temprature"; did you mean "temperature"?"#
        ),
        (
            #"[{"channel":1,"type":"temperature","value":3},{"channel":0,"type":"temperature","value":3}]"#,
            "readings[1].channel: not allowed here; 0 ends the readings; write a whole number from 1 to 255"
        ),
        (#"[{"channel":1,"type":"temperature","value":99999}]"#, "readings[0].value: not between -3276.8 and 3276.7"),
        (#"[{"channel":1,"type":"temperature"}]"#, "readings[0].value: missing; write a number from -3276.8 to 3276.7"),
        (
            #"[{"channel":1,"type":"gps","value":9}]"#,
            "readings[0].value: not an object; write an object with latitude (-838.8608 to 838.8607), longitude (-838.8608 to 838.8607), altitude (-83886.08 to 83886.07)"
        ),
        (
            #"[{"channel":1,"typ":"gps","value":9}]"#,
            "readings[0].typ: no such field; there are: channel, type, value, unit"
        ),
    ])
    func `of readings`(_ json: String, _ text: String) {
        #expect(Self.message(.lpp, json) == "encode lpp: \(text)")
    }

    @Test func `of a packet`() {
        #expect(Self.message(.packet, "{}") == "encode packet: header: missing; write a whole number from 0 to 255")
        #expect(
            Self.message(.packet, "[]")
                == "encode packet: packet: not an object; write what `decode packet` shows of one")
    }
}
