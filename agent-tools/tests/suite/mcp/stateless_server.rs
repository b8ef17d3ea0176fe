//! The server with clients of revision 2026-07-28: input by results, subscriptions, logs by request.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use agent_core::{
    Ask, Error, History, Message, ModelRequest, RunEnd, RunIds, RunRequest, SubAgent, ToolRequest,
    engine::RunParts,
    run::Finished,
    testing::{ScriptedModel, Turn},
};
use agent_tools::{
    from_schema,
    mcp::{Caller, Client, Elicitation, Http, ListChange, LogLevel, Protocol, Resource, Server, ServerBuilder},
};
use futures::StreamExt;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream};

use super::{served::over_streams, support::*};

fn any() -> Value {
    json!({"type": "object", "properties": {"n": {"type": "integer"}}})
}

fn name_schema() -> Value {
    json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]})
}

/// A server whose tool asks twice, and counts how often it decides.
fn asking(decided: &Arc<AtomicUsize>) -> ServerBuilder {
    let decided = decided.clone();
    let ask = from_schema("ask", "Asks.", any(), move |_: Value, req: ToolRequest| {
        let decided = decided.clone();
        async move {
            let number = req.decide("n", async { Ok(json!(decided.fetch_add(1, Ordering::AcqRel))) }).await?;
            let who = Ask::new("who", json!({"message": "Who are you?"})).schema(name_schema());
            let who: Value = req.ask_with(who)?.parse()?;
            let colour: String = req.ask("colour", json!({"message": "Which colour?"}))?;
            Ok::<_, Error>(format!("{} {colour} {number}", who["name"]))
        }
    });
    Server::builder("served").tool(ask)
}

