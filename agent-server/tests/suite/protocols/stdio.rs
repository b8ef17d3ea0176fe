//! Protocols of a single client over two streams: ACP and JSON lines.

use agent::{
    Agent, RunEnd, RunRequest,
    tools::{Stdio, peers::AcpAgent},
};
use agent_server::Server;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf, split};

use super::scenes::actor;

/// Client with a server of its own.
struct Client {
    lines: tokio::io::Lines<BufReader<ReadHalf<DuplexStream>>>,
    writer: WriteHalf<DuplexStream>,
    serving: tokio::task::JoinHandle<agent::Result<()>>,
}

impl Client {
    fn acp(server: &Server) -> Self {
        let server = server.clone();
        Self::new(async move |ours| {
            let (reader, writer) = split(ours);
            server.serve_acp("actor", reader, writer).await
        })
    }

    fn json_lines(server: &Server) -> Self {
        let server = server.clone();
        Self::new(async move |ours| {
            let (reader, writer) = split(ours);
            server.serve_json_lines("actor", reader, writer).await
        })
    }

    fn new<F>(serve: impl FnOnce(DuplexStream) -> F) -> Self
    where
        F: Future<Output = agent::Result<()>> + Send + 'static,
    {
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let serving = tokio::spawn(serve(theirs));
        let (reader, writer) = split(ours);
        Self { lines: BufReader::new(reader).lines(), writer, serving }
    }

    async fn say(&mut self, message: &Value) {
        self.writer.write_all(format!("{message}\n").as_bytes()).await.expect("heard");
    }

    async fn hear(&mut self) -> Value {
        let line = self.lines.next_line().await.expect("a line").expect("the server is there");
        serde_json::from_str(&line).expect("JSON")
    }

    /// Sends a request and reads everything up to its response; grants or rejects permission
    /// requests.
    async fn ask(&mut self, id: u64, method: &str, params: Value, allow: bool) -> (Vec<Value>, Value) {
        self.say(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await;
        let mut heard = Vec::new();
        loop {
            let message = self.hear().await;
            if message["method"] == "session/request_permission" {
                let option = if allow { "allow" } else { "reject" };
                let outcome = json!({"outcome": {"outcome": "selected", "optionId": option}});
                self.say(&json!({"jsonrpc": "2.0", "id": message["id"], "result": outcome})).await;
            }
            if message.get("method").is_none() && message["id"] == id && message.get("event").is_none() {
                return (heard, message);
            }
            heard.push(message);
        }
    }

    async fn prompt(&mut self, id: u64, session: &str, text: &str, allow: bool) -> (Vec<Value>, Value) {
        let params = json!({"sessionId": session, "prompt": [{"type": "text", "text": text}]});
        self.ask(id, "session/prompt", params, allow).await
    }

    async fn leave(self) {
        drop((self.writer, self.lines));
        self.serving.await.expect("no panic").expect("served");
    }
}

fn server() -> Server {
    Server::builder().agent(actor()).build().expect("builds")
}

/// Returns the text of the updates of this kind.
fn said(heard: &[Value], kind: &str) -> String {
    let updates = heard.iter().map(|message| &message["params"]["update"]);
    updates
        .filter(|update| update["sessionUpdate"] == kind)
        .filter_map(|update| update["content"]["text"].as_str())
        .collect()
}

fn of<'a>(heard: &'a [Value], kind: &str) -> Vec<&'a Value> {
    heard.iter().map(|message| &message["params"]["update"]).filter(|update| update["sessionUpdate"] == kind).collect()
}

async fn opened(client: &mut Client) -> String {
    let hello = client.ask(1, "initialize", json!({"protocolVersion": 1, "clientCapabilities": {}}), true).await.1;
    assert_eq!(
        (&hello["result"]["protocolVersion"], &hello["result"]["agentCapabilities"]["loadSession"]),
        (&json!(1), &json!(true))
    );
    let new = client.ask(2, "session/new", json!({"cwd": "/", "mcpServers": []}), true).await.1;
    new["result"]["sessionId"].as_str().expect("an id").to_owned()
}

