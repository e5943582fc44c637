// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// Certificates for tests, made with the program `openssl` 3.0.22 (`openssl ca` with fixed dates, keys on P-256). The keys
/// protect nothing.
public enum Certificates {
    /// Signs `intermediate`. 2020 to 2120, as all others that do not say otherwise.
    public static let authority = """
        -----BEGIN CERTIFICATE-----
        MIIBWjCCAQGgAwIBAgIBATAKBggqhkjOPQQDAjAUMRIwEAYDVQQDDAlhdXRob3Jp
        dHkwIBcNMjAwMTAxMDAwMDAwWhgPMjEyMDAxMDEwMDAwMDBaMBQxEjAQBgNVBAMM
        CWF1dGhvcml0eTBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABCqtI0KGTLSlViWy
        j7f+7aqPN+qlOGGmsPly8/2XaX527MCXq4kqckv+koGZaGDQg0R6dfPf9DdYQTmF
        vSNO8AujQjBAMA8GA1UdEwEB/wQFMAMBAf8wDgYDVR0PAQH/BAQDAgEGMB0GA1Ud
        DgQWBBSsetPE3eEquEVbyLDQL3OwUYeUeTAKBggqhkjOPQQDAgNHADBEAiB1zDO7
        i8PPlWVbK8/deklV97U6OJJCbJ8MKV9kipzkjgIgZVHbOXh3TalkjooKoQ2L100O
        2nhklOZ7iTSdTFHbiu4=
        -----END CERTIFICATE-----

        """

    /// Signs `server` and `expired`.
    public static let intermediate = """
        -----BEGIN CERTIFICATE-----
        MIIBgDCCASWgAwIBAgIBAjAKBggqhkjOPQQDAjAUMRIwEAYDVQQDDAlhdXRob3Jp
        dHkwIBcNMjAwMTAxMDAwMDAwWhgPMjEyMDAxMDEwMDAwMDBaMBcxFTATBgNVBAMM
        DGludGVybWVkaWF0ZTBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABIsSNeP2j55L
        C/CbyBH3qPP1XO5B/vZtka9cQLuo2LAof2ZIOtoCUAS3GnBP49BIM/bPWV+g1bng
        BrDlkyqXP4KjYzBhMA8GA1UdEwEB/wQFMAMBAf8wDgYDVR0PAQH/BAQDAgEGMB0G
        A1UdDgQWBBTxMC4sxN9ihAckQ+mh3noOrUAryzAfBgNVHSMEGDAWgBSsetPE3eEq
        uEVbyLDQL3OwUYeUeTAKBggqhkjOPQQDAgNJADBGAiEAkkjSxd0mSJJhuF9/B6Gs
        Ud6FYbJ0HZfnsvW14SUveTsCIQD/jB02k3M4GaPUjEj/uONk2pOmhWGtIcWNLGR3
        RRjFMw==
        -----END CERTIFICATE-----

        """

    /// For radio.example, 127.0.0.1 and ::1.
    public static let server = """
        -----BEGIN CERTIFICATE-----
        MIIBmDCCAT6gAwIBAgIBAzAKBggqhkjOPQQDAjAXMRUwEwYDVQQDDAxpbnRlcm1l
        ZGlhdGUwIBcNMjAwMTAxMDAwMDAwWhgPMjEyMDAxMDEwMDAwMDBaMBExDzANBgNV
        BAMMBnNlcnZlcjBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABOufT3GUyuopPFOT
        /lRGr3rAqhHcRgmrG1nwxjmowZ1r+o0gB0eJK7lOo+oBDn0tScYSQFkErXB5tTsl
        6sLdXXCjfzB9MAkGA1UdEwQCMAAwMAYDVR0RBCkwJ4INcmFkaW8uZXhhbXBsZYcE
        fwAAAYcQAAAAAAAAAAAAAAAAAAAAATAdBgNVHQ4EFgQUABaX7Fvovm/MoQkdMRQ5
        sO5hjhAwHwYDVR0jBBgwFoAU8TAuLMTfYoQHJEPpod56Dq1AK8swCgYIKoZIzj0E
        AwIDSAAwRQIhAJ8ILiscSCo9nN9tjmjMCmVgs9LOZlBTW12GzdB8Huv3AiAKW997
        4HzYFrDhr5g4b/Cx01PH68088px5cNgngt2C4A==
        -----END CERTIFICATE-----

        """

    /// Of `server`.
    public static let serverKey = """
        -----BEGIN PRIVATE KEY-----
        MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgCCfmnJ91mdOsLxIp
        IbeFmsdm4l8A599itdg2bT2QRRmhRANCAATrn09xlMrqKTxTk/5URq96wKoR3EYJ
        qxtZ8MY5qMGda/qNIAdHiSu5TqPqAQ59LUnGEkBZBK1webU7JerC3V1w
        -----END PRIVATE KEY-----

        """

