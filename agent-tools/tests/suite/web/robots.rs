//! `robots.txt`.

use std::time::Duration;

use agent_tools::web::{Web, WebBuilder};

use super::{
    server::{Answer, Server, answer, page, redirect},
    tools::fetch,
};

fn respectful(server: &Server) -> WebBuilder {
    Web::builder().allow_private(format!("127.0.0.1:{}", server.port)).apart(Duration::ZERO)
}

async fn site(robots: Answer) -> Server {
    Server::start(move |path, _| match path {
        "/robots.txt" => robots.clone(),
        "/open" | "/closed?x" => page("text/plain", "a page"),
        "/leads" => redirect("/closed"),
        _ => page("text/plain", "closed"),
    })
    .await
}

#[tokio::test]
async fn what_a_site_closes_to_programs_is_not_read() {
    let server = site(page("text/plain", "User-agent: *\nDisallow: /\nUser-agent: acme\nDisallow: /closed")).await;
    let web = respectful(&server).user_agent("acme/1.0 (+https://acme.example)").build().expect("builds");
    assert!(fetch(&web, &server.url("/open")).await.expect("is read").contains("a page"));
    for path in ["/closed", "/closed?x", "/leads"] {
        let e = fetch(&web, &server.url(path)).await.expect_err(path);
        assert!(e.contains("robots.txt"), "{e}");
    }
    assert_eq!(server.paths(), ["/robots.txt", "/open", "/leads"], "asked once, and closed pages never");
    assert!(server.seen().iter().all(|head| head.contains("user-agent: acme/1.0 (+https://acme.example)")));
    let other = respectful(&server).build().expect("builds");
    fetch(&other, &server.url("/open")).await.expect_err("all others are shut out");
    let told_otherwise = respectful(&server).ignore_robots().build().expect("builds");
    fetch(&told_otherwise, &server.url("/closed")).await.expect("is read");
}

#[tokio::test]
async fn a_site_without_robots_is_open_and_one_that_fails_is_closed() {
    let cases = [
        (answer("404 Not Found", "", ""), true),
        (answer("403 Forbidden", "", ""), true),
        (answer("500 Internal Server Error", "", ""), false),
        (answer("429 Too Many Requests", "", ""), false),
        (page("text/plain", ""), true),
        (page("text/plain", b"\xff\xfe\x00 no text"), true),
        (page("text/plain", vec![b'a'; 600 << 10]), false),
        (redirect("/robots.txt"), true),
        (redirect("http://10.0.0.1/robots.txt"), false),
        (Answer { bytes: b"no HTTP".to_vec(), ..Answer::default() }, false),
    ];
    for (number, (robots, read)) in cases.into_iter().enumerate() {
        let server = site(robots).await;
        let web = respectful(&server).build().expect("builds");
        for _ in 0..2 {
            assert_eq!(fetch(&web, &server.url("/open")).await.is_ok(), read, "case {number}");
        }
        let asked = server.paths().iter().filter(|path| *path == "/robots.txt").count();
        assert!(read || asked >= 2, "what failed is asked for again (case {number})");
    }
}
