//! Revision 2026-07-28: no handshake, self-contained requests, input by results, tasks, subscriptions.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use agent_core::{
    Answer, ErrorKind, ToolOutput,
    engine::{RunDriver, RunParts},
    testing::{ScriptedModel, Turn},
};
use agent_tools::mcp::{Client, Elicitation, ListChange, Protocol};
use futures::StreamExt;
use serde_json::{Value, json};

use super::support::{
    scripted::{Scripted, discovered, elicitation, input, result, text, tools},
    *,
};

const TRACE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

fn meta(asked: &Value, key: &str) -> Value {
    asked["params"]["_meta"][format!("io.modelcontextprotocol/{key}")].clone()
}

#[tokio::test]
async fn a_server_without_handshake_is_found_by_a_probe_and_each_request_says_what_the_client_is() {
    let server = Scripted::stateless(|_| vec![text("done")]);
    let client = server.builder().root("file:///srv").build().expect("builds");
    let run = run(|parts: &mut RunParts| {
        let mut ids = (*parts.ids).clone();
        ids.traceparent = Some(TRACE.into());
        parts.ids = ids.into();
    });
    assert_eq!(call_in(run.cx(), &client, "s_work", json!({})).await.expect("called").to_text(), "done");
    assert_eq!(client.instructions().await.expect("told").as_deref(), Some("Be kind."));
    assert!(client.is_healthy().await, "without a ping");
    assert_eq!(server.methods(), ["server/discover", "tools/list", "tools/call", "server/discover"]);
    for asked in ["server/discover", "tools/list", "tools/call"].map(|method| server.seen(method)[0].clone()) {
        assert_eq!(meta(&asked, "protocolVersion"), "2026-07-28", "{asked}");
        assert!(meta(&asked, "clientInfo")["name"].is_string(), "{asked}");
        let can = meta(&asked, "clientCapabilities");
        assert!(can["roots"].is_object() && can.get("elicitation").is_none(), "{asked}");
        assert!(can["extensions"]["io.modelcontextprotocol/tasks"].is_object(), "{asked}");
    }
    let called = &server.seen("tools/call")[0];
    assert_eq!((&called["params"]["_meta"]["traceparent"], meta(called, "logLevel")), (&json!(TRACE), json!("info")));
}

#[tokio::test]
async fn an_older_server_gets_the_handshake_however_it_refuses_the_probe_and_no_further_probe() {
    let refused = json!({"error": {"code": -32601, "message": "Method not found"}});
    let unsupported = json!({"error": {"code": -32022, "message": "no", "data": {"supported": ["2025-11-25"]}}});
    for (name, answer, connections) in [
        ("an error", Some(vec![refused]), 1),
        ("another revision", Some(vec![unsupported]), 2),
        ("an empty result", Some(vec![result(json!({}))]), 2),
        ("the end of the connection", None, 2),
    ] {
        let server = Scripted::new(move |asked| match asked["method"].as_str().unwrap_or_default() {
            "server/discover" => answer.clone(),
            "initialize" => {
                let can = json!({"tools": {}});
                let info = json!({"name": "s", "version": "1"});
                let version = &asked["params"]["protocolVersion"];
                Some(vec![result(json!({"protocolVersion": version, "capabilities": can, "serverInfo": info}))])
            }
            "tools/list" => Some(vec![tools(0)]),
            _ => Some(vec![text("done")]),
        });
        let client = server.builder().build().expect("builds");
        assert_eq!(call(&client, "s_work", json!({})).await.expect("called").to_text(), "done", "{name}");
        assert_eq!(server.connections(), connections, "{name}");
        assert!(meta(&server.seen("tools/call")[0], "protocolVersion").is_null(), "{name}");
        agent_core::Toolset::close(&client).await.expect("closes");
        assert_eq!(call(&client, "s_work", json!({})).await.expect("called").to_text(), "done", "{name}");
        assert_eq!((server.seen("server/discover").len(), server.seen("initialize").len()), (1, 2), "{name}");
    }
}