    /// `serverKey` with a passphrase.
    public static let lockedKey = """
        -----BEGIN ENCRYPTED PRIVATE KEY-----
        MIHsMFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAh4q4LXtbfxZAICCAAw
        DAYIKoZIhvcNAgkFADAdBglghkgBZQMEASoEEDEYeMseYEzpTChbmYABI+gEgZDG
        cU5+siQdh0wTSE6gmZRezUL1YLNIzoMyL4s/QASdhgD8iZcQWJXySKGJFAT19JZH
        dYJ3/rbybsHFHnvshIHAYlg2/y/lqQnNKB/y48Bis2KSGxk6LTTyBDxIAFWx13CX
        qKUCrg3tiF14W3aJmDyFiNWJyg4tQmRrIze8iktW31eSxYeKCw2Vmmnalf0g9pg=
        -----END ENCRYPTED PRIVATE KEY-----

        """

    /// Like `server`, until 2021.
    public static let expired = """
        -----BEGIN CERTIFICATE-----
        MIIBlzCCAT2gAwIBAgIBBTAKBggqhkjOPQQDAjAXMRUwEwYDVQQDDAxpbnRlcm1l
        ZGlhdGUwHhcNMjAwMTAxMDAwMDAwWhcNMjEwMTAxMDAwMDAwWjASMRAwDgYDVQQD
        DAdleHBpcmVkMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEuOlMdy7l59VGRVgM
        WeYncAMna5DwqVtuU3Z+Z95txc44Lc5AFLX37SzuDa56WTfj1EILyF5auSMBa07A
        SHdspqN/MH0wCQYDVR0TBAIwADAwBgNVHREEKTAngg1yYWRpby5leGFtcGxlhwR/
        AAABhxAAAAAAAAAAAAAAAAAAAAABMB0GA1UdDgQWBBRG4oXgL1utuXBjP3nr5HuC
        GjGwNzAfBgNVHSMEGDAWgBTxMC4sxN9ihAckQ+mh3noOrUAryzAKBggqhkjOPQQD
        AgNIADBFAiAwW8Z9isQRYPybPUMxhb76PCTid2U9SRr0PYyTim3GsgIhAN0DJYhk
        4QpIuXazExv/eHg1SW/8e+m6uQM3POxAYW90
        -----END CERTIFICATE-----

        """

    /// Of `expired`.
    public static let expiredKey = """
        -----BEGIN PRIVATE KEY-----
        MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgXfu5HIGYEoyBE6Hm
        Q+LLqOD+mPVYcp05r8Rrf47bDiahRANCAAS46Ux3LuXn1UZFWAxZ5idwAydrkPCp
        W25Tdn5n3m3FzjgtzkAUtfftLO4NrnpZN+PUQgvIXlq5IwFrTsBId2ym
        -----END PRIVATE KEY-----

        """

    /// Has signed nothing but itself.
    public static let otherAuthority = """
        -----BEGIN CERTIFICATE-----
        MIIBUjCB+aADAgECAgEEMAoGCCqGSM49BAMCMBAxDjAMBgNVBAMMBW90aGVyMCAX
        DTIwMDEwMTAwMDAwMFoYDzIxMjAwMTAxMDAwMDAwWjAQMQ4wDAYDVQQDDAVvdGhl
        cjBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABNdgUZQyTteb6JK3HYR3tx0+8L7b
        9YdZAbq89TK5CUmef3LI9n51TLsl1g0gqlR6xWrT829NuvqBlAPv0asq+yGjQjBA
        MA8GA1UdEwEB/wQFMAMBAf8wDgYDVR0PAQH/BAQDAgEGMB0GA1UdDgQWBBTaI8eD
        uuqtJxSzS42zYu9RjPUw3TAKBggqhkjOPQQDAgNIADBFAiEAuktjXfjDpPsO9Fzx
        yio/FFJ0A3dGCmn8Q+aV5o4izzYCIGkOW8IlMgiw1StIrEN4Yn5OOllZhkYmLPgT
        /GmyEjbl
        -----END CERTIFICATE-----

        """

    /// SHA-256 of `server`: `openssl x509 -outform DER | sha256sum`.
    public static let serverDigest: [UInt8] = [
        0xBB, 0x36, 0xA3, 0x1F, 0xD6, 0xC1, 0x97, 0xAC, 0xE8, 0xE3, 0x00, 0xA9, 0x4B, 0xF8, 0x56, 0x26,
        0x96, 0x93, 0xC4, 0x3F, 0x21, 0x6E, 0x2B, 0x6B, 0x6A, 0xF2, 0xB2, 0xA8, 0xD6, 0x42, 0xE5, 0xB7,
    ]
}
