//! Files stored at providers.

use agent_core::{ErrorKind, message::MediaSource};
use agent_llm::{StoredFile, files, model};
use http::{Response, StatusCode};

use super::{Server, ok};

fn header<'a>(request: &'a http::Request<bytes::Bytes>, name: &str) -> &'a str {
    request.headers()[name].to_str().expect("text")
}

#[tokio::test(start_paused = true)]
async fn a_file_is_stored_at_anthropic_and_named_in_a_message() {
    let server = Server::new(|req| match req.method().as_str() {
        "POST" | "GET" if req.uri().path() != "/v1/files" || req.method() == "POST" => {
            ok(r#"{"id":"f1","filename":"a.pdf","mime_type":"application/pdf","size_bytes":5}"#)
        }
        "GET" if req.uri().query().is_some_and(|query| query.contains("page_2")) => {
            ok(r#"{"data":[{"id":"f2"}],"next_page":null}"#)
        }
        "GET" => ok(r#"{"data":[{"id":"f1"}],"next_page":"page_2"}"#),
        _ => ok("{}"),
    });
    let claude = model("anthropic:any").api_key("sk-ant-a-key-of-a-test").header("anthropic-beta", "b-1");
    let files = claude.transport(server.clone()).files().expect("a shelf");
    let stored = files.upload("a.pdf", "application/pdf", &b"hello"[..]).await.expect("stored");
    assert_eq!(stored.media().source, MediaSource::File("f1".into()));
    assert_eq!((stored.bytes, stored.mime.as_deref()), (5, Some("application/pdf")));
    assert_eq!(files.get("f1").await.expect("there"), stored);
    let all: Vec<_> = files.list().await.expect("a list").into_iter().map(|file| file.id).collect();
    assert_eq!(all, ["f1", "f2"]);
    files.delete("f1").await.expect("deleted");

    let base = "https://api.anthropic.com/v1/files";
    let pages = [format!("GET {base}?limit=100"), format!("GET {base}?limit=100&page=page_2")];
    let rest = [
        format!("POST {base}"),
        format!("GET {base}/f1"),
        pages[0].clone(),
        pages[1].clone(),
        format!("DELETE {base}/f1"),
    ];
    assert_eq!(server.asked(), rest);
    let sent = server.seen(0);
    assert_eq!(header(&sent, "x-api-key"), "sk-ant-a-key-of-a-test");
    assert_eq!(header(&sent, "anthropic-beta"), "files-api-2025-04-14,b-1", "its own joins the API's");
    assert!(header(&sent, "content-type").starts_with("multipart/form-data; boundary="));
    let body = String::from_utf8_lossy(sent.body());
    assert!(body.contains("filename=\"a.pdf\"") && body.contains("hello") && !body.contains("purpose"));
}

#[tokio::test(start_paused = true)]
async fn a_file_is_stored_at_google_in_two_steps_and_named_by_its_address() {
    let server = Server::new(|req| {
        if req.uri().path() == "/upload/v1beta/files" && !req.uri().query().is_some_and(|query| query.contains("id=7"))
        {
            let place = "https://generativelanguage.googleapis.com/upload/v1beta/files?id=7";
            return Response::builder().header("x-goog-upload-url", place).body("{}".into()).expect("a response");
        }
        ok(
            r#"{"file":{"name":"files/abc","uri":"https://generativelanguage.googleapis.com/v1beta/files/abc","mimeType":"image/png","sizeBytes":"5"}}"#,
        )
    });
    let files = model("gemini:any").api_key("a-key-of-a-test").transport(server.clone()).files().expect("a shelf");
    let stored = files.upload("a.png", "image/png", &b"hello"[..]).await.expect("stored");
    let uri = "https://generativelanguage.googleapis.com/v1beta/files/abc";
    assert_eq!(stored.media().source, MediaSource::File(uri.into()));
    assert_eq!((stored.id.as_str(), stored.bytes), ("files/abc", 5));
    assert_eq!(header(&server.seen(0), "x-goog-upload-header-content-length"), "5");
    assert_eq!(
        (header(&server.seen(1), "x-goog-upload-command"), &server.seen(1).body()[..]),
        ("upload, finalize", &b"hello"[..])
    );
}

#[tokio::test(start_paused = true)]
async fn a_key_goes_to_no_address_that_a_provider_names_elsewhere() {
    let server = Server::new(|_| {
        Response::builder().header("x-goog-upload-url", "https://evil.test/up").body("{}".into()).expect("a response")
    });
    let files = model("gemini:any").api_key("a-key-of-a-test").transport(server.clone()).files().expect("a shelf");
    let error = files.upload("a", "text/plain", &b"x"[..]).await.expect_err("it is elsewhere");
    assert_eq!((error.kind(), server.asked().len()), (ErrorKind::Protocol, 1));
}

#[tokio::test(start_paused = true)]
async fn what_may_be_asked_twice_is_and_what_makes_something_is_not() {
    let server = Server::new(|_| {
        let busy = Response::builder().status(StatusCode::SERVICE_UNAVAILABLE);
        busy.body(r#"{"error":{"message":"busy, sk-a-key-of-a-test-0123"}}"#.into()).expect("a response")
    });
    let files =
        model("openai:any").api_key("sk-a-key-of-a-test-0123").transport(server.clone()).files().expect("a shelf");
    let error = files.get("f1").await.expect_err("it is busy");
    assert_eq!(server.asked().len(), 3, "two retries");
    assert!(!error.to_string().contains("a-key-of-a-test"), "{error}");
    files.upload("a", "text/plain", &b"x"[..]).await.expect_err("it is busy");
    assert_eq!(server.asked().len(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_media_type_is_one_line_and_a_list_of_files_has_an_end() {
    let server = Server::new(|_| ok(r#"{"data":[{"id":"f1"}],"next_page":"page_2"}"#));
    let claude = || model("anthropic:any").api_key("sk-ant-a-key-of-a-test").transport(server.clone());
    let files = claude().files().expect("a shelf");
    let error = files.upload("a", "text/plain\r\nx-evil: 1", &b"x"[..]).await.expect_err("two lines");
    assert_eq!((error.kind(), server.asked().len()), (ErrorKind::InvalidRequest, 0));
    let error = files.list().await.expect_err("it goes round");
    assert_eq!((error.kind(), server.asked().len()), (ErrorKind::Protocol, 2));
    let error = claude().max_answer(8).files().expect("a shelf").get("f1").await.expect_err("it is long");
    assert_eq!(error.kind(), ErrorKind::Protocol);
}

#[test]
fn a_provider_that_keeps_none_says_so_and_a_stored_file_is_data() {
    assert!(files("perplexity").is_err());
    assert!(model("gemini:any@chat").api_key("k").files().is_err(), "its files are at another address");
    let error = model("cohere:any").api_key("k").files().expect_err("it keeps none");
    assert!(error.message().contains("cohere") && error.message().contains("anthropic"));
    let file: StoredFile = serde_json::from_str(r#"{"id":"f1","name":"a","bytes":1}"#).expect("data");
    assert_eq!(serde_json::to_string(&file).expect("JSON"), r#"{"id":"f1","name":"a","bytes":1}"#);
}