#[tokio::test]
async fn a_client_may_be_bound_to_one_revision() {
    let server = Scripted::stateless(|_| vec![text("done")]);
    let old = server.builder().protocol(Protocol::Handshake).build().expect("builds");
    call(&server.builder().protocol(Protocol::Stateless).build().expect("builds"), "s_work", json!({}))
        .await
        .expect("called");
    assert!(old.offered().await.is_err());
    assert_eq!(server.seen("initialize").len(), 1);
}

/// Makes the call of a resumed run.
async fn resumed(run: &RunDriver, client: &Client) -> agent_core::Result<ToolOutput> {
    let tool = tool(client, "s_work").await;
    let mut request = request(run.cx(), &*tool, json!({}));
    request.resumed = true;
    tool.call(request).await
}

/// A server that asks for a name, and greets.
fn greeter() -> Scripted {
    Scripted::stateless(|asked| {
        let params = &asked["params"];
        match params["requestState"].as_str() {
            None => vec![input(&json!({"who": elicitation("Who are you?")}), "state-1")],
            Some("state-1") => {
                let who = &params["inputResponses"]["who"];
                vec![text(format!("{} {}", who["action"].as_str().unwrap_or("?"), who["content"]["name"]))]
            }
            Some(other) => vec![text(format!("unknown {other}"))],
        }
    })
}

