//! Refused addresses and contents.

use std::{net::Ipv4Addr, time::Duration};

use agent_core::ErrorKind;
use agent_tools::web::Web;
use tokio::{io::AsyncReadExt, net::TcpListener};

use super::{
    server::{Server, page, redirect},
    tools::{Names, builder, fetch},
};

fn public() -> Web {
    Web::builder().ignore_robots().apart(Duration::ZERO).build().expect("builds")
}

#[tokio::test]
async fn nothing_that_is_not_of_the_public_internet_is_connected_to() {
    let server = Server::start(|_, _| page("text/plain", "secret")).await;
    let port = server.port;
    let hosts = [
        "127.0.0.1",
        "127.1",
        "2130706433",
        "0x7f000001",
        "0177.0.0.1",
        "127.0.0.1.",
        "１２７.0.0.1",
        "0.0.0.0",
        "0",
        "localhost",
        "localhost.",
        "LOCALHOST",
        "[::1]",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[64:ff9b::7f00:1]",
        "[2002:7f00:1::]",
        "10.0.0.1",
        "192.168.1.1",
        "172.16.0.1",
        "169.254.169.254",
        "100.100.100.200",
        "[fd00:ec2::254]",
        "[fe80::1]",
        "224.0.0.1",
        "192.0.2.1",
        "metadata.google.internal",
        "metadata.google.internal.",
        "[ff02::1]",
        "[2001:db8::1]",
    ];
    // The port is allowed, so that the address is the reason of the refusal.
    let web = Web::builder().ignore_robots().allow(format!("*:{port}")).build().expect("builds");
    for host in hosts {
        let e = fetch(&web, &format!("http://{host}:{port}/")).await.expect_err(host);
        // Not every machine resolves `localhost.`, with a dot.
        let whys = ["not on the public internet", "secrets of this machine", "cannot be found"];
        assert!(whys.iter().any(|why| e.contains(why)), "{host}: {e}");
    }
    assert!(server.seen().is_empty(), "no one came");
}

#[tokio::test]
async fn a_name_that_leads_inside_is_refused_whenever_it_does() {
    let server = Server::start(|_, _| page("text/plain", "inside")).await;
    let rebinding =
        || Names::new([("rebind.example", vec![vec!["127.0.0.1"], vec!["10.0.0.1", "::1"], vec!["::ffff:127.0.0.1"]])]);
    let web = Web::builder().ignore_robots().apart(Duration::ZERO).allow("rebind.example:*");
    assert_eq!(web.build().expect_err("no port").kind(), ErrorKind::Config);
    let web = Web::builder().ignore_robots().apart(Duration::ZERO).allow(format!("rebind.example:{}", server.port));
    let web = web.resolver(rebinding()).build().expect("builds");
    for _ in 0..3 {
        let e = fetch(&web, &format!("http://rebind.example:{}/", server.port)).await.expect_err("refused");
        assert!(e.contains("not on the public internet"), "{e}");
    }
    assert!(server.seen().is_empty());
}

#[tokio::test]
async fn what_was_judged_is_connected_to_and_is_not_resolved_again() {
    let server =
        Server::start(|path, _| if path == "/a" { redirect("/b") } else { page("text/plain", "inside") }).await;
    let names = Names::new([("name.example", vec![vec!["127.0.0.1"], vec!["127.0.0.2"]])]);
    let web = builder(&server).resolver(names).build().expect("builds");
    let url = |path: &str| format!("http://name.example:{}{path}", server.port);
    let e = fetch(&web, &url("/a")).await.expect_err("the redirect is resolved again, and leads elsewhere");
    assert!(e.contains("not on the public internet"), "{e}");
    assert_eq!(server.paths(), ["/a"]);
}

#[tokio::test]
async fn of_several_addresses_only_those_outside_count() {
    let server = Server::start(|_, _| page("text/plain", "here")).await;
    let names = Names::new([("both.example", vec![vec!["127.0.0.2", "10.0.0.1", "127.0.0.1"]])]);
    let web = builder(&server).resolver(names).build().expect("builds");
    assert!(fetch(&web, &format!("http://both.example:{}/", server.port)).await.expect("is read").contains("here"));
}