#[tokio::test]
async fn an_editor_is_told_a_turn_as_it_happens() {
    let server = server();
    let mut client = Client::acp(&server);
    let session = opened(&mut client).await;
    let (heard, end) = client.prompt(3, &session, "tool", true).await;
    assert_eq!(end["result"]["stopReason"], "end_turn");
    assert!(said(&heard, "agent_message_chunk").ends_with("So it is: 17 degrees in Bern."), "{heard:?}");
    let call = of(&heard, "tool_call")[0];
    assert_eq!((&call["title"], &call["status"]), (&json!("weather"), &json!("pending")));
    let updates = of(&heard, "tool_call_update");
    assert_eq!((&updates[0]["rawInput"]["city"], &updates[1]["status"]), (&json!("Bern"), &json!("completed")));
    let (heard, _) = client.prompt(4, &session, "reasoning", true).await;
    assert_eq!(said(&heard, "agent_thought_chunk"), "Hm.");
    client.leave().await;
}

#[tokio::test]
async fn what_a_call_asks_is_a_permission() {
    let server = server();
    let mut client = Client::acp(&server);
    let session = opened(&mut client).await;
    let (heard, end) = client.prompt(3, &session, "ask", true).await;
    let asked = heard.iter().find(|message| message["method"] == "session/request_permission").expect("it asks");
    assert_eq!(
        (&asked["params"]["toolCall"]["toolCallId"], &end["result"]["stopReason"]),
        (&json!("c1"), &json!("end_turn"))
    );
    assert!(said(&heard, "agent_message_chunk").contains("refunded \"A-17\""), "{heard:?}");
    let (heard, _) = client.prompt(4, &session, "ask", false).await;
    assert!(!said(&heard, "agent_message_chunk").contains("refunded \"A-17\""), "{heard:?}");
    client.leave().await;
}

#[tokio::test]
async fn a_turn_is_cancelled_and_a_conversation_is_loaded_by_the_next_client() {
    let server = server();
    let mut client = Client::acp(&server);
    let session = opened(&mut client).await;
    client.prompt(3, &session, "tool", true).await;
    client
        .say(&json!({"jsonrpc": "2.0", "id": 4, "method": "session/prompt",
        "params": {"sessionId": session, "prompt": [{"type": "text", "text": "slow"}]}}))
        .await;
    while client.hear().await["params"]["update"]["status"] != "in_progress" {}
    client.say(&json!({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session}})).await;
    let end = loop {
        let message = client.hear().await;
        if message["id"] == 4 {
            break message;
        }
    };
    assert_eq!(end["result"]["stopReason"], "cancelled");
    client.leave().await;

    let mut next = Client::acp(&server);
    opened(&mut next).await;
    let load = json!({"sessionId": session, "cwd": "/", "mcpServers": []});
    let (heard, loaded) = next.ask(3, "session/load", load, true).await;
    assert_eq!(loaded["result"], Value::Null);
    assert!(said(&heard, "user_message_chunk").starts_with("tool"), "{heard:?}");
    assert_eq!(of(&heard, "tool_call_update")[0]["status"], "completed");
    let (_, end) = next.prompt(4, &session, "hello", true).await;
    assert_eq!(end["result"]["stopReason"], "end_turn");
    let unknown = json!({"sessionId": "nobody", "cwd": "/", "mcpServers": []});
    assert_eq!(next.ask(5, "session/load", unknown, true).await.1["error"]["code"], -32602);
    assert_eq!(next.ask(6, "session/fly", json!({}), true).await.1["error"]["code"], -32601);
    next.leave().await;
}

#[tokio::test]
async fn programs_are_told_in_frames_of_events_and_a_run_is_stopped_while_it_is_told() {
    let server = server();
    let mut client = Client::json_lines(&server);
    let ask = |messages: Value| json!({"messages": messages, "user_id": "ada", "session_id": "garden"});
    let query = client.ask(1, "agent.query", ask(json!("tool")), true).await.1;
    assert_eq!((&query["jsonrpc"], &query["result"]), (&json!("2.0-stream"), &json!("So it is: 17 degrees in Bern.")));
    let many = json!([{"role": "user", "content": "hi"}, {"role": "assistant", "content": "x"},
        {"role": "user", "content": [{"type": "text", "text": "hello"}]}]);
    let (heard, end) = client.ask(2, "agent.stream", ask(many), true).await;
    let kinds: Vec<_> = heard.iter().filter_map(|frame| frame["event"]["type"].as_str()).collect();
    assert_eq!(
        (kinds.first(), kinds.last(), &end["result"]),
        (Some(&"RUN_STARTED"), Some(&"RUN_FINISHED"), &Value::Null)
    );
    assert!(
        heard.iter().any(|frame| frame["event"]["message_id"].is_string()),
        "names are written as these programs do"
    );

    client
        .say(&json!({"jsonrpc": "2.0-stream", "id": "s", "method": "agent.stream", "params": ask(json!("slow"))}))
        .await;
    while client.hear().await["event"]["type"] != "TOOL_CALL_END" {}
    client
        .say(&json!({"jsonrpc": "2.0-stream", "id": "t", "method": "agent.stop", "params": {"session_id": "garden"}}))
        .await;
    let mut stopped = false;
    loop {
        let message = client.hear().await;
        stopped |= message["id"] == "t" && message["result"]["status"] == "success";
        if message["id"] == "s" && message.get("event").is_none() {
            break;
        }
    }
    assert!(stopped, "it is answered while the other is told");
    assert_eq!(client.ask(9, "agent.fly", json!({}), true).await.1["error"]["code"], -32601);
    assert_eq!(client.ask(10, "agent.query", json!({"messages": []}), true).await.1["error"]["code"], -32602);
    client.leave().await;
}

