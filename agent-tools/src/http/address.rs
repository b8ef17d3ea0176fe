//! Classification of IP addresses: public internet or not.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// IPv4 networks outside the public internet: network, prefix length, description.
const PRIVATE_V4: &[([u8; 4], u32, &str)] = &[
    ([0, 0, 0, 0], 8, "unspecified"),
    ([10, 0, 0, 0], 8, "private"),
    ([100, 64, 0, 0], 10, "shared with a carrier"),
    ([127, 0, 0, 0], 8, "loopback"),
    ([169, 254, 0, 0], 16, "link-local"),
    ([172, 16, 0, 0], 12, "private"),
    ([192, 0, 0, 0], 24, "reserved"),
    ([192, 0, 2, 0], 24, "documentation"),
    ([192, 88, 99, 0], 24, "a relay"),
    ([192, 168, 0, 0], 16, "private"),
    ([198, 18, 0, 0], 15, "for benchmarks"),
    ([198, 51, 100, 0], 24, "documentation"),
    ([203, 0, 113, 0], 24, "documentation"),
    ([224, 0, 0, 0], 4, "multicast"),
    ([240, 0, 0, 0], 4, "reserved"),
    // Azure's metadata server has a public address that leads to the machine's own host.
    ([168, 63, 129, 16], 32, "metadata"),
];

/// IPv6 networks within 2000::/3 outside the public internet. Everything outside 2000::/3 is not
/// public either: loopback, link-local, unique local, multicast, IPv4-mapped, NAT64 and unassigned
/// networks.
const PRIVATE_V6: &[(u128, u32, &str)] = &[
    (0x2001_0000 << 96, 23, "reserved"),
    (0x2001_0db8 << 96, 32, "documentation"),
    (0x2002_0000 << 96, 16, "6to4"),
    (0x3fff_0000 << 96, 20, "documentation"),
];

/// Returns the reason why an address is not public; `None` if it is.
pub(super) fn why_private(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(v4) => {
            PRIVATE_V4.iter().find(|(net, len, _)| within_v4(v4, Ipv4Addr::from(*net), *len)).map(|(.., why)| *why)
        }
        IpAddr::V6(v6) => why_private_v6(v6),
    }
}

fn why_private_v6(v6: Ipv6Addr) -> Option<&'static str> {
    if v6.is_unspecified() || v6.is_loopback() {
        return Some("loopback");
    }
    if v6.to_bits() >> 125 != 0b001 {
        return Some("not of the public internet");
    }
    // An ISATAP address ends with the IPv4 address of the tunnel's end.
    if matches!(v6.segments()[4..6], [0 | 0x200, 0x5efe]) {
        return Some("a tunnel");
    }
    PRIVATE_V6.iter().find(|(net, len, _)| within_v6(v6, Ipv6Addr::from_bits(*net), *len)).map(|(.., why)| *why)
}

/// Returns true if `address` is in the network.
pub(super) fn within(address: IpAddr, network: IpAddr, length: u32) -> bool {
    match (address, network) {
        (IpAddr::V4(address), IpAddr::V4(network)) => within_v4(address, network, length),
        (IpAddr::V6(address), IpAddr::V6(network)) => within_v6(address, network, length),
        _ => false,
    }
}

fn within_v4(address: Ipv4Addr, network: Ipv4Addr, length: u32) -> bool {
    let differ = address.to_bits() ^ network.to_bits();
    differ.leading_zeros() >= length
}

fn within_v6(address: Ipv6Addr, network: Ipv6Addr, length: u32) -> bool {
    let differ = address.to_bits() ^ network.to_bits();
    differ.leading_zeros() >= length
}