#[tokio::test]
async fn questions_of_a_tool_are_results_and_their_answers_enter_it_again_with_its_decisions() {
    let decided = Arc::default();
    let client = Client::builder("c", over_streams(asking(&decided).build().expect("builds")))
        .protocol(Protocol::Stateless)
        .elicitation_by(async |asked: Elicitation| {
            Ok(Some(if asked.message.contains("Who") { json!({"name": "Ada"}) } else { json!({"answer": "red"}) }))
        });
    let told = call(&client.build().expect("builds"), "c_ask", json!({})).await.expect("called").to_text();
    assert_eq!(told, r#""Ada" red 0"#);
    assert_eq!(decided.load(Ordering::Acquire), 1);
}

/// One client's end of a connection, without a client library.
struct Raw(BufReader<DuplexStream>, u64);

impl Raw {
    fn new(server: &Server) -> Self {
        let (near, far) = tokio::io::duplex(1 << 16);
        let (reader, writer) = tokio::io::split(far);
        let server = server.clone();
        tokio::spawn(async move { server.serve(reader, writer).await });
        Self(BufReader::new(near), 0)
    }

    /// Sends a request; returns its answer.
    async fn ask(&mut self, method: &str, mut params: Value) -> Value {
        self.1 += 1;
        let can = json!({"elicitation": {"form": {}}, "sampling": {}, "roots": {}});
        if params.get("_meta").is_none() {
            params["_meta"] = json!({});
        }
        params["_meta"]["io.modelcontextprotocol/protocolVersion"] = "2026-07-28".into();
        if params["_meta"].get("io.modelcontextprotocol/clientCapabilities").is_none() {
            params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = can;
        }
        let asked = json!({"jsonrpc": "2.0", "id": self.1, "method": method, "params": params});
        self.0.get_mut().write_all((asked.to_string() + "\n").as_bytes()).await.expect("sent");
        loop {
            let mut line = String::new();
            self.0.read_line(&mut line).await.expect("read");
            let told: Value = serde_json::from_str(&line).expect("JSON");
            if told["id"] == self.1 {
                return told;
            }
        }
    }

    async fn call(&mut self, more: &Value) -> Value {
        let mut params = json!({"name": "ask", "arguments": {"n": 1}});
        for (key, value) in more.as_object().into_iter().flatten() {
            params[key] = value.clone();
        }
        self.ask("tools/call", params).await
    }
}

#[tokio::test]
async fn a_state_holds_once_for_the_same_call_and_what_is_missing_or_invalid_is_requested_again() {
    let server = asking(&Arc::default()).build().expect("builds");
    let mut raw = Raw::new(&server);
    let first = raw.call(&json!({})).await;
    assert_eq!(first["result"]["resultType"], "input_required", "{first}");
    let request = &first["result"]["inputRequests"]["who"];
    assert_eq!(
        (&request["method"], &request["params"]["message"]),
        (&json!("elicitation/create"), &json!("Who are you?"))
    );
    let state = first["result"]["requestState"].clone();
    for wrong in [json!({"requestState": "made-up"}), json!({"requestState": state, "arguments": {"n": 2}})] {
        let refused = raw.call(&wrong).await;
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
    }
    // Another connection may bring the state.
    let mut other = Raw::new(&server);
    let answered = |content: Value| json!({"who": {"action": "accept", "content": content}});
    let again = other.call(&json!({"requestState": state, "inputResponses": {"other": {}}})).await;
    assert_eq!(again["result"]["resultType"], "input_required", "{again}");
    let again = other
        .call(&json!({"requestState": again["result"]["requestState"], "inputResponses": answered(json!({"name": 7}))}))
        .await;
    assert!(again["result"]["inputRequests"]["who"].is_object(), "{again}");
    let state = again["result"]["requestState"].clone();
    let valid = json!({"requestState": state, "inputResponses": answered(json!({"name": "Ada"}))});
    let second = other.call(&valid).await;
    assert!(second["result"]["inputRequests"]["colour"].is_object(), "{second}");
    let spent = other.call(&valid).await;
    assert_eq!(spent["error"]["code"], -32602, "{spent}");
    let declined =
        json!({"requestState": second["result"]["requestState"], "inputResponses": {"colour": {"action": "decline"}}});
    let ended = other.call(&declined).await;
    assert!(ended["result"]["isError"] == true && ended.to_string().contains("did not answer"), "{ended}");
}

#[tokio::test]
async fn a_client_that_cannot_ask_people_is_told_so() {
    let mut raw = Raw::new(&asking(&Arc::default()).build().expect("builds"));
    let meta = json!({"io.modelcontextprotocol/clientCapabilities": {}});
    let told = raw.call(&json!({ "_meta": meta })).await;
    let required = json!({"requiredCapabilities": {"elicitation": {}}});
    assert_eq!((&told["error"]["code"], &told["error"]["data"]), (&json!(-32021), &required));
    assert!(told.to_string().contains("cannot ask one"), "{told}");
}

#[tokio::test]
async fn a_tool_that_calls_the_clients_model_and_lists_its_roots_requests_both_at_once() {
    let entered = Arc::new(AtomicUsize::new(0));
    let counted = entered.clone();
    let think = from_schema("think", "Thinks.", any(), move |_: Value, req: ToolRequest| {
        counted.fetch_add(1, Ordering::AcqRel);
        async move {
            let caller = req.cx.resources().get::<Caller>()?;
            let model = caller.model()?;
            let mut request = ModelRequest::new(req.cx.clone());
            request.messages = History::from_messages([Message::user("What is 6 x 7?")])?;
            let (said, roots) = tokio::join!(req.cx.call_model(&model, request), caller.roots());
            Ok::<_, Error>(format!("{} {}", said?.message.text(), roots?.join(" ")))
        }
    });
    let model = ScriptedModel::new([Turn::text("42")]);
    let server = Server::builder("served").tool(think).build().expect("builds");
    for protocol in [Protocol::Stateless, Protocol::Handshake] {
        let before = entered.load(Ordering::Acquire);
        let model = model.clone();
        let client = Client::builder("c", over_streams(server.clone())).protocol(protocol);
        let client = client.sampling(model).root("file:///srv").build().expect("builds");
        if protocol == Protocol::Stateless {
            let told = call(&client, "c_think", json!({})).await.expect("called").to_text();
            assert_eq!((&*told, entered.load(Ordering::Acquire) - before), ("42 file:///srv", 2));
        }
    }
    model.assert_finished();
}

#[tokio::test]
async fn the_question_of_an_agent_is_a_result_and_its_run_resumes() {
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = runs.clone();
    let agent = tower::service_fn(move |request: RunRequest| {
        let counted = counted.clone();
        async move {
            counted.fetch_add(1, Ordering::AcqRel);
            let ids = RunIds::root("agent", "s");
            let (trace, resumed) =
                (request.traceparent.clone(), matches!(request.input, agent_core::run::RunInput::Resume { .. }));
            if !resumed {
                assert_eq!(trace.as_deref(), Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"));
                let mut checkpoint = run(|parts: &mut RunParts| parts.ids = ids.into()).engine().log().at_rest();
                checkpoint.questions =
                    vec![agent_core::run::Question::new("q", "who", json!({"message": "Who are you?"}))];
                return Ok(RunEnd::Interrupted(Box::new(checkpoint)));
            }
            let agent_core::run::RunInput::Resume { answers, .. } = request.input else { unreachable!() };
            let answer = answers.into_values().map(|answer| answer.value.to_string()).collect::<String>();
            let reason = agent_core::ExitReason::Text;
            Ok::<_, Error>(RunEnd::Finished(Box::new(Finished::new(ids, answer, reason, History::default()))))
        }
    });
    let server = Server::builder("served").agent(SubAgent::new("helper", "Helps.", agent)).build().expect("builds");
    let client = Client::builder("c", over_streams(server)).protocol(Protocol::Stateless);
    let client = client.elicitation_by(async |_| Ok(Some(json!({"answer": "Ada"})))).build().expect("builds");
    let cx = run(|parts: &mut RunParts| {
        let mut ids = (*parts.ids).clone();
        ids.traceparent = Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".into());
        parts.ids = ids.into();
    });
    let told = call_in(cx.cx(), &client, "c_helper", json!({"task": "greet"})).await.expect("called").to_text();
    assert_eq!((&*told, runs.load(Ordering::Acquire)), (r#""Ada""#, 2));
}

#[tokio::test]
async fn logs_go_to_a_request_that_sets_a_level() {
    let logs = from_schema("ask", "Logs.", any(), async |_: Value, req: ToolRequest| {
        let caller = req.cx.resources().get::<Caller>()?;
        caller.log(LogLevel::Info, "working");
        caller.log(LogLevel::Error, "failing");
        Ok::<_, Error>("logged")
    });
    let server = Server::builder("served").tool(logs).build().expect("builds");
    for (level, wanted) in [(None, 0), (Some("warning"), 1), (Some("debug"), 2)] {
        let (near, far) = tokio::io::duplex(1 << 16);
        let (reader, writer) = tokio::io::split(far);
        let served = server.clone();
        tokio::spawn(async move { served.serve(reader, writer).await });
        let mut stream = BufReader::new(near);
        let mut meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}});
        if let Some(level) = level {
            meta["io.modelcontextprotocol/logLevel"] = level.into();
        }
        let asked = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "ask", "arguments": {}, "_meta": meta}});
        stream.get_mut().write_all((asked.to_string() + "\n").as_bytes()).await.expect("sent");
        let mut told = 0;
        loop {
            let mut line = String::new();
            stream.read_line(&mut line).await.expect("read");
            let message: Value = serde_json::from_str(&line).expect("JSON");
            if message["id"] == 1 {
                break;
            }
            told += usize::from(message["method"] == "notifications/message");
        }
        assert_eq!(told, wanted, "{level:?}");
    }
}