/// Environment variable that turns this test into an ACP program.
const PROGRAM: &str = "AGENT_SERVER_TEST_EDITOR";

/// The program. The client skips the output of the test harness, which is not JSON.
#[tokio::test]
async fn as_a_program() {
    if std::env::var_os(PROGRAM).is_some() {
        server().serve_acp("actor", tokio::io::stdin(), tokio::io::stdout()).await.expect("served");
    }
}

#[tokio::test]
async fn the_frameworks_own_client_starts_it_as_a_program_and_gives_its_permissions() {
    let itself = std::env::current_exe().expect("a path").display().to_string();
    let program =
        Stdio::new(itself).args(["protocols::stdio::as_a_program", "--exact", "--nocapture"]).env(PROGRAM, "1");
    let peer = AcpAgent::builder(program).build().expect("builds");
    let caller = Agent::of_tool("actor elsewhere", peer).build().expect("builds");
    let end = caller.run("tool").await.expect("runs").finished().expect("it finishes");
    assert!(end.answer.ends_with("So it is: 17 degrees in Bern."), "{}", end.answer);

    let RunEnd::Interrupted(open) = caller.run("ask").await.expect("runs") else { panic!("it does not ask") };
    let answer = (open.questions[0].id.clone(), json!("allow"));
    let end = caller.start(RunRequest::resume(*open, [answer])).await.expect("runs").finished().expect("it finishes");
    assert!(end.answer.ends_with("So it is: refunded \"A-17\"."), "{}", end.answer);
}

#[tokio::test]
async fn an_agent_that_is_not_there_is_told_at_once() {
    let other = Server::builder()
        .agent(Agent::builder("other", agent::testing::ScriptedModel::new([])).build().expect("builds"));
    let server = other.build().expect("builds");
    let error = server.serve_acp("actor", tokio::io::empty(), tokio::io::sink()).await.expect_err("no actor");
    assert_eq!(error.kind(), agent::ErrorKind::InvalidRequest);
}

#[tokio::test]
async fn sessions_of_an_editor_are_listed_resumed_closed_and_deleted() {
    let server = server();
    let mut client = Client::acp(&server);
    let hello = client.ask(1, "initialize", json!({"protocolVersion": 1, "clientCapabilities": {}}), true).await.1;
    let can = &hello["result"]["agentCapabilities"]["sessionCapabilities"];
    assert!(["list", "resume", "close", "delete"].iter().all(|one| can[one].is_object()), "{can}");
    let mut sessions = Vec::new();
    for (id, folder) in [(2, "/a"), (3, "/b")] {
        let new = client.ask(id, "session/new", json!({"cwd": folder, "mcpServers": []}), true).await.1;
        sessions.push(new["result"]["sessionId"].as_str().expect("an id").to_owned());
    }
    let none = client.ask(4, "session/list", json!({}), true).await.1;
    assert_eq!(none["result"]["sessions"], json!([]), "nothing is stored before a prompt");
    for (id, session) in (5..).zip(&sessions) {
        client.prompt(id, session, "again", true).await;
    }
    client.leave().await;

    let mut later = Client::acp(&server);
    let listed = later.ask(1, "session/list", json!({}), true).await.1["result"]["sessions"].clone();
    assert_eq!(listed.as_array().map(Vec::len), Some(2), "{listed}");
    let of_b = later.ask(2, "session/list", json!({"cwd": "/b"}), true).await.1["result"]["sessions"].clone();
    assert_eq!(
        (&of_b[0]["sessionId"], &of_b[0]["cwd"], of_b.as_array().map(Vec::len)),
        (&json!(sessions[1]), &json!("/b"), Some(1))
    );
    assert!(of_b[0]["updatedAt"].as_str().is_some_and(|time| time.ends_with('Z')), "{of_b}");
    let about = json!({"sessionId": sessions[1], "cwd": "/b", "mcpServers": []});
    let (heard, resumed) = later.ask(3, "session/resume", about.clone(), true).await;
    assert_eq!((heard.len(), &resumed["result"]), (0, &json!({})), "without its history");
    let (heard, _) = later.prompt(4, &sessions[1], "again", true).await;
    assert!(said(&heard, "agent_message_chunk").contains("You said: again."));
    assert_eq!(later.ask(5, "session/close", about.clone(), true).await.1["result"], json!({}));
    assert_eq!(later.ask(6, "session/delete", about.clone(), true).await.1["result"], json!({}));
    assert_eq!(later.ask(7, "session/delete", about.clone(), true).await.1["result"], json!({}), "again");
    let left = later.ask(8, "session/list", json!({}), true).await.1["result"]["sessions"].clone();
    assert_eq!((left.as_array().map(Vec::len), &left[0]["sessionId"]), (Some(1), &json!(sessions[0])));
    assert_eq!(later.ask(9, "session/resume", about, true).await.1["error"]["code"], -32602);
    assert_eq!(later.ask(10, "session/list", json!({"cursor": "x"}), true).await.1["error"]["code"], -32602);
    later.leave().await;
}