#[tokio::test]
async fn a_redirect_is_judged_as_its_beginning_was() {
    let inside = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
    let port = inside.local_addr().expect("bound").port();
    let targets = [
        format!("http://127.0.0.1:{port}/"),
        "http://169.254.169.254/latest/meta-data".to_owned(),
        "http://[::1]/".to_owned(),
        "http://2130706433/".to_owned(),
        "file:///etc/passwd".to_owned(),
        "ftp://example.org/".to_owned(),
        "http://user:pass@127.0.0.1/".to_owned(),
        "//0/x".to_owned(),
        "http://denied.example/".to_owned(),
        "gopher://x/".to_owned(),
        "http://".to_owned(),
    ];
    for target in targets {
        let to = target.clone();
        let server = Server::start(move |_, _| redirect(&to)).await;
        let web = builder(&server).deny("denied.example").build().expect("builds");
        fetch(&web, &server.url("/")).await.expect_err(&target);
        assert_eq!(server.seen().len(), 1, "{target}");
    }
    let nobody = tokio::time::timeout(Duration::from_millis(20), inside.accept()).await;
    assert!(nobody.is_err(), "no one came to where the redirect led");
}

#[tokio::test]
async fn redirects_end_after_five() {
    let server = Server::start(|path, _| {
        let left: u32 = path[1..].parse().expect("a number");
        if left == 0 { page("text/plain", "arrived") } else { redirect(&format!("/{}", left - 1)) }
    });
    let server = server.await;
    let web = builder(&server).build().expect("builds");
    let arrived = fetch(&web, &server.url("/5")).await.expect("five are followed");
    assert!(arrived.starts_with(&format!("Source: {}\n", server.url("/0"))), "{arrived}");
    let e = fetch(&web, &server.url("/6")).await.expect_err("six are not");
    assert!(e.contains("more than 5 times"), "{e}");
    let round = Server::start(|_, _| redirect("/")).await;
    fetch(&builder(&round).build().expect("builds"), &round.url("/")).await.expect_err("no end");
    assert_eq!(round.seen().len(), 6);
}

#[tokio::test]
async fn lists_of_hosts_and_other_refusals_are_said() {
    let web = Web::builder().allow("docs.example").deny("*.evil.example").ignore_robots().build().expect("builds");
    let cases = [
        ("https://other.example/", "not on the list of hosts"),
        ("https://x.evil.example/", "on the list of hosts that are not read"),
        ("ftp://docs.example/", "only http"),
        ("https://u:p@docs.example/", "user name"),
        ("https://docs.example:22/", "port 22"),
        ("docs.example", "is not an address"),
        ("", "is not an address"),
        ("http://[::1", "is not an address"),
    ];
    for (url, why) in cases {
        let e = fetch(&web, url).await.expect_err(url);
        assert!(e.contains(why), "{url}: {e}");
    }
    let long = format!("https://docs.example/{}", "x".repeat(5_000));
    assert!(fetch(&public(), &long).await.expect_err("too long").contains("longer than"));
}

#[tokio::test]
async fn https_is_spoken_and_a_server_without_it_is_an_error() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
    let address = listener.local_addr().expect("bound");
    let greeted = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.expect("somebody");
        stream.read_u8().await.expect("a byte")
    });
    let web = Web::builder().allow_private(address.to_string()).ignore_robots().build().expect("builds");
    let e = fetch(&web, &format!("https://{address}/")).await.expect_err("no TLS");
    assert!(e.contains("cannot be connected to"), "{e}");
    assert_eq!(greeted.await.expect("no panic"), 0x16, "a handshake of TLS began");
}

#[test]
fn settings_that_cannot_work_are_refused_when_it_is_built() {
    let wrong = [
        Web::builder().allow("https://example.org"),
        Web::builder().deny(""),
        Web::builder().allow_private("localhost"),
        Web::builder().allow_private("10.0.0.0/40"),
        Web::builder().user_agent("a\nb"),
        Web::builder().user_agent(""),
        Web::builder().max_bytes(0),
        Web::builder().timeout(Duration::ZERO),
    ];
    for builder in wrong {
        let e = builder.clone().build().expect_err(&format!("{builder:?}"));
        assert_eq!(e.kind(), ErrorKind::Config);
    }
}
