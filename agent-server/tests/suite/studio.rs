//! Files of the web UI, as a browser receives them.

use std::{collections::BTreeSet, sync::Arc};

use agent::{
    Agent, SqliteJournal,
    journal::{Entry, EntryBody, Journal, MemoryJournal},
    store::import,
    testing::{ScriptedModel, Turn},
};
use agent_server::{OneTenant, Server, Studio};
use axum::{
    Router,
    body::{Body, to_bytes},
};
use futures::stream;
use http::{Request, Response, StatusCode, header};
use tower::ServiceExt;

fn app(studio: Studio) -> Router {
    let agent = Agent::builder("greeter", ScriptedModel::new([Turn::text("Hello!")])).build().expect("an agent");
    Server::builder().agent(agent).studio(studio).build().expect("a server").router()
}

async fn get(app: &Router, path: &str) -> Response<Body> {
    app.clone()
        .oneshot(Request::get(path).header(header::HOST, "localhost").body(Body::empty()).expect("a request"))
        .await
        .expect("an answer")
}

async fn text(response: Response<Body>) -> String {
    let bytes = to_bytes(response.into_body(), usize::MAX).await.expect("a body");
    String::from_utf8(bytes.to_vec()).expect("text")
}

fn header_of(response: &Response<Body>, name: header::HeaderName) -> String {
    response.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned()
}

/// Returns the text from each `before` up to a quote.
fn quoted<'a>(text: &'a str, before: &str) -> Vec<&'a str> {
    text.split(before).skip(1).filter_map(|rest| rest.split('"').next()).collect()
}