#[tokio::test]
async fn a_question_is_a_form_for_an_editor_that_shows_forms_and_its_answer_resumes_the_turn() {
    let paint = || {
        agent::tools::from_schema(
            "paint",
            "Paints.",
            json!({"type": "object", "properties": {}}),
            async |_: Value, req: agent::ToolRequest| -> agent::Result<String> {
                let colour: String = req.ask("colour", json!({"message": "Which colour?"}))?;
                Ok(format!("painted {colour}"))
            },
        )
    };
    for (action, wanted) in [("accept", "Done: painted red"), ("decline", "")] {
        let model = agent::testing::ScriptedModel::new([
            agent::testing::Turn::calls([("c1", "paint", json!({}))]),
            agent::testing::Turn::text("Done: painted red"),
        ]);
        let painter = Agent::builder("actor", model).tool(paint()).build().expect("builds");
        let server = Server::builder().agent(painter).build().expect("builds");
        let mut client = Client::acp(&server);
        let can = json!({"elicitation": {"form": {}}});
        client.ask(1, "initialize", json!({"protocolVersion": 1, "clientCapabilities": can}), true).await;
        let new = client.ask(2, "session/new", json!({"cwd": "/", "mcpServers": []}), true).await.1;
        let params = json!({"sessionId": new["result"]["sessionId"], "prompt": [{"type": "text", "text": "Paint."}]});
        client.say(&json!({"jsonrpc": "2.0", "id": 3, "method": "session/prompt", "params": params})).await;
        let (mut said, mut asked) = (String::new(), 0);
        let end = loop {
            let heard = client.hear().await;
            if heard["method"] == "elicitation/create" {
                asked += 1;
                assert_eq!(
                    (&heard["params"]["mode"], &heard["params"]["message"]),
                    (&json!("form"), &json!("Which colour?"))
                );
                let result = json!({"action": action, "content": {"answer": "red"}});
                client.say(&json!({"jsonrpc": "2.0", "id": heard["id"], "result": result})).await;
            }
            if heard["id"] == 3 && heard.get("method").is_none() {
                break heard;
            }
            let update = &heard["params"]["update"];
            if update["sessionUpdate"] == "agent_message_chunk" {
                said += update["content"]["text"].as_str().unwrap_or_default();
            }
        };
        assert_eq!((asked, &end["result"]["stopReason"], &*said), (1, &json!("end_turn"), wanted));
        client.leave().await;
    }
}

#[tokio::test]
async fn a_prompt_is_cancelled_by_the_id_of_its_request() {
    let server = server();
    let mut client = Client::acp(&server);
    let session = opened(&mut client).await;
    let params = json!({"sessionId": session, "prompt": [{"type": "text", "text": "slow"}]});
    client.say(&json!({"jsonrpc": "2.0", "id": 3, "method": "session/prompt", "params": params})).await;
    loop {
        let heard = client.hear().await;
        if heard["params"]["update"]["sessionUpdate"] == "tool_call_update" {
            break;
        }
    }
    client.say(&json!({"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": 3}})).await;
    loop {
        let heard = client.hear().await;
        if heard["id"] == 3 {
            assert_eq!(heard["result"]["stopReason"], "cancelled");
            break;
        }
    }
    client.leave().await;
}
