//! Calls, and the API's responses.

use std::sync::Arc;

use agent_core::{ErrorKind, Tool, ToolOutput};
use agent_tools::openapi::{OpenApi, OpenApiBuilder};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{
    api,
    server::{Answer, Server, answer, page, redirect},
    support::call,
};

const KEY: &str = "key/that+is=hush";

fn document(operation: &Value) -> String {
    let path = json!({"post": operation, "get": {"operationId": "look"}, "put": {"operationId": "put"}});
    json!({"openapi": "3.0.0", "paths": {"/a/{id}/b": path}, "components": {"securitySchemes": {
        "header": {"type": "apiKey", "in": "header", "name": "X-Key"},
        "query": {"type": "apiKey", "in": "query", "name": "key"},
        "cookie": {"type": "apiKey", "in": "cookie", "name": "session"},
        "bearer": {"type": "http", "scheme": "bearer"},
        "oauth": {"type": "oauth2", "flows": {}},
        "basic": {"type": "http", "scheme": "Basic"},
    }}})
    .to_string()
}

fn tool(server: &Server, operation: Value, with: impl FnOnce(OpenApiBuilder) -> OpenApiBuilder) -> Arc<dyn Tool> {
    let mut operation = operation;
    operation["operationId"] = json!("x");
    let builder = OpenApi::builder(document(&operation)).server(server.url("/v1/")).operation("x");
    with(builder).build().expect("builds").tools().into_iter().next().expect("a tool")
}

