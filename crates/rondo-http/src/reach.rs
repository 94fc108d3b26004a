//! Which IP addresses are public, so that what a model or a server names may be reached there.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The first bits of addresses, how many of them count, and what they are for.
type V4Block = ([u8; 4], u32, &'static str);

/// Blocks that are not public. Source: the IANA registry of special-purpose addresses,
/// https://www.iana.org/assignments/iana-ipv4-special-registry, and the addresses at which clouds serve credentials.
const V4_BLOCKS: [V4Block; 17] = [
    ([0, 0, 0, 0], 8, "this machine"),
    ([10, 0, 0, 0], 8, "a private network"),
    ([100, 64, 0, 0], 10, "a provider's own network"),
    ([127, 0, 0, 0], 8, "this machine"),
    ([168, 63, 129, 16], 32, "a cloud's metadata"),
    ([169, 254, 0, 0], 16, "the local link"),
    ([172, 16, 0, 0], 12, "a private network"),
    ([192, 0, 0, 0], 24, "a special purpose"),
    ([192, 0, 2, 0], 24, "documentation"),
    ([192, 88, 99, 0], 24, "a special purpose"),
    ([192, 168, 0, 0], 16, "a private network"),
    ([198, 18, 0, 0], 15, "benchmarks"),
    ([198, 51, 100, 0], 24, "documentation"),
    ([203, 0, 113, 0], 24, "documentation"),
    ([224, 0, 0, 0], 4, "multicast"),
    ([240, 0, 0, 0], 4, "no use yet"),
    ([255, 255, 255, 255], 32, "broadcast"),
];

type V6Block = ([u16; 8], u32, &'static str);

/// Blocks inside of `2000::/3` that are not public; nothing outside of it is. Source:
/// https://www.iana.org/assignments/iana-ipv6-special-registry.
const V6_BLOCKS: [V6Block; 6] = [
    ([0x2001, 0x2, 0, 0, 0, 0, 0, 0], 48, "benchmarks"),
    ([0x2001, 0x10, 0, 0, 0, 0, 0, 0], 28, "a special purpose"),
    ([0x2001, 0x20, 0, 0, 0, 0, 0, 0], 28, "a special purpose"),
    ([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0], 32, "documentation"),
    (
        [0x2620, 0x4f, 0x8000, 0, 0, 0, 0, 0],
        48,
        "a special purpose",
    ),
    ([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20, "documentation"),
];

/// Returns the purpose of an address that is not public. IPv6 addresses that represent one of IPv4 are as public as
/// that.
#[must_use]
pub fn not_public(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(address) => of_v4(address),
        IpAddr::V6(address) => of_v6(address),
    }
}

fn of_v4(address: Ipv4Addr) -> Option<&'static str> {
    let bits = address.to_bits();
    let blocks = V4_BLOCKS.iter();
    let mut fitting = blocks.filter(|(first, length, _)| {
        let shift = u32::BITS - length;
        bits >> shift == Ipv4Addr::from(*first).to_bits() >> shift
    });
    fitting.next().map(|(_, _, purpose)| *purpose)
}

fn of_v6(address: Ipv6Addr) -> Option<&'static str> {
    if let Some(inner) = translated(address) {
        return of_v4(inner);
    }
    // An address of a tunnel is reached through each of the addresses in it.
    if let Some(reason) = tunnelled(address).into_iter().flatten().find_map(of_v4) {
        return Some(reason);
    }
    let bits = address.to_bits();
    if bits >> 125 != 0b001 {
        return Some(not_global(address));
    }
    let mut fitting = V6_BLOCKS.iter().filter(|(first, length, _)| {
        let shift = u128::BITS - length;
        bits >> shift == Ipv6Addr::from(*first).to_bits() >> shift
    });
    fitting.next().map(|(_, _, purpose)| *purpose)
}

fn not_global(address: Ipv6Addr) -> &'static str {
    let [first, ..] = address.segments();
    if address.is_loopback() || address.is_unspecified() {
        "this machine"
    } else if first & 0xfe00 == 0xfc00 {
        "a private network"
    } else if first & 0xffc0 == 0xfe80 {
        "the local link"
    } else if first & 0xff00 == 0xff00 {
        "multicast"
    } else {
        "no public use"
    }
}