/// Resolves a relative URL in a file of the page.
fn resolved(from: &str, link: &str) -> String {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in link.split('/') {
        match part {
            "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

#[tokio::test]
async fn every_file_that_the_page_names_is_there_with_the_right_type() {
    let app = app(Studio::new());
    let (mut seen, mut next) = (BTreeSet::new(), vec!["index.html".to_owned()]);
    while let Some(file) = next.pop() {
        if !seen.insert(file.clone()) {
            continue;
        }
        let response = get(&app, &format!("/studio/{file}")).await;
        assert_eq!(response.status(), StatusCode::OK, "{file}");
        let kind = header_of(&response, header::CONTENT_TYPE);
        let wanted = match file.rsplit_once('.').expect("an ending").1 {
            "html" => "text/html; charset=utf-8",
            "js" => "text/javascript; charset=utf-8",
            "css" => "text/css; charset=utf-8",
            "svg" => "image/svg+xml",
            other => panic!("a file of another kind: {other}"),
        };
        assert_eq!(kind, wanted, "{file}");
        let content = text(response).await;
        let named: Vec<&str> = match wanted {
            "text/html; charset=utf-8" => [quoted(&content, "href=\""), quoted(&content, "src=\"")].concat(),
            "text/javascript; charset=utf-8" if file.contains("vendor/preact") => quoted(&content, "from\""),
            "text/javascript; charset=utf-8" if !file.contains("vendor/") => {
                [quoted(&content, " from \""), quoted(&content, "import \"")].concat()
            }
            _ => Vec::new(),
        };
        next.extend(named.into_iter().map(|link| resolved(&file, link)));
    }
    let modules = seen.iter().filter(|file| file.ends_with(".js")).count();
    assert!(modules > 30 && seen.contains("vendor/preact/preact.js") && seen.contains("views/chat.js"), "{seen:?}");
}

#[tokio::test]
async fn the_page_may_load_nothing_from_elsewhere_and_nothing_inline() {
    let app = app(Studio::new());
    for path in ["/studio/", "/studio/main.js", "/studio/config.json", "/studio/none.js"] {
        let response = get(&app, path).await;
        let policy = header_of(&response, header::CONTENT_SECURITY_POLICY);
        assert!(policy.starts_with("default-src 'self'; "), "{path}: {policy}");
        assert!(!policy.contains("unsafe") && !policy.contains("http"), "{path}: {policy}");
        assert!(policy.contains("frame-ancestors 'none'"), "{path}: {policy}");
        assert_eq!(header_of(&response, header::X_CONTENT_TYPE_OPTIONS), "nosniff", "{path}");
        assert_eq!(header_of(&response, header::REFERRER_POLICY), "no-referrer", "{path}");
    }
    let page = text(get(&app, "/studio/").await).await;
    assert!(!page.contains("://") && !page.contains("style=") && !page.contains("onclick"), "{page}");
}

#[tokio::test]
async fn a_file_that_has_not_changed_is_not_sent_again() {
    let app = app(Studio::new());
    let first = get(&app, "/studio/main.js").await;
    let tag = header_of(&first, header::ETAG);
    assert_eq!(header_of(&first, header::CACHE_CONTROL), "no-cache");
    let again = |tag: &str| {
        Request::get("/studio/main.js").header(header::IF_NONE_MATCH, tag).body(Body::empty()).expect("a request")
    };
    let unchanged = app.clone().oneshot(again(&tag)).await.expect("an answer");
    assert_eq!(unchanged.status(), StatusCode::NOT_MODIFIED);
    assert_eq!(text(unchanged).await, "");
    let changed = app.clone().oneshot(again("\"another\"")).await.expect("an answer");
    assert_eq!(changed.status(), StatusCode::OK);
}

#[tokio::test]
async fn no_path_leads_out_of_the_page() {
    let app = app(Studio::new());
    for path in
        ["/studio/../Cargo.toml", "/studio/%2e%2e/vendor.sh", "/studio/..%2fvendor.sh", "/studio/tests/mock.mjs"]
    {
        assert_eq!(get(&app, path).await.status(), StatusCode::NOT_FOUND, "{path}");
    }
    let moved = get(&app, "/studio").await;
    assert_eq!(header_of(&moved, header::LOCATION), "/studio/");
}

#[tokio::test]
async fn a_read_only_studio_says_so_and_lets_nothing_be_started() {
    let start = || {
        let body = Body::from(r#"{"input":"Hello?"}"#);
        Request::post("/api/agents/greeter/runs")
            .header(header::CONTENT_TYPE, "application/json")
            .body(body)
            .expect("a request")
    };
    let closed = app(Studio::new().read_only(true));
    let config = text(get(&closed, "/studio/config.json").await).await;
    assert!(config.contains(r#""read_only":true"#), "{config}");
    let refused = closed.clone().oneshot(start()).await.expect("an answer");
    assert_eq!(refused.status(), StatusCode::FORBIDDEN);
    assert!(text(refused).await.contains("read-only"));
    assert_eq!(get(&closed, "/api/agents").await.status(), StatusCode::OK);

    let open = app(Studio::new());
    assert_ne!(open.oneshot(start()).await.expect("an answer").status(), StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn sessions_that_no_server_wrote_are_those_of_callers_without_a_key() {
    let store = Arc::new(MemoryJournal::default());
    let seen = OneTenant::new(store.clone());
    for name in ["garden", "trip/2", "local/x"] {
        let writer = seen.open(&agent::SessionId::new("local", name).to_string(), "greeter").await.expect("a writer");
        let titled = EntryBody::Titled { title: name.to_uppercase() };
        writer.append(vec![Entry::new("run".into(), 1, titled)]).await.expect("kept");
    }
    assert_eq!(store.sessions().await.expect("names"), ["garden", "local/x", "trip/2"]);
    assert_eq!(seen.sessions().await.expect("names"), ["local/garden", "local/local%2Fx", "local/trip%2F2"]);
    let info = seen.info("local/trip%2F2").await.expect("read").expect("a session");
    assert_eq!(info.title.as_deref(), Some("TRIP/2"));
    assert!(seen.delete("local/local%2Fx").await.expect("deleted"));
    assert_eq!(store.sessions().await.expect("names"), ["garden", "trip/2"]);
}

/// For a browser: `checks/studio.sh` runs it, over the lines of a large session.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "serves until it is killed"]
async fn the_session_of_a_file_until_it_is_killed() {
    let lines = std::fs::read_to_string(std::env::var("STUDIO_LINES").expect("a file")).expect("lines");
    let dir = tempfile::tempdir().expect("a directory");
    let journal = SqliteJournal::open(dir.path().join("runs.db")).expect("a journal");
    let lines = stream::iter(lines.lines().map(|line| Ok(line.to_owned())));
    import(&journal, lines).await.expect("they are an export's");
    let server = Server::builder().store(OneTenant::new(Arc::new(journal))).studio(Studio::new().read_only(true));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    println!("http://{}/studio/", listener.local_addr().expect("an address"));
    axum::serve(listener, server.build().expect("a server").router()).await.expect("it serves");
}
