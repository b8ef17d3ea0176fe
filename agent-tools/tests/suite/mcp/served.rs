//! Tools and agents that are served, over streams and HTTP.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use agent_core::{
    Effect, Error, ErrorKind, ExitReason, Finished, History, Media, Part, RunEnd, RunIds, RunRequest, SubAgent,
    ToolOutput, ToolRequest, Toolset, engine::RunParts, tool::ToolHints,
};
use agent_tools::{
    ToolExt, ToolSet, Typed, from_schema,
    mcp::{Client, Http, HttpServer, Protocol, Reader, Server, ServerBuilder, Streams, Writer},
};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::support::*;

/// Number of decisions that a tool made.
static DECIDED: AtomicUsize = AtomicUsize::new(0);

/// Number of times that a tool started to wait.
static WAITING: AtomicUsize = AtomicUsize::new(0);

/// Number of times that a tool saw its cancellation.
static CANCELLED: AtomicUsize = AtomicUsize::new(0);

fn server() -> ServerBuilder {
    let any = || json!({"type": "object", "properties": {"n": {"type": "integer"}}});
    let double = from_schema(
        "double",
        "Doubles.",
        any(),
        async |args: Value, _: ToolRequest| json!({"twice": args["n"].as_i64().unwrap_or_default() * 2}),
    );
    let picture = from_schema("picture", "Paints.", any(), async |_: Value, _: ToolRequest| {
        let sound = Part::Document(Media::base64("c291bmQ=", "audio/wav"));
        ToolOutput::parts(vec![Part::text("a lion"), Part::Image(Media::base64("aW1n", "image/png")), sound])
    });
    let fail = from_schema("fail", "Fails.", any(), async |_: Value, _: ToolRequest| {
        Err::<Value, _>(Error::tool("no lion today").with_context("secret", "hush"))
    });
    let panic = from_schema("panic", "Panics.", any(), async |_: Value, _: ToolRequest| -> Value { panic!("hush") });
    let count = from_schema("count", "Counts.", any(), async |_: Value, req: ToolRequest| {
        (1..=3).for_each(|n| req.progress(json!({"progress": n, "total": 3})));
        // Notifications arrive before the response.
        tokio::time::sleep(Duration::from_millis(50)).await;
        "counted"
    });
    let wait = from_schema("wait", "Waits.", any(), async |_: Value, req: ToolRequest| {
        let guard = Noticed(req.cx.cancellation().clone());
        WAITING.fetch_add(1, Ordering::AcqRel);
        req.cx.cancellation().cancelled().await;
        drop(guard);
        "too late"
    });
    let ask = from_schema("ask", "Asks.", any(), async |_: Value, req: ToolRequest| -> agent_core::Result<String> {
        let name: String = req.ask("name", json!({"message": "Who are you?"}))?;
        Ok(format!("hello {name}"))
    });
    let decide =
        from_schema("decide", "Asks twice.", any(), async |_: Value, req: ToolRequest| -> agent_core::Result<String> {
            let number = req.decide("number", async { Ok(json!(DECIDED.fetch_add(1, Ordering::AcqRel))) }).await?;
            let name: String = req.ask("name", json!({"message": "Who are you?"}))?;
            let colour: String = req.ask("colour", json!({"message": "Which colour?"}))?;
            Ok(format!("{name} {colour} {number} {}", DECIDED.load(Ordering::Acquire)))
        });
    let double = double.with_options(|o| o.effect(Effect::Pure));
    let delete = from_schema("delete", "Deletes.", any(), async |_: Value, _: ToolRequest| Typed(Deleted { files: 3 }));
    let delete = delete.with_options(|o| o.destructive(true).open_world(false));
    let tools = ToolSet::new("test")
        .tool(double)
        .tool(delete)
        .tool(picture)
        .tool(fail)
        .tool(panic)
        .tool(count)
        .tool(wait)
        .tool(ask)
        .tool(decide);
    Server::builder("served").tools(tools)
}

#[derive(Serialize, JsonSchema)]
struct Deleted {
    files: u32,
}

/// Counts how often a call ended since it was cancelled.
struct Noticed(CancellationToken);

