#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# meshhost: a host for mesh radios and other byte-link devices
"""Sample data of Bluetooth's pairing cryptography, each value computed here and compared with the specification's.

    smp_vectors.py              check, and compare with smp_vectors.json
    smp_vectors.py --write      write smp_vectors.json

Sources: Core Specification Vol 3 Part H (2.2, 2.3.5, Appendix D), Part G Appendix B, Vol 2 Part G 7.1.2; RFC 4493.
Values are in the specification's notation, most significant byte first; on the wire all of them are little-endian.
"""
import json
import os
import sys

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.cmac import CMAC

FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "smp_vectors.json")
vectors = []


def h(text):
    return bytes.fromhex(text.replace(" ", ""))


def e(key, data):
    encryptor = Cipher(algorithms.AES(key), modes.ECB()).encryptor()
    return encryptor.update(data) + encryptor.finalize()


def cmac(key, message):
    mac = CMAC(algorithms.AES(key))
    mac.update(message)
    return mac.finalize()


def xor(a, b):
    return bytes(x ^ y for x, y in zip(a, b))


def c1(k, r, pres, preq, iat, rat, ia, ra):
    return e(k, xor(e(k, xor(r, pres + preq + bytes([rat, iat]))), bytes(4) + ia + ra))


def s1(k, r1, r2):
    return e(k, r1[8:] + r2[8:])


def ah(k, r):
    return e(k, bytes(13) + r)[13:]


def f5(w, n1, n2, a1, a2):
    t = cmac(h("6C888391AAF5A53860370BDB5A6083BE"), w)
    mac_key, ltk = (cmac(t, bytes([n]) + b"btle" + n1 + n2 + a1 + a2 + h("0100")) for n in (0, 1))
    return t, mac_key, ltk


def f6(w, n1, n2, r, iocap, a1, a2):
    return cmac(w, n1 + n2 + r + iocap + a1 + a2)


def vector(function, where, out, expected=None, **inputs):
    if expected is not None and out != h(expected):
        sys.exit(f"{function}: {out.hex()} is not {expected}")
    shown = {name: value.hex() if isinstance(value, bytes) else value for name, value in inputs.items()}
    vectors.append({"f": function, "ref": where, **shown, "out": out.hex()})


def symmetric():
    key = h("2b7e151628aed2a6abf7158809cf4f3c")
    message = h("6bc1bee22e409f96e93d7e117393172a ae2d8a571e03ac9c9eb76fac45af8e51"
                "30c81c46a35ce411e5fbc1191a0a52ef f69f2445df4f9b17ad2b417be66c3710")
    for length, out in ((0, "bb1d6929e95937287fa37d129b756746"), (16, "070a16b46b4d4144f79bdd9dd04a287c"),
                        (40, "dfa66747de9ae63030ca32611497c827"), (64, "51f0bebf7e3b9d92fc49741779363cfe")):
        part = message[:length]
        vector("AES-CMAC", "RFC 4493 s.4; Core Vol3 PartH D.1", cmac(key, part), out, k=key, m=part)
    v = dict(k=bytes(16), r=h("5783D52156AD6F0E6388274EC6702EE0"), preq=h("07071000000101"), pres=h("05000800000302"),
             iat=1, rat=0, ia=h("A1A2A3A4A5A6"), ra=h("B1B2B3B4B5B6"))
    vector("c1", "Core Vol3 PartH 2.2.3", c1(**v), "1e1e3fef878988ead2a74dc5bef13b86", **v)
    v = dict(k=bytes(16), r1=h("000F0E0D0C0B0A091122334455667788"), r2=h("010203040506070899AABBCCDDEEFF00"))
    vector("s1", "Core Vol3 PartH 2.2.4", s1(**v), "9a1fe1f0e8b0f49b5b4216ae796da062", **v)