#[tokio::test]
async fn a_listener_is_told_of_changed_lists_and_of_the_resources_that_it_names() {
    let with = |names: &[&str]| {
        let tool = |name: &&str| from_schema(*name, "Works.", any(), async |_: Value, _: ToolRequest| "done");
        let server = Server::builder("served").resource(Resource::new("a://b", "b"), async |_| "content");
        names.iter().map(tool).fold(server, ServerBuilder::tool)
    };
    let server = with(&["one"]).build().expect("builds");
    let serving = server.serve_http(([127, 0, 0, 1], 0).into()).await.expect("serves");
    let at = Http::new(format!("http://{}/mcp", serving.address()));
    let client = Client::builder("c", at).protocol(Protocol::Stateless).build().expect("builds");
    let (mut lists, mut updates) = (Box::pin(client.list_changes()), Box::pin(client.resource_updates()));
    assert_eq!(names(&client).await, ["c_one"]);
    client.subscribe("a://b").await.expect("subscribed");
    let updated = async {
        loop {
            server.resource_updated("a://b");
            tokio::select! {
                uri = updates.next() => return uri,
                () = tokio::time::sleep(Duration::from_millis(20)) => {}
            }
        }
    };
    assert_eq!(tokio::time::timeout(Duration::from_secs(20), updated).await.expect("told").as_deref(), Some("a://b"));
    server.replace(with(&["one", "two"])).expect("replaced");
    let change = tokio::time::timeout(Duration::from_secs(20), lists.next()).await.expect("told");
    assert_eq!(change, Some(ListChange::Tools));
    assert_eq!(names(&client).await, ["c_one", "c_two"]);
}

#[tokio::test]
async fn a_question_over_http_needs_no_session() {
    let decided = Arc::default();
    let serving =
        asking(&decided).build().expect("builds").serve_http(([127, 0, 0, 1], 0).into()).await.expect("serves");
    let at = Http::new(format!("http://{}/mcp", serving.address()));
    let client = Client::builder("c", at).elicitation_by(async |asked: Elicitation| {
        Ok(Some(if asked.message.contains("Who") { json!({"name": "Ada"}) } else { json!({"answer": "red"}) }))
    });
    let told = call(&client.build().expect("builds"), "c_ask", json!({})).await.expect("called").to_text();
    assert_eq!((&*told, decided.load(Ordering::Acquire)), (r#""Ada" red 0"#, 1));
}