impl Drop for Noticed {
    fn drop(&mut self) {
        if self.0.is_cancelled() {
            CANCELLED.fetch_add(1, Ordering::AcqRel);
        }
    }
}

/// A client at the other end of two streams.
pub(crate) fn over_streams(server: Server) -> Streams {
    Streams::new(move || {
        let server = server.clone();
        Box::pin(async move {
            let (near, far) = tokio::io::duplex(1024);
            let (reader, writer) = tokio::io::split(far);
            tokio::spawn(async move { server.serve(reader, writer).await });
            let (reader, writer) = tokio::io::split(near);
            Ok((Box::new(reader) as Reader, Box::new(writer) as Writer))
        })
    })
}

async fn over_http(server: ServerBuilder) -> (HttpServer, Http) {
    let server = server.build().expect("builds").serve_http(([127, 0, 0, 1], 0).into()).await.expect("serves");
    let http = Http::new(format!("http://{}/mcp", server.address()));
    (server, http)
}

/// Every claim holds over streams and over HTTP.
async fn both(test: impl AsyncFn(Client)) {
    let streams = over_streams(server().build().expect("builds"));
    test(Client::builder("s", streams).elicitation().trust_hints().build().expect("builds")).await;
    let (_server, http) = over_http(server()).await;
    test(Client::builder("s", http).elicitation().trust_hints().build().expect("builds")).await;
}

#[tokio::test]
async fn tools_are_served_with_their_hints_values_parts_and_errors() {
    both(async |client| {
        assert_eq!(tool(&client, "s_double").await.options().effect, Effect::Pure);
        let delete = tool(&client, "s_delete").await;
        let hints = delete.options().hints;
        assert_eq!((hints.destructive, hints.open_world), (Some(true), Some(false)));
        assert_eq!(tool(&client, "s_double").await.options().hints, ToolHints::default());
        let distrusting = Client::builder("d", over_streams(server().build().expect("builds")));
        let distrusted = tool(&distrusting.build().expect("builds"), "d_delete").await.options().hints;
        assert_eq!((distrusted.destructive, distrusted.open_world), (Some(true), None));
        let output = delete.spec().output.expect("it says what it gives");
        assert_eq!(output["properties"]["files"]["type"], "integer");
        let deleted = call(&client, "s_delete", json!({})).await.expect("deletes");
        assert_eq!(deleted.as_value(), Some(&json!({"files": 3})));
        let doubled = call(&client, "s_double", json!({"n": 21})).await.expect("doubles");
        assert_eq!(doubled.as_value(), Some(&json!({"twice": 42})));
        let picture = call(&client, "s_picture", json!({})).await.expect("paints");
        let [Part::Text(_), Part::Image(image), Part::Document(sound)] = picture.content() else {
            panic!("{picture:?}")
        };
        assert_eq!((image.mime.as_deref(), sound.is_audio()), (Some("image/png"), true));
        let failed = call(&client, "s_fail", json!({})).await.expect("a result");
        assert!(failed.is_error() && failed.to_text() == "no lion today", "{failed:?}");
        let panicked = call(&client, "s_panic", json!({})).await.expect("a result");
        assert!(panicked.is_error() && panicked.to_text() == "The tool failed.", "{panicked:?}");
        let wrong = call(&client, "s_double", json!({"n": "many"})).await.expect("a result");
        assert!(wrong.is_error() && wrong.to_text().contains("double"), "{wrong:?}");
    })
    .await;
}

#[tokio::test]
async fn each_client_is_a_session_of_its_own_and_its_calls_share_it() {
    let session = from_schema("session", "Names it.", json!({"type": "object"}), async |_: Value, req: ToolRequest| {
        req.cx.ids().session.to_string()
    });
    let server = Server::builder("served").tool(session).build().expect("builds");
    let http = server.serve_http(([127, 0, 0, 1], 0).into()).await.expect("serves");
    let mut sessions = BTreeSet::new();
    for _ in 0..2 {
        let over_http = Http::new(format!("http://{}/mcp", http.address()));
        let streams = Client::builder("s", over_streams(server.clone())).build().expect("builds");
        // Without a handshake, there is no connection over HTTP.
        let over_http = Client::builder("s", over_http).protocol(Protocol::Handshake);
        for client in [streams, over_http.build().expect("builds")] {
            let first = call(&client, "s_session", json!({})).await.expect("tells").to_text();
            assert_eq!(call(&client, "s_session", json!({})).await.expect("tells").to_text(), first);
            sessions.insert(first);
        }
    }
    assert_eq!(sessions.len(), 4);
}