/// Returns the IPv4 address that an IPv6 address is another form of.
fn translated(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let inner = match address.segments() {
        // `::ffff:a.b.c.d`, RFC 4291, 2.5.5.2.
        [0, 0, 0, 0, 0, 0xffff, high, low]
        // `::ffff:0:a.b.c.d`, RFC 2765.
        | [0, 0, 0, 0, 0xffff, 0, high, low]
        // `64:ff9b::a.b.c.d`, RFC 6052.
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => (high, low),
        // `::a.b.c.d`, RFC 4291, 2.5.5.1; `::` and `::1` are none of these.
        [0, 0, 0, 0, 0, 0, high, low] if high != 0 => (high, low),
        _ => return None,
    };
    Some(joined(inner.0, inner.1))
}

/// Returns the IPv4 addresses inside of an address of a tunnel.
fn tunnelled(address: Ipv6Addr) -> [Option<Ipv4Addr>; 2] {
    match address.segments() {
        // 6to4, RFC 3056.
        [0x2002, high, low, ..] => [Some(joined(high, low)), None],
        // Teredo, RFC 4380: the server, and the client with all its bits inverted.
        [0x2001, 0, high, low, _, _, client_high, client_low] => [
            Some(joined(high, low)),
            Some(joined(!client_high, !client_low)),
        ],
        // ISATAP, RFC 5214: the end of an address with any beginning.
        [_, _, _, _, 0 | 0x200, 0x5efe, high, low] => [Some(joined(high, low)), None],
        _ => [None, None],
    }
}

fn joined(high: u16, low: u16) -> Ipv4Addr {
    Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_public(text: &str) -> bool {
        not_public(text.parse().unwrap()).is_none()
    }

    #[test]
    fn public_addresses_are_reached() {
        for text in [
            "1.1.1.1",
            "8.8.8.8",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "126.255.255.255",
            "128.0.0.0",
            "169.253.255.255",
            "169.255.0.0",
            "172.15.255.255",
            "172.32.0.0",
            "192.167.255.255",
            "192.169.0.0",
            "198.17.255.255",
            "198.20.0.0",
            "223.255.255.255",
            "2606:4700:4700::1111",
            "2a00:1450:4001:82b::200e",
            "64:ff9b::8.8.8.8",
            "::ffff:8.8.8.8",
            "2002:808:808::1",
        ] {
            assert!(is_public(text), "{text}");
        }
    }

    #[test]
    fn all_others_are_not() {
        for text in [
            "0.0.0.0",
            "0.255.255.255",
            "10.0.0.0",
            "10.255.255.255",
            "100.64.0.0",
            "100.100.100.200",
            "100.127.255.255",
            "127.0.0.0",
            "127.255.255.255",
            "168.63.129.16",
            "169.254.169.254",
            "172.16.0.0",
            "172.31.255.255",
            "192.0.0.192",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.0.0",
            "192.168.255.255",
            "198.18.0.0",
            "198.19.255.255",
            "203.0.113.9",
            "224.0.0.1",
            "239.255.255.255",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:127.0.0.1",
            "::ffff:0:127.0.0.1",
            "::127.0.0.1",
            "::ffff:169.254.169.254",
            "64:ff9b::127.0.0.1",
            "64:ff9b::a9fe:a9fe",
            "64:ff9b:1::8.8.8.8",
            "2002:7f00:1::1",
            "2002:a9fe:a9fe::",
            "2001:0:7f00:1::f7f7:f7f7",
            "2001:0:808:808:0:0:80ff:fffe",
            "2606:4700::5efe:10.0.0.1",
            "2606:4700::200:5efe:192.168.1.1",
            "2001:db8::1",
            "2001:2::1",
            "2001:10::1",
            "2001:2f::1",
            "3fff::1",
            "100::1",
            "5f00::1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
        ] {
            assert!(!is_public(text), "{text}");
        }
    }
}