async fn echo() -> Server {
    Server::start(|_, _| page("application/json", r#"{"ok":true}"#)).await
}

fn path_id() -> Value {
    json!({"name": "id", "in": "path", "required": true, "schema": {"type": "string"}})
}

#[tokio::test]
async fn every_argument_goes_where_the_document_says() {
    let server = echo().await;
    let operation = json!({
        "parameters": [
            path_id(),
            {"name": "list", "in": "query", "schema": {"type": "array", "items": {"type": "string"}}},
            {"name": "short", "in": "query", "explode": false, "schema": {"type": "array", "items": {"type": "integer"}}},
            {"name": "deep", "in": "query", "style": "deepObject", "schema": {"type": "object"}},
            {"name": "json", "in": "query", "content": {"application/json": {"schema": {"type": "object"}}}},
            {"name": "X-Trace", "in": "header", "schema": {"type": "array", "items": {"type": "string"}}},
            {"name": "theme", "in": "cookie", "schema": {"type": "string"}},
            {"name": "Host", "in": "header", "schema": {"type": "string"}},
            {"name": "id", "in": "query", "schema": {"type": "string"}},
            {"name": "unused", "in": "query", "schema": {"type": "string"}},
        ],
        "requestBody": {"required": true, "content": {"application/json": {"schema": {"type": "object", "properties": {"name": {"type": "string"}, "n": {"type": "integer"}}}}}},
    });
    let tool = tool(&server, operation, |b| b);
    let args = json!({"id": "a/b?c#d%2e é", "list": ["x", "y z"], "short": [1, 2], "deep": {"k": "v"}, "json": {"a": 1}, "X-Trace": ["p", "q"],
        "theme": "dark; x=y", "id_query": "q&r", "name": "Ada"});
    let output = call(&*tool, args).await.expect("is done");
    assert_eq!(output.as_value(), Some(&json!({"ok": true})));
    let request = server.seen().remove(0);
    let path = "/v1/a/a%2Fb%3Fc%23d%252e%20%C3%A9/b";
    let query = "id=q%26r&deep%5Bk%5D=v&json=%7B%22a%22%3A1%7D&list=x&list=y%20z&short=1,2";
    let (line, rest) = request.split_once("\r\n").expect("a line");
    let (target, got) = line.split_once('?').expect("a query");
    assert_eq!(target, format!("POST {path}"));
    let sorted = |query: &str| {
        let mut all: Vec<_> = query.split('&').map(str::to_owned).collect();
        all.sort();
        all
    };
    assert_eq!(sorted(got.trim_end_matches(" HTTP/1.1")), sorted(query));
    assert!(rest.contains("x-trace: p,q\r\n") && rest.contains("cookie: theme=dark%3B%20x%3Dy\r\n"), "{rest}");
    assert!(
        rest.contains("content-type: application/json\r\n") && rest.ends_with("\r\n\r\n{\"name\":\"Ada\"}"),
        "{rest}"
    );
}

#[tokio::test]
async fn numbers_of_more_than_64_bits_are_sent_with_every_digit() {
    let server = echo().await;
    let (whole, number) = (json!({"type": "integer"}), json!({"type": "number"}));
    let schema =
        json!({"type": "object", "properties": {"account": whole, "rates": {"type": "array", "items": number}}});
    let operation = json!({
        "parameters": [path_id(), {"name": "n", "in": "query", "schema": {"type": "integer"}}],
        "requestBody": {"required": true, "content": {"application/json": {"schema": schema}}},
    });
    let long = "12345678901234567890123";
    let args = json!({"id": long, "n": long, "account": long, "rates": [0.5, "3.14159265358979323846"]});
    call(&*tool(&server, operation, |b| b), args).await.expect("is done");
    let request = server.seen().remove(0);
    assert!(request.starts_with(&format!("POST /v1/a/{long}/b?n={long} ")), "{request}");
    assert!(request.ends_with(&format!(r#"{{"account":{long},"rates":[0.5,3.14159265358979323846]}}"#)), "{request}");
}

#[tokio::test]
async fn bodies_are_json_forms_and_text() {
    let schema = json!({"type": "object", "properties": {"a": {"type": "array", "items": {"type": "string"}}, "b": {"type": "object"}}});
    let cases = [
        (
            json!({"application/x-www-form-urlencoded": {"schema": schema}}),
            json!({"a": ["1", "2 3"], "b": {"c": 1}}),
            "a=1&a=2%203&b=%7B%22c%22%3A1%7D",
        ),
        (json!({"text/plain": {}}), json!({"body": "some text"}), "some text"),
        (
            json!({"application/vnd.x+json": {"schema": {"type": "array"}}, "text/plain": {}}),
            json!({"body": [1]}),
            "[1]",
        ),
        (json!({"application/json": {"schema": schema}}), json!({}), ""),
    ];
    for (content, mut args, expected) in cases {
        let server = echo().await;
        args["id"] = json!("1");
        let tool = tool(&server, json!({"parameters": [path_id()], "requestBody": {"content": content}}), |b| b);
        call(&*tool, args).await.expect("is done");
        let request = server.seen().remove(0);
        assert_eq!(request.split_once("\r\n\r\n").expect("a body").1, expected);
    }
}

#[tokio::test]
async fn secrets_are_sent_and_never_shown() {
    let encoded = "key%2Fthat%2Bis%3Dhush";
    let cases = [
        ("header", KEY, format!("x-key: {KEY}\r\n")),
        ("query", KEY, format!("?key={encoded} HTTP")),
        ("cookie", KEY, format!("cookie: session={KEY}\r\n")),
        ("bearer", KEY, format!("authorization: Bearer {KEY}\r\n")),
        ("oauth", KEY, format!("authorization: Bearer {KEY}\r\n")),
        ("basic", "user:hush-hush", "authorization: Basic dXNlcjpodXNoLWh1c2g=\r\n".to_owned()),
    ];
    for (scheme, secret, expected) in cases {
        for status in ["200 OK", "400 Bad Request"] {
            // The server echoes everything that it was sent.
            let server = Server::start(move |_, head| answer(status, "content-type: text/plain\r\n", head)).await;
            let operation = json!({"parameters": [path_id()], "security": [{}, {scheme: []}]});
            let tool = tool(&server, operation, |b| b.secret(scheme, secret));
            let result = call(&*tool, json!({"id": "1"})).await;
            assert!(server.seen()[0].contains(&expected), "{scheme}: {:?}", server.seen());
            let shown = format!(
                "{result:?} {:?} {:?}",
                result.as_ref().map(ToolOutput::to_text),
                result.as_ref().map_err(ToString::to_string)
            );
            for hidden in [secret, encoded, "hush", "dXNlcjpodXNoLWh1c2g="] {
                assert!(!shown.contains(hidden), "{scheme}: {shown}");
            }
        }
    }
}

#[tokio::test]
async fn no_argument_leads_to_another_path_or_header() {
    let server = echo().await;
    let operation = json!({"parameters": [path_id(), {"name": "X-A", "in": "header", "schema": {"type": "string"}}]});
    let tool = tool(&server, operation, |b| b);
    for id in ["", ".", ".."] {
        let e = api(&*tool, json!({"id": id})).await.expect_err(id);
        assert!(e.contains("'id'"), "{e}");
    }
    let e = api(&*tool, json!({"id": "1", "X-A": "a\r\nx-evil: b"})).await.expect_err("a line break");
    assert!(e.contains("'X-A'"), "{e}");
    assert!(server.seen().is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn whatever_the_arguments_are_the_path_stays_below_the_server(id in "[./\\\\%2eE?#@:a{}-]{0,12}", query in ".{0,12}") {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let paths = runtime.block_on(async {
            let server = echo().await;
            let tool = tool(&server, json!({"parameters": [path_id(), {"name": "q", "in": "query", "schema": {"type": "string"}}]}), |b| b);
            let _ = call(&*tool, json!({"id": id, "q": query})).await;
            server.paths()
        });
        for path in paths {
            let path = path.split('?').next().expect("a path");
            prop_assert!(path.starts_with("/v1/a/") && path.ends_with("/b") && path.matches('/').count() == 4, "{}", path);
        }
    }
}

#[tokio::test]
async fn a_call_is_made_under_its_key_where_the_api_takes_one() {
    let server = echo().await;
    let operation = json!({"parameters": [path_id(), {"name": "idempotency-KEY", "in": "header", "required": true, "schema": {"type": "string"}}]});
    let tool = tool(&server, operation, |b| b);
    let run = super::support::run(agent_core::Resources::default());
    let request = super::support::request(run.cx(), &*tool, json!({"id": "1"}));
    let key = request.idempotency_key();
    for _ in 0..2 {
        tool.call(request.clone()).await.expect("is done");
    }
    assert!(
        server.seen().iter().all(|head| head.contains(&format!("idempotency-key: {key}\r\n"))),
        "{:?}",
        server.seen()
    );
}

#[tokio::test]
async fn a_secret_that_json_spells_otherwise_is_not_shown_either() {
    let secret = "p&w<d\"-123456";
    for status in ["200 OK", "400 Bad Request"] {
        let said = r#"{"you sent":"p\u0026w\u003cd\"-123456","p\u0026w\u003cd\"-123456":[1]}"#;
        let link = "content-type: application/json\r\nlink: <https://a.example/?k=p%26w%3Cd%22-123456&ids=1,2>; rel=\"next\"\r\n";
        let server = Server::start(move |_, _| answer(status, link, said)).await;
        let operation = json!({"parameters": [path_id()], "security": [{"bearer": []}]});
        let tool = tool(&server, operation, |b| b.secret("bearer", secret));
        let result = call(&*tool, json!({"id": "1"})).await;
        let shown = format!(
            "{:?} {:?}",
            result.as_ref().map(|output| (output.to_text(), output.as_value().cloned())),
            result.as_ref().map_err(ToString::to_string)
        );
        assert!(!shown.contains("123456") && shown.contains("[redacted]"), "{shown}");
    }
}

#[tokio::test]
async fn a_secret_goes_to_no_server_that_only_an_operation_names() {
    let document = |own: &str| {
        json!({"openapi": "3.0.0", "servers": [{"url": "https://pets.example"}], "security": [{"key": []}],
            "paths": {"/x": {"get": {"operationId": "x", "servers": [{"url": own}]}}},
            "components": {"securitySchemes": {"key": {"type": "http", "scheme": "bearer"}}}})
        .to_string()
    };
    let elsewhere = OpenApi::builder(document("https://evil.example")).secret("key", KEY).build();
    let told = match &elsewhere {
        Ok(api) => format!("{:?}", api.left_out()),
        Err(e) => e.to_string(),
    };
    assert!(told.contains("is not the document's own server"), "{told}");
    let below = OpenApi::builder(document("https://pets.example/v2")).secret("key", KEY).build().expect("builds");
    assert_eq!(below.tools().names(), ["x"]);
}

#[tokio::test]
async fn redirects_stay_with_the_server() {
    let other = echo().await;
    let elsewhere = other.url("/x");
    let server = Server::start(move |path, _| match path {
        "/v1/a/in/b" => redirect("/moved"),
        "/v1/a/round/b" => redirect("/v1/a/round/b"),
        "/moved" => page("text/plain", "here"),
        _ => redirect(&elsewhere),
    })
    .await;
    let document = json!({"openapi": "3.0.0", "security": [{"key": []}], "paths": {"/a/{id}/b": {
        "parameters": [path_id()], "get": {"operationId": "look"}, "post": {"operationId": "act"}}},
        "components": {"securitySchemes": {"key": {"type": "http", "scheme": "bearer"}}}});
    let tools = OpenApi::builder(document.to_string())
        .server(server.url("/v1"))
        .secret("key", KEY)
        .build()
        .expect("builds")
        .tools();
    let [look, act] = &tools.into_tools().expect("tools")[..] else { panic!("two") };
    assert_eq!(api(&**look, json!({"id": "in"})).await.expect("is followed"), "here");
    assert!(api(&**look, json!({"id": "out"})).await.expect_err("another host").contains("another host"));
    assert!(api(&**look, json!({"id": "round"})).await.expect_err("no end").contains("more than 5 times"));
    let result = api(&**act, json!({"id": "in"})).await.expect("the request was carried out");
    assert!(result.contains("here"), "the result is read, the request is not repeated: {result}");
    assert_eq!(server.seen().iter().filter(|request| request.starts_with("POST")).count(), 1);
    assert!(other.seen().is_empty(), "no secret went to another host");
}

#[tokio::test]
async fn an_answer_is_shown_cut_and_an_error_says_what_to_do() {
    let problem = answer(
        "422 Unprocessable",
        "content-type: application/problem+json\r\n",
        r#"{"title":"Bad","detail":"no such pet","errors":["id"]}"#,
    );
    let long = page("application/json", json!(vec!["a".repeat(100); 1_000]).to_string());
    let paged = answer(
        "200 OK",
        "content-type: application/json\r\nlink: <https://a.example/?page=2>; rel=\"next\"\r\n",
        "[1]",
    );
    let cases: Vec<(Answer, Result<&str, &str>)> = vec![
        (
            problem,
            Err(
                "POST /a/{id}/b answered 422 Unprocessable Entity: Bad: no such pet: errors: [\"id\"]\n[change the arguments]",
            ),
        ),
        (answer("404 Not Found", "", ""), Err("look for it with another tool")),
        (answer("401 Unauthorized", "", "no"), Err("tell the user")),
        (answer("503 Oh", "retry-after: 5\r\n", ""), Err("try it later")),
        (answer("204 No Content", "", ""), Ok("done (204 No Content)")),
        (page("text/csv", "a,b\n"), Ok("a,b")),
        (page("application/octet-stream", b"\xff\xfe\x00"), Ok("'application/octet-stream', which is not shown")),
        (long, Ok("[cut: 24000 of 103001 bytes are shown")),
        (paged, Ok("[1]\n[there is a next page: https://a.example/?page=2]")),
        (page("application/json", "no JSON"), Ok("no JSON")),
        (page("text/plain", vec![b'a'; 70 << 10]), Err("more than 64 KiB: ask for less")),
        (Answer { bytes: b"nonsense".to_vec(), ..Answer::default() }, Err("broke the connection off")),
    ];
    for (given, expected) in cases {
        let server = Server::start(move |_, _| given.clone()).await;
        let most = if matches!(expected, Ok(text) if text.contains("24000")) { 1 << 20 } else { 64 << 10 };
        let tool = tool(&server, json!({"parameters": [path_id()]}), |b| b.max_bytes(most));
        match (call(&*tool, json!({"id": "1"})).await, expected) {
            (Ok(output), Ok(expected)) => assert!(output.to_text().contains(expected), "{}", output.to_text()),
            (Err(e), Err(expected)) => {
                assert!(e.kind() == ErrorKind::Tool && e.message().contains(expected), "{e}");
                assert!(!e.message().contains("later") || e.is_retryable(), "{e}");
            }
            (got, expected) => panic!("{got:?} and not {expected:?}"),
        }
    }
}