#[tokio::test]
async fn progress_goes_to_the_client_and_cancellation_to_the_tool() {
    both(async |client| {
        let run = run(|_| {});
        let told = progress(run.cx());
        call_in(run.cx(), &client, "s_count", json!({})).await.expect("counts");
        until(|| told.lock().expect("free").len() == 3).await;

        let (waiting, before) = (WAITING.load(Ordering::Acquire), CANCELLED.load(Ordering::Acquire));
        let cancel = CancellationToken::new();
        let stopped = run_with(cancel.clone());
        let called = async { call_in(stopped.cx(), &client, "s_wait", json!({})).await };
        let cancelled = async {
            until(|| WAITING.load(Ordering::Acquire) == waiting + 1).await;
            cancel.cancel();
        };
        let (called, ()) = tokio::join!(called, cancelled);
        assert_eq!(called.expect_err("cancelled").kind(), ErrorKind::Cancelled);
        until(|| CANCELLED.load(Ordering::Acquire) == before + 1).await;
    })
    .await;
}

fn run_with(cancel: CancellationToken) -> agent_core::engine::RunDriver {
    run(|parts: &mut RunParts| parts.cancel = cancel)
}

#[tokio::test]
async fn what_a_tool_asks_is_asked_of_the_clients_user() {
    both(async |client| {
        let waiting = run(|_| {});
        let error = call_in(waiting.cx(), &client, "s_ask", json!({})).await.expect_err("waits");
        assert_eq!(error.kind(), ErrorKind::Interrupted);
        let question = error.questions()[0].clone();
        assert_eq!(question.payload["message"], "Who are you?");
        let (id, answer) = question.answer(json!({"action": "accept", "content": {"answer": "Ada"}}));
        let goes_on = run_as((**waiting.cx().ids()).clone(), |parts: &mut RunParts| {
            parts.answers.insert(id, answer);
        });
        let output = call_in(goes_on.cx(), &client, "s_ask", json!({})).await.expect("goes on");
        assert_eq!(output.to_text(), "hello Ada");
    })
    .await;
    let streams = || over_streams(server().build().expect("builds"));
    let client = Client::builder("s", streams()).build().expect("builds");
    let error = call(&client, "s_ask", json!({})).await.expect_err("an error of the protocol");
    assert!(error.message().contains("your client cannot ask one"), "{error}");
    let client = Client::builder("s", streams()).protocol(Protocol::Handshake).build().expect("builds");
    let refused = call(&client, "s_ask", json!({})).await.expect("a result");
    assert!(refused.is_error() && refused.to_text().contains("your client cannot ask one"), "{refused:?}");
}

#[tokio::test]
async fn an_agent_is_served_as_one_tool() {
    let agent = tower::service_fn(async |request: RunRequest| {
        let agent_core::run::RunInput::Messages(messages) = request.input else { panic!("new messages") };
        let answer = format!("did: {}", messages[0].text());
        let finished = Finished::new(RunIds::root("a", "s"), answer, ExitReason::Text, History::default());
        Ok::<_, Error>(RunEnd::Finished(Box::new(finished)))
    });
    let server = Server::builder("agents").agent(SubAgent::new("helper", "Helps.", agent)).build().expect("builds");
    let client = Client::builder("a", over_streams(server)).build().expect("builds");
    let output = call(&client, "a_helper", json!({"task": "tidy up"})).await.expect("runs");
    assert_eq!(output.to_text(), "did: tidy up");
}

