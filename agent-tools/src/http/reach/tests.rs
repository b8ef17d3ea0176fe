//! Tests of the address policy.

use proptest::prelude::*;

use super::*;

fn public() -> AddressPolicy {
    AddressPolicy::public(Arc::new(System))
}

#[test]
fn every_family_that_is_not_of_the_public_internet_is_refused() {
    let refused = [
        "0.0.0.0",
        "0.1.2.3",
        "10.0.0.1",
        "10.255.255.255",
        "100.64.0.1",
        "100.100.100.200",
        "100.127.255.255",
        "127.0.0.1",
        "127.255.255.254",
        "169.254.0.1",
        "169.254.169.254",
        "172.16.0.1",
        "172.31.255.255",
        "192.0.0.192",
        "192.0.2.1",
        "192.88.99.1",
        "192.168.0.1",
        "198.18.0.1",
        "198.19.255.255",
        "198.51.100.1",
        "203.0.113.1",
        "224.0.0.1",
        "239.255.255.255",
        "240.0.0.1",
        "255.255.255.255",
        "168.63.129.16",
        "::",
        "::1",
        "::7f00:1",
        "::ffff:127.0.0.1",
        "::ffff:93.184.215.14",
        "64:ff9b::7f00:1",
        "64:ff9b::808:808",
        "64:ff9b:1::1",
        "100::1",
        "2001::1",
        "2001:10::1",
        "2001:20::1",
        "2001:db8::1",
        "2002:7f00:1::",
        "2002:808:808::1",
        "3fff::1",
        "5f00::1",
        "fc00::1",
        "fd00:ec2::254",
        "fe80::1",
        "fec0::1",
        "ff02::1",
        "2606:4700::5efe:7f00:1",
        "2606:4700::200:5efe:a00:1",
        "4000::1",
    ];
    for address in refused {
        assert!(public().refusal(address.parse().expect("an address"), 443).is_some(), "{address}");
    }
    for address in [
        "1.1.1.1",
        "93.184.215.14",
        "100.63.255.255",
        "100.128.0.1",
        "172.15.0.1",
        "172.32.0.1",
        "2606:4700::1111",
        "2a00::1",
    ] {
        assert_eq!(public().refusal(address.parse().expect("an address"), 443), None, "{address}");
    }
}

#[test]
fn an_exception_is_for_what_it_says_and_no_more() {
    let cases = [
        ("10.1.2.3:8080", "10.1.2.3", 8080, true),
        ("10.1.2.3:8080", "10.1.2.3", 80, false),
        ("10.1.2.3:8080", "10.1.2.4", 8080, false),
        ("10.1.2.3", "10.1.2.3", 80, true),
        ("10.1.0.0/16", "10.1.255.1", 1, true),
        ("10.1.0.0/16", "10.2.0.1", 1, false),
        ("[fd00::1]:80", "fd00::1", 80, true),
        ("fd00::/8", "fe80::1", 80, false),
        ("0.0.0.0/0", "127.0.0.1", 80, true),
    ];
    for (exception, address, port, allowed) in cases {
        let mut reach = public();
        reach.allow(exception).expect("an address");
        let refused = reach.refusal(address.parse().expect("an address"), port);
        assert_eq!(refused.is_none(), allowed, "{exception} {address}:{port}");
    }
    for wrong in ["", "localhost", "10.0.0.0/33", "10.0.0.1:99999", "fd00::/129", "10.0.0.0/x"] {
        let e = public().allow(wrong).expect_err(wrong);
        assert_eq!(e.kind(), agent_core::ErrorKind::Config);
    }
}

struct Gives(Vec<IpAddr>);

#[async_trait]
impl Resolver for Gives {
    async fn resolve(&self, _: &str) -> io::Result<Vec<IpAddr>> {
        Ok(self.0.clone())
    }
}

/// Uses the standard library's classification, independent of the tables above.
fn is_certainly_private(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => {
            let (a, b) = (v4.octets()[0], v4.octets()[1]);
            v4.is_private()
                || v4.is_loopback()
                || v4.is_link_local()
                || v4.is_multicast()
                || v4.is_broadcast()
                || v4.is_documentation()
                || a == 0
                || a >= 240
                || (a == 100 && (64..128).contains(&b))
        }
        IpAddr::V6(v6) => {
            v6.is_loopback()
                || v6.is_unspecified()
                || v6.is_multicast()
                || v6.is_unique_local()
                || v6.is_unicast_link_local()
                || v6.to_ipv4_mapped().is_some()
                || v6.segments()[0] == 0x2002
        }
    }
}

fn near_the_edges() -> impl Strategy<Value = IpAddr> {
    let v4 = (prop::sample::select(vec![0_u8, 10, 100, 127, 169, 172, 192, 198, 203, 224, 255, 8]), any::<[u8; 3]>());
    let v6 =
        (prop::sample::select(vec![0_u16, 0x64, 0x2001, 0x2002, 0x2606, 0xfc00, 0xfe80, 0xff02]), any::<[u16; 7]>());
    prop_oneof![
        any::<u32>().prop_map(|bits| IpAddr::from(bits.to_be_bytes())),
        any::<[u8; 16]>().prop_map(IpAddr::from),
        v4.prop_map(|(a, [b, c, d])| IpAddr::from([a, b, c, d])),
        v6.prop_map(|(a, [b, c, d, e, f, g, h])| IpAddr::from([a, b, c, d, e, f, g, h])),
    ]
}

proptest! {
    #[test]
    fn no_private_address_is_ever_one_to_connect_to(answer in prop::collection::vec(near_the_edges(), 0..4)) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let reach = AddressPolicy::public(Arc::new(Gives(answer.clone())));
        let url = Url::parse("https://name.example/").expect("a URL");
        let usable = runtime.block_on(reach.addresses(&url)).unwrap_or_default();
        for address in &usable {
            prop_assert!(!is_certainly_private(address.ip()), "{address}");
            prop_assert!(answer.contains(&address.ip()));
        }
        for address in answer {
            let host = match address { IpAddr::V4(v4) => v4.to_string(), IpAddr::V6(v6) => format!("[{v6}]") };
            let literal = Url::parse(&format!("http://{host}/")).expect("a URL");
            let usable = runtime.block_on(reach.addresses(&literal)).is_ok();
            prop_assert!(!(usable && is_certainly_private(address)), "{address}");
        }
    }
}

#[tokio::test]
async fn a_literal_address_is_refused_however_it_is_written() {
    let spellings = [
        "http://127.0.0.1/",
        "http://127.1/",
        "http://2130706433/",
        "http://0x7f000001/",
        "http://0177.0.0.1/",
        "http://0x7f.1/",
        "http://127.0.0.1./",
        "http://１２７.0.0.1/",
        "http://%31%32%37.0.0.1/",
        "http:\\\\127.0.0.1\\",
        "http://[::1]/",
        "http://[::ffff:127.0.0.1]/",
        "http://[::ffff:7f00:1]/",
        "http://[0:0:0:0:0:0:0:1]/",
        "http://[64:ff9b::127.0.0.1]/",
        "http://0/",
        "http://[::]/",
        "http://127。0。0。1/",
    ];
    for spelling in spellings {
        let url = Url::parse(spelling).expect(spelling);
        assert!(public().addresses(&url).await.is_err(), "{spelling} is {url}");
    }
}