#[tokio::test]
async fn an_input_that_a_result_requests_is_sent_with_the_state_in_a_further_request() {
    let server = greeter();
    let client = server.builder().elicitation_by(async |asked: Elicitation| {
        assert_eq!((&*asked.server, &*asked.message), ("s", "Who are you?"));
        Ok(Some(json!({"name": "Ada"})))
    });
    let client = client.build().expect("builds");
    assert_eq!(call(&client, "s_work", json!({"a": 1})).await.expect("called").to_text(), r#"accept "Ada""#);
    let calls = server.seen("tools/call");
    assert_eq!(calls.len(), 2);
    assert_ne!(calls[0]["id"], calls[1]["id"]);
    assert_eq!(calls[1]["params"]["arguments"], json!({"a": 1}));
    let mute = server.builder().build().expect("builds");
    assert_eq!(call(&mute, "s_work", json!({})).await.expect("called").to_text(), "decline null");
}

#[tokio::test]
async fn a_suspended_call_continues_with_the_state_instead_of_its_beginning() {
    let server = greeter();
    let client = server.builder().elicitation().build().expect("builds");
    let before = run(|_| {});
    let error = call_in(before.cx(), &client, "s_work", json!({})).await.expect_err("waits");
    let [question] = error.questions() else { panic!("{error}") };
    let (id, answer) = question.answer(json!({"action": "accept", "content": {"name": "Ada"}}));
    let stood = before.engine().log().at_rest();
    // Another process.
    let elsewhere = server.builder().elicitation().build().expect("builds");
    let after = run_as((**before.cx().ids()).clone(), |parts: &mut RunParts| {
        parts.log.adopt(&stood);
        parts.answers.insert(id, answer);
    });
    let called = resumed(&after, &elsewhere).await.expect("continues");
    assert_eq!(called.to_text(), r#"accept "Ada""#);
    let states: Vec<_> =
        server.seen("tools/call").iter().map(|asked| asked["params"]["requestState"].clone()).collect();
    assert_eq!(states, [Value::Null, json!("state-1")]);
}

#[tokio::test]
async fn all_questions_of_a_result_are_asked_together() {
    let server = Scripted::stateless(|asked| match asked["params"]["requestState"].as_str() {
        None => vec![input(&json!({"a": elicitation("A?"), "b": elicitation("B?")}), "s")],
        Some(_) => vec![text(asked["params"]["inputResponses"].to_string())],
    });
    let client = server.builder().elicitation().build().expect("builds");
    let before = run(|_| {});
    call_in(before.cx(), &client, "s_work", json!({})).await.expect_err("waits");
    let questions = before.take_questions();
    assert_eq!(questions.len(), 2);
    let stood = before.engine().log().at_rest();
    let after = run_as((**before.cx().ids()).clone(), |parts: &mut RunParts| {
        parts.log.adopt(&stood);
        for question in &questions {
            let mut answer =
                Answer::from(json!({"action": "accept", "content": {"name": question.payload["message"]}}));
            answer.digest.clone_from(&question.digest);
            parts.answers.insert(question.id.clone(), answer);
        }
    });
    let told = resumed(&after, &client).await.expect("continues").to_text();
    assert_eq!(server.seen("tools/call").len(), 2);
    assert!(told.contains(r#""name":"A?""#) && told.contains(r#""name":"B?""#), "{told}");
}

#[tokio::test]
async fn a_result_may_request_a_model_and_roots_and_the_run_pays_for_the_model() {
    let server = Scripted::stateless(|asked| match asked["params"]["requestState"].as_str() {
        None => {
            let message = json!({"role": "user", "content": {"type": "text", "text": "What is 6 x 7?"}});
            let think = json!({"method": "sampling/createMessage", "params": {"messages": [message], "maxTokens": 9}});
            vec![input(&json!({"think": think, "where": {"method": "roots/list"}}), "s")]
        }
        Some(_) => {
            let given = &asked["params"]["inputResponses"];
            vec![text(format!("{} {}", given["think"]["content"], given["where"]["roots"][0]["uri"]))]
        }
    });
    let model = ScriptedModel::new([Turn::text("42")]);
    let client = server.builder().sampling(model.clone()).root("file:///srv").build().expect("builds");
    let told = call(&client, "s_work", json!({})).await.expect("called").to_text();
    assert!(told.contains("42") && told.contains("file:///srv"), "{told}");
    model.assert_finished();
    let without = call(&server.builder().build().expect("builds"), "s_work", json!({})).await.expect_err("no model");
    assert!(without.message().contains("requires a model"), "{without}");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_requests_input_without_end_is_given_up() {
    let server = Scripted::stateless(|_| vec![result(json!({"resultType": "input_required", "requestState": "s"}))]);
    let client = server.builder().timeout(Duration::from_secs(600)).build().expect("builds");
    let error = call(&client, "s_work", json!({})).await.expect_err("ends");
    assert!(error.message().contains("requested input 100 times"), "{error}");
    assert_eq!(server.seen("tools/call").len(), 100);
}

/// The state of a task, with further fields.
fn task(status: &str, more: &Value) -> Value {
    let mut task = json!({
        "resultType": "complete", "taskId": "t1", "status": status, "createdAt": "2026-01-01T00:00:00Z",
        "lastUpdatedAt": "2026-01-01T00:00:00Z", "ttlMs": 60_000, "pollIntervalMs": 1000,
    });
    for (key, value) in more.as_object().into_iter().flatten() {
        task[key] = value.clone();
    }
    result(task)
}

#[tokio::test(start_paused = true)]
async fn a_task_is_polled_until_it_ends_and_its_requests_are_answered_once() {
    let polls = AtomicUsize::new(0);
    let server = Scripted::stateless(move |asked| {
        let done = json!({"result": {"content": [{"type": "text", "text": "built"}]}});
        let asks = json!({"inputRequests": {"who": elicitation("Who are you?")}});
        vec![match asked["method"].as_str().unwrap_or_default() {
            "tools/call" => task("working", &json!({"resultType": "task"})),
            "tasks/get" => match polls.fetch_add(1, Ordering::AcqRel) {
                0 => task("working", &json!({"statusMessage": "half", "lastUpdatedAt": "2026-01-01T00:00:01Z"})),
                1 | 2 => task("input_required", &asks),
                _ => task("completed", &done),
            },
            _ => result(json!({"resultType": "complete"})),
        }]
    });
    let client = server.builder().elicitation_by(async |_| Ok(Some(json!({"name": "Ada"})))).build().expect("builds");
    let run = run(|_| {});
    let told = progress(run.cx());
    assert_eq!(call_in(run.cx(), &client, "s_work", json!({})).await.expect("called").to_text(), "built");
    assert_eq!(told.lock().expect("free")[0], json!({"task": "working", "message": "half"}));
    let updates = server.seen("tasks/update");
    assert_eq!(updates.len(), 1, "{updates:?}");
    assert_eq!(updates[0]["params"]["inputResponses"]["who"]["content"]["name"], "Ada");
    assert!(server.seen("tasks/cancel").is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_task_that_fails_is_an_error_and_one_that_is_given_up_is_cancelled() {
    let server = Scripted::stateless(|asked| {
        let is_bad = asked["params"]["arguments"]["bad"] == true;
        vec![match asked["method"].as_str().unwrap_or_default() {
            "tools/call" if is_bad => task("working", &json!({"resultType": "task", "taskId": "bad"})),
            "tools/call" => task("working", &json!({"resultType": "task"})),
            "tasks/get" if asked["params"]["taskId"] == "bad" => {
                task("failed", &json!({"taskId": "bad", "error": {"code": -32603, "message": "no disk"}}))
            }
            "tasks/get" => task("working", &json!({})),
            _ => result(json!({"resultType": "complete"})),
        }]
    });
    let client = server.builder().timeout(Duration::from_secs(10)).build().expect("builds");
    let error = call(&client, "s_work", json!({"bad": true})).await.expect_err("fails");
    assert!(error.message().contains("no disk"), "{error}");
    let error = call(&client, "s_work", json!({})).await.expect_err("takes too long");
    assert!(error.kind() == ErrorKind::Tool && error.message().contains("did not answer"), "{error}");
    until(|| !server.seen("tasks/cancel").is_empty()).await;
    assert_eq!(server.seen("tasks/cancel")[0]["params"]["taskId"], "t1");
}

/// A server that announces changed tools in each call, and a changed resource to whom subscribes to
/// it.
fn announcer() -> Scripted {
    let listener = Mutex::new(Value::Null);
    Scripted::new(move |asked| {
        let note = |name: &str, mut params: Value| {
            let id = listener.lock().expect("free").clone();
            params["_meta"] = json!({"io.modelcontextprotocol/subscriptionId": id});
            json!({"method": format!("notifications/{name}"), "params": params})
        };
        Some(match asked["method"].as_str().unwrap_or_default() {
            "server/discover" => vec![discovered(&json!({
                "tools": {"listChanged": true}, "prompts": {"listChanged": true},
                "resources": {"listChanged": true, "subscribe": true},
            }))],
            "tools/list" => vec![tools(600_000)],
            "subscriptions/listen" => {
                *listener.lock().expect("free") = asked["id"].clone();
                let mut accepted = asked["params"]["notifications"].clone();
                if let Some(uris) = accepted.get_mut("resourceSubscriptions").and_then(Value::as_array_mut) {
                    uris.retain(|uri| uri != "zoo://unicorn");
                }
                let uri = accepted["resourceSubscriptions"][0].clone();
                let mut notes = vec![note("subscriptions/acknowledged", json!({"notifications": accepted}))];
                if uri.is_string() {
                    notes.push(note("resources/updated", json!({"uri": uri})));
                }
                notes
            }
            _ => vec![note("tools/list_changed", json!({})), text("done")],
        })
    })
}

#[tokio::test]
async fn changes_arrive_by_a_subscription_that_covers_what_the_server_announces_and_the_program_wants() {
    let server = announcer();
    let client = server.builder().build().expect("builds");
    let (mut lists, mut resources) = (Box::pin(client.list_changes()), Box::pin(client.resource_updates()));
    client.offered().await.expect("listed");
    until(|| !server.seen("subscriptions/listen").is_empty()).await;
    let before = server.seen("tools/list").len();
    call(&client, "s_work", json!({})).await.expect("called");
    assert_eq!(lists.next().await, Some(ListChange::Tools));
    client.offered().await.expect("listed again");
    assert_eq!(server.seen("tools/list").len(), before + 1, "though the list holds for ten minutes");
    client.subscribe("zoo://lion").await.expect("subscribed");
    assert_eq!(resources.next().await.as_deref(), Some("zoo://lion"));
    let refused = client.subscribe("zoo://unicorn").await.expect_err("there is none");
    assert!(refused.message().contains("takes no subscription"), "{refused}");
    client.unsubscribe("zoo://lion").await.expect("unsubscribed");
    let wanted = server.seen("subscriptions/listen");
    let of = |place: usize| wanted[place]["params"]["notifications"].clone();
    assert_eq!((&of(0)["toolsListChanged"], of(0).get("resourceSubscriptions")), (&json!(true), None));
    assert_eq!(of(1)["resourceSubscriptions"], json!(["zoo://lion"]));
    assert_eq!(of(wanted.len() - 1).get("resourceSubscriptions"), None);
    assert!(server.seen("resources/subscribe").is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_list_is_fetched_again_after_the_time_for_which_it_holds_and_not_before_a_minute() {
    let server = Scripted::stateless(|_| vec![text("done")]);
    let client = server.builder().build().expect("builds");
    client.offered().await.expect("listed");
    tokio::time::advance(Duration::from_secs(59)).await;
    client.offered().await.expect("known");
    assert_eq!(server.seen("tools/list").len(), 1);
    tokio::time::advance(Duration::from_secs(2)).await;
    client.offered().await.expect("listed");
    assert_eq!(server.seen("tools/list").len(), 2);
}

#[tokio::test]
async fn schemas_and_structured_content_of_any_form_are_taken() {
    let server = Scripted::new(|asked| {
        let schema = json!({"anyOf": [{"type": "object", "required": ["a"]}, {"type": "object", "required": ["b"]}]});
        let work = json!({"name": "work", "inputSchema": schema, "outputSchema": {"type": "array", "items": {"type": "integer"}}});
        Some(vec![match asked["method"].as_str().unwrap_or_default() {
            "server/discover" => discovered(&json!({"tools": {}})),
            "tools/list" => {
                result(json!({"resultType": "complete", "tools": [work], "ttlMs": 0, "cacheScope": "private"}))
            }
            _ => result(
                json!({"resultType": "complete", "content": [], "structuredContent": asked["params"]["arguments"]["a"]}),
            ),
        }])
    });
    let client = server.builder().build().expect("builds");
    let called = call(&client, "s_work", json!({"a": [1, 2]})).await.expect("called");
    assert_eq!(called.as_value(), Some(&json!([1, 2])));
    let wrong = call(&client, "s_work", json!({"a": ["x"]})).await.expect_err("no integers");
    assert!(wrong.message().contains("does not fit its own output schema"), "{wrong}");
}

#[tokio::test]
async fn a_prompt_and_a_resource_may_be_requested_in_several_rounds() {
    let server = Scripted::new(|asked| {
        let state = asked["params"]["requestState"].as_str();
        let roots = json!({"where": {"method": "roots/list"}, "who": elicitation("Who are you?")});
        let given = asked["params"]["inputResponses"].to_string();
        Some(vec![match (asked["method"].as_str().unwrap_or_default(), state) {
            ("server/discover", _) => discovered(&json!({"prompts": {}, "resources": {}})),
            ("prompts/get" | "resources/read", None) => input(&roots, "s"),
            ("prompts/get", Some(_)) => {
                let message = json!({"role": "user", "content": {"type": "text", "text": given}});
                result(json!({"resultType": "complete", "messages": [message]}))
            }
            _ => result(
                json!({"resultType": "complete", "contents": [{"uri": "a://b", "text": given}], "ttlMs": 0, "cacheScope": "private"}),
            ),
        }])
    });
    let client = server.builder().root("file:///srv").build().expect("builds");
    let prompt = client.prompt("p", []).await.expect("given")[0].text();
    assert!(prompt.contains("file:///srv") && prompt.contains("decline"), "{prompt}");
    let asking = server.builder().elicitation_by(async |_| Ok(Some(json!({"name": "Ada"})))).build().expect("builds");
    let read = asking.read_resource("a://b").await.expect("read");
    assert!(read[0].as_text().is_some_and(|text| text.contains("Ada")), "{read:?}");
}

#[tokio::test]
async fn calls_of_a_server_without_handshake_run_concurrently_though_it_may_ask() {
    let (server, open) = (greeter(), Arc::new(AtomicUsize::new(0)));
    let both = Arc::new(tokio::sync::Barrier::new(2));
    let counted = open.clone();
    let client = server.builder().elicitation_by(move |_: Elicitation| {
        let (both, open) = (both.clone(), counted.clone());
        async move {
            both.wait().await;
            open.fetch_add(1, Ordering::AcqRel);
            Ok(Some(json!({"name": "Ada"})))
        }
    });
    let client = client.build().expect("builds");
    let (one, two) = tokio::join!(call(&client, "s_work", json!({})), call(&client, "s_work", json!({})));
    assert_eq!((one.is_ok(), two.is_ok(), open.load(Ordering::Acquire)), (true, true, 2));
}