#[tokio::test]
async fn only_who_has_the_token_is_served_and_nothing_shows_it() {
    let (_server, http) = over_http(server().bearer("hush-hush")).await;
    let known = Client::builder("s", http.clone().bearer("hush-hush")).build().expect("builds");
    assert_eq!(names(&known).await.len(), 9);
    assert!(!format!("{known:?}").contains("hush"));
    let unknown = Client::builder("s", http.bearer("hush-hash")).required().build().expect("builds");
    let error = unknown.warm_up().await.expect_err("refused");
    let shown = format!("{error:?} {error}");
    assert!(!shown.contains("hush"), "{shown}");
    let left_out = Client::builder("s", Http::new("http://127.0.0.1:1/?key=hush")).build().expect("builds");
    let run = run(|_| {});
    let tools = left_out.tools(run.cx()).await.expect("goes on");
    let specs: Vec<_> = tools.iter().map(|tool| tool.spec()).collect();
    assert_eq!(specs.iter().map(|spec| &*spec.name).collect::<Vec<_>>(), ["connect_s"]);
    assert!(!specs[0].description.contains("hush"), "{}", specs[0].description);
    let away = Client::builder("s", Http::new("http://127.0.0.1:1/?key=hush")).required().build().expect("builds");
    let shown = format!("{:?}", away.warm_up().await.expect_err("nobody listens"));
    assert!(!shown.contains("hush"), "{shown}");
}

#[tokio::test]
async fn a_server_over_http_that_was_away_is_found_again() {
    let (first, http) = over_http(server()).await;
    let address = first.address();
    let client = Client::builder("s", http).timeout(Duration::from_secs(5)).build().expect("builds");
    call(&client, "s_double", json!({"n": 1})).await.expect("doubles");
    drop(first);
    tokio::time::sleep(Duration::from_millis(50)).await;
    let error = call(&client, "s_double", json!({"n": 1})).await.expect_err("away");
    assert_eq!(error.kind(), ErrorKind::Tool, "{error}");
    let began = std::time::Instant::now();
    let _second = loop {
        match server().build().expect("builds").serve_http(address).await {
            Ok(second) => break second,
            // Another test may have the port for a moment.
            Err(e) => assert!(began.elapsed() < Duration::from_secs(30), "{e}"),
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    };
    let mut last = None;
    for _ in 0..20 {
        last = Some(call(&client, "s_double", json!({"n": 2})).await);
        if last.as_ref().is_some_and(Result::is_ok) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    assert_eq!(last.expect("called").expect("found again").as_value(), Some(&json!({"twice": 4})));
}

#[test]
fn two_tools_of_one_name_are_not_served() {
    let again = from_schema("double", "Again.", json!({"type": "object"}), async |_: Value, _: ToolRequest| "");
    let error = server().tool(again).build().expect_err("twice");
    assert!(error.message().contains("'double'"), "{error}");
    let _: Arc<dyn Toolset> = Arc::new(Client::builder("a", Http::new("http://a.example")).build().expect("builds"));
}

#[tokio::test]
async fn what_a_tool_decided_before_it_asked_is_the_same_after_the_answer() {
    // A client that answers by itself: a server's tool is entered again in one call.
    let (near, far) = tokio::io::duplex(1024);
    let (reader, writer) = tokio::io::split(far);
    let server = server().build().expect("builds");
    tokio::spawn(async move { server.serve(reader, writer).await });
    let client = rmcp::serve_client(Answers, near).await.expect("connects");
    let result = client.call_tool(rmcp::model::CallToolRequestParams::new("decide")).await.expect("called");
    let text = serde_json::to_string(&result).expect("JSON");
    assert!(text.contains("Ada Ada 0 1"), "decided once: {text}");
}

/// Answers every question.
struct Answers;

impl rmcp::ClientHandler for Answers {
    fn get_info(&self) -> rmcp::model::ClientConfig {
        let mut can = rmcp::model::ClientCapabilities::default();
        can.elicitation = Some(rmcp::model::ElicitationCapability::new().with_form(Default::default()));
        rmcp::model::ClientConfig::new(can, rmcp::model::Implementation::new("test", "1"))
    }

    async fn create_elicitation(
        &self,
        _: rmcp::model::ElicitRequestParams,
        _: rmcp::service::RequestContext<rmcp::RoleClient>,
    ) -> Result<rmcp::model::ElicitResult, rmcp::ErrorData> {
        let mut answer = rmcp::model::ElicitResult::new(rmcp::model::ElicitationAction::Accept);
        answer.content = Some(json!({"answer": "Ada"}));
        Ok(answer)
    }
}