def secure_connections():
    u = h("20b003d2f297be2c5e2c83a7e9f9a5b9 eff49111acf4fddbcc0301480e359de6")
    v = h("55188b3d32f6bb9a900afcfbeed4e72a 59cb9ac2f19d7cfb6b4fdd49f47fc5fd")
    n1, n2 = h("d5cb8454d177733effffb2ec712baeab"), h("a6e8e7cc25a75f6e216583f7ff3dc4cf")
    w = h("ec0234a357c8ad05341010a60a397d9b 99796b13b4f866f1868d34f373bfa698")
    a1, a2 = h("0056123737bfce"), h("00a713702dcfc1")
    vector("f4", "Core Vol3 PartH D.2", cmac(n1, u + v + b"\0"), "f2c916f107a9bd1cf1eda1bea974872d",
           u=u, v=v, x=n1, z=0)
    t, mac_key, ltk = f5(w, n1, n2, a1, a2)
    if t != h("3c128f20de88328897624bdb8dac6989"):
        sys.exit("f5: T")
    inputs = dict(w=w, n1=n1, n2=n2, a1=a1, a2=a2, t=t)
    vector("f5.MacKey", "Core Vol3 PartH D.3", mac_key, "2965f176a1084a02fd3f6a20ce636e20", **inputs)
    vector("f5.LTK", "Core Vol3 PartH D.3", ltk, "6986791169d7cd23980522b594750a38", **inputs)
    inputs = dict(w=mac_key, n1=n1, n2=n2, r=h("12a3343bb453bb5408da42d20c2d0fc8"), iocap=h("010102"), a1=a1, a2=a2)
    vector("f6", "Core Vol3 PartH D.4", f6(**inputs), "e3c473989cd0e8c5d26c0b09da958f61", **inputs)
    vector("g2", "Core Vol3 PartH D.5 (six digits = 0x2f9ed5ba mod 10^6 = 938554)", cmac(n1, u + v + n2)[12:],
           "2f9ed5ba", u=u, v=v, x=n1, y=n2)
    key = w[:16]
    vector("h6", "Core Vol3 PartH D.6", cmac(key, b"lebr"), "2d9ae102e76dc91ce8d3a9e280b16399", w=key, keyid=b"lebr")
    vector("ah", "Core Vol3 PartH D.7 (RPA 70:81:94:0D:FB:AA)", ah(key, h("708194")), "0dfbaa",
           irk=key, prand=h("708194"))
    salt = bytes(12) + b"tmp1"
    vector("h7", "Core Vol3 PartH D.8", cmac(salt, key), "fb173597c6a3c0ecd2998c2a75a57011", salt=salt, w=key)


def key_agreement():
    private = {"A": "3f49f6d4a3c55f3874c9b3e3d2103f504aff607beb40b7995899b8a6cd3c1abd",
               "B": "55188b3d32f6bb9a900afcfbeed4e72a59cb9ac2f19d7cfb6b4fdd49f47fc5fd"}
    public = {"A": ("20b003d2f297be2c5e2c83a7e9f9a5b9eff49111acf4fddbcc0301480e359de6",
                    "dc809c49652aeb6d63329abf5a52155c766345c28fed3024741c8ed01589d28b"),
              "B": ("1ea1f0f01faf1d9609592284f19e4c0047b58afd8615a69f559077b22faaa190",
                    "4c55f33e429dad377356703a9ab85160472d1130e28e36765f89aff915b1214a")}
    shared = "ec0234a357c8ad05341010a60a397d9b99796b13b4f866f1868d34f373bfa698"
    for own, other in (("A", "B"), ("B", "A")):
        key = ec.derive_private_key(int(private[own], 16), ec.SECP256R1())
        if key.public_key().public_numbers().x != int(public[own][0], 16):
            sys.exit(f"P-256: public key {own}")
        x, y = public[other]
        peer = ec.EllipticCurvePublicNumbers(int(x, 16), int(y, 16), ec.SECP256R1()).public_key()
        vector("P256.dh", "Core Vol2 PartG 7.1.2.1 set1", key.exchange(ec.ECDH(), peer), shared,
               priv=h(private[own]), peer_x=h(x), peer_y=h(y))
    x, y = public["A"]
    vectors.append({"f": "P256.debug_key", "ref": "Core Vol3 PartH 2.3.5.6.1 (same pair as set1.A)",
                    "priv": private["A"], "x": x, "y": y})


def derived():
    passkey = 123456
    vector("legacy TK", "Core Vol3 PartH 2.3.5.3", passkey.to_bytes(16, "big"), passkey=passkey)
    vector("LESC passkey bits z_i = 0x80|bit_i (i=0 first, LSB first)", "Core Vol3 PartH 2.3.5.6.3",
           bytes(0x80 | (passkey >> i & 1) for i in range(20)), passkey=passkey)
    database = h("0100002800180200032 80A0300002A04000 32802050001 2A0600002801180700 0328200800052A09 0002290A0003280A"
                 "0B00292B0C000328 020D002A2B0E0000 2808180F00022814 0016000F18100003 28A21100182A1200 0229130000290000"
                 "140001280F181500 03280216 00192A")
    vector("GATT DB hash", "Core Vol3 PartG App.B", cmac(bytes(16), database), "F1CA2D48ECF58BAC8A8830BBB9FBA990",
           m=database)


symmetric()
secure_connections()
key_agreement()
derived()
text = json.dumps(vectors, indent=1) + "\n"
if "--write" in sys.argv:
    with open(FILE, "w", encoding="ascii") as out:
        out.write(text)
    sys.exit()
with open(FILE, encoding="ascii") as file:
    same = file.read() == text
print(f"{'PASS' if same else 'FAIL'} {len(vectors)} values as smp_vectors.json has them")
print(f"{int(same)} passed, {int(not same)} failed")
sys.exit(not same)
