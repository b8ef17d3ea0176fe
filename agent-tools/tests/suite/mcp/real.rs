//! Third-party servers from npm: `checks/mcp_servers.sh` installs them and runs these tests.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::Duration,
};

use agent_core::{
    Effect, ErrorKind, Part, ToolOutput, Toolset,
    testing::{ScriptedModel, Turn},
};
use agent_tools::mcp::{Client, ClientBuilder, Elicitation, Http, Stdio};
use nix::{
    sys::signal::{Signal, kill, killpg},
    unistd::Pid,
};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};

use super::support::*;

/// Returns the path of a server's program.
fn program(name: &str) -> String {
    let dir = std::env::var("MCP_SERVERS").expect("the folder of the servers: checks/mcp_servers.sh sets it");
    Path::new(&dir).join(format!("mcp-server-{name}")).display().to_string()
}

fn stdio(name: &str, args: &[&str]) -> ClientBuilder {
    Client::builder(name, Stdio::new(program(name)).args(args.iter().copied())).prefix("").required()
}

/// Returns a client builder for a server that writes its process id to the file `pid` before it
/// starts, after the shell line `first`.
fn watched(name: &str, first: &str, pid: &Path, arg: &str) -> ClientBuilder {
    let line = format!("{first} echo $$ > {}; exec {} {arg}", pid.display(), program(name));
    Client::builder(name, Stdio::new("sh").args(["-c", &line])).prefix("").required()
}

fn pid(file: &Path) -> Pid {
    let text = std::fs::read_to_string(file).expect("it has begun");
    Pid::from_raw(text.trim().parse().expect("a number"))
}

/// Returns the outputs of calls of a server's tools, by tool name; for an error, its message.
async fn called(client: &Client, args: &[(&str, Value)]) -> BTreeMap<String, ToolOutput> {
    let mut came = BTreeMap::new();
    for (name, args) in args {
        let output = call(client, name, args.clone()).await;
        came.insert((*name).to_owned(), output.unwrap_or_else(|e| ToolOutput::error(e.message())));
    }
    came
}

/// Returns the client, with every capability that the server may request.
fn asked(builder: ClientBuilder) -> Client {
    let model = ScriptedModel::new([Turn::text("42")]);
    let answer = async |asked: Elicitation| {
        let is_form = asked.schema.is_some();
        Ok(Some(if is_form { json!({"name": "Ada", "check": true}) } else { json!({}) }))
    };
    let builder = builder.sampling(model).elicitation_by(answer).root("file:///srv/lions");
    builder.resource_tools().timeout(Duration::from_secs(30)).build().expect("builds")
}

/// Exercises every tool, resource and prompt of the reference server.
async fn has_everything(client: &Client) {
    client.warm_up().await.expect("starts");
    assert!(client.instructions().await.expect("told").is_some_and(|text| text.contains("Everything")));
    every_tool(client).await;
    every_resource(client).await;
    every_prompt(client).await;
    assert!(client.is_healthy().await);
    client.close().await.expect("closes");
}

/// Arguments for the tools of that server.
fn arguments() -> Vec<(&'static str, Value)> {
    let data = "data:text/plain;base64,bGlvbg==";
    vec![
        ("echo", json!({"message": "hello"})),
        ("get-annotated-message", json!({"messageType": "success", "includeImage": true})),
        ("get-env", json!({})),
        ("get-resource-links", json!({"count": 2})),
        ("get-resource-reference", json!({"resourceType": "Text", "resourceId": 1})),
        ("get-structured-content", json!({"location": "New York"})),
        ("get-sum", json!({"a": 40, "b": 2})),
        ("get-tiny-image", json!({})),
        ("gzip-file-as-resource", json!({"name": "a.gz", "data": data, "outputType": "resource"})),
        ("toggle-simulated-logging", json!({})),
        ("toggle-subscriber-updates", json!({})),
        ("trigger-long-running-operation", json!({"duration": 1, "steps": 2})),
        ("get-roots-list", json!({})),
        ("trigger-elicitation-request", json!({})),
        ("trigger-url-elicitation", json!({"url": "https://example.org/a"})),
        ("trigger-sampling-request", json!({"prompt": "6 x 7?", "maxTokens": 10})),
        ("simulate-research-query", json!({"topic": "lions"})),
        ("list_resources", json!({})),
        ("read_resource", json!({"uri": "demo://resource/static/document/architecture.md"})),
    ]
}

async fn every_tool(client: &Client) {
    let args = arguments();
    let mut offered = names(client).await;
    let mut expected: Vec<_> = args.iter().map(|(name, _)| (*name).to_owned()).collect();
    offered.sort();
    expected.sort();
    assert_eq!(offered, expected);
    assert_eq!(tool(client, "echo").await.options().effect, Effect::Pure);
    assert_eq!(tool(client, "trigger-sampling-request").await.options().hints.open_world, Some(true));

    let came = called(client, &args).await;
    let failed: Vec<_> = came.iter().filter(|(_, output)| output.is_error()).map(|(name, _)| name).collect();
    assert_eq!(failed, ["simulate-research-query"], "it can be called as a task alone, which no client here does");
    for (name, said) in [
        ("echo", "Echo: hello"),
        ("get-annotated-message", "Operation completed successfully"),
        ("get-env", "\"PATH\""),
        ("get-resource-links", "demo://resource/dynamic/"),
        ("get-resource-reference", "demo://resource/dynamic/text/1"),
        ("get-structured-content", "temperature"),
        ("get-sum", "42"),
        ("trigger-long-running-operation", "Duration: 1 seconds, Steps: 2"),
        ("get-roots-list", "file:///srv/lions"),
        ("trigger-elicitation-request", "Ada"),
        ("trigger-sampling-request", "42"),
        ("list_resources", "demo://resource/static/document/startup.md"),
        ("read_resource", "# "),
    ] {
        assert!(came[name].to_text().contains(said), "{name}: {:?}", came[name]);
    }
    assert!(came["get-structured-content"].as_value().is_some_and(|value| value["temperature"].is_number()));
    let is_image = |part: &Part| matches!(part, Part::Image(_));
    assert!(came["get-tiny-image"].content().iter().any(is_image), "{:?}", came["get-tiny-image"]);
    assert!(came["get-annotated-message"].content().iter().any(is_image));
    let refused = call(client, "get-sum", json!({"a": "forty"})).await.expect("a result");
    assert!(refused.is_error() && refused.to_text().contains("expected number"), "{refused:?}");
}

async fn every_resource(client: &Client) {
    let resources = client.resources().await.expect("listed");
    assert!(resources.len() >= 7, "{resources:?}");
    for resource in &resources {
        assert_eq!(client.read_resource(&resource.uri).await.expect("read").len(), 1, "{}", resource.uri);
    }
    let templates = client.resource_templates().await.expect("listed");
    assert_eq!(templates.len(), 2);
    for template in templates {
        let uri = template.uri.replace("{resourceId}", "7");
        assert_eq!(client.read_resource(&uri).await.expect("read").len(), 1, "{uri}");
    }
}

async fn every_prompt(client: &Client) {
    let prompts = client.prompts().await.expect("listed");
    let mut made = Vec::new();
    for prompt in &prompts {
        let value = |name: &str| match name {
            "department" => "Engineering",
            "name" => "Alice",
            "resourceType" => "Text",
            _ => "1",
        };
        let args: Vec<_> = prompt.arguments.iter().map(|arg| (arg.name.as_str(), value(&arg.name))).collect();
        let messages = client.prompt(&prompt.name, args).await.expect("made");
        made.push((prompt.name.as_str(), messages.len()));
    }
    made.sort_unstable();
    let expected = [("args-prompt", 1), ("completable-prompt", 1), ("resource-prompt", 2), ("simple-prompt", 1)];
    assert_eq!(made, expected);
    let lacking = client.prompt("args-prompt", []).await.expect_err("a city is needed");
    assert!(lacking.message().contains("city"), "{lacking}");
}

#[tokio::test]
#[ignore = "needs a server of others"]
async fn everything_over_standard_input_and_output() {
    has_everything(&asked(stdio("everything", &[]))).await;
}

/// Kills a program with its descendants when dropped.
struct Group(u32);

impl Drop for Group {
    fn drop(&mut self) {
        let group = Pid::from_raw(i32::try_from(self.0).expect("an id"));
        let _ = killpg(group, Signal::SIGKILL);
    }
}

/// Starts the server with this HTTP transport, and waits until it listens.
async fn served(form: &str) -> (Group, String) {
    loop {
        let port = std::net::TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address").port();
        let mut server = tokio::process::Command::new(program("everything"));
        server.arg(form).env("PORT", port.to_string());
        server.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
        let mut server = server.process_group(0).spawn().expect("starts");
        let group = Group(server.id().expect("runs"));
        let listens = async {
            while tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_err() {
                sleep(Duration::from_millis(50)).await;
            }
        };
        tokio::select! {
            ended = server.wait() => println!("{ended:?}: another test took its port"),
            listens = timeout(Duration::from_secs(30), listens) => {
                listens.expect("it listens");
                return (group, format!("http://127.0.0.1:{port}"));
            }
        }
    }
}

#[tokio::test]
#[ignore = "needs a server of others"]
async fn everything_over_http() {
    let (_group, at) = served("streamableHttp").await;
    has_everything(&asked(Client::builder("e", Http::new(format!("{at}/mcp"))).prefix(""))).await;
}

#[tokio::test]
#[ignore = "needs a server of others"]
async fn an_old_server_over_events_is_found_out() {
    let (_group, at) = served("sse").await;
    let client = Client::builder("e", Http::new(format!("{at}/sse"))).prefix("").build().expect("builds");
    let run = run(|_| {});
    let told = progress(run.cx());
    let long = json!({"duration": 1, "steps": 4});
    call_in(run.cx(), &client, "trigger-long-running-operation", long).await.expect("runs");
    until(|| told.lock().expect("free").len() == 4).await;
    assert_eq!(call(&client, "echo", json!({"message": "a"})).await.expect("called").to_text(), "Echo: a");
    client.close().await.expect("closes");
}

#[tokio::test]
#[ignore = "needs a server of others"]
async fn every_tool_of_the_file_server() {
    let dir = tempfile::tempdir().expect("a directory");
    let root = dir.path().canonicalize().expect("is there");
    std::fs::write(root.join("a.txt"), "a lion\n").expect("written");
    std::fs::write(root.join("a.png"), b"\x89PNG\r\n\x1a\n").expect("written");
    let client = stdio("filesystem", &[&root.display().to_string()]).build().expect("builds");
    let path = |name: &str| root.join(name).display().to_string();
    let args = [
        ("read_file", json!({"path": path("a.txt")})),
        ("read_text_file", json!({"path": path("a.txt"), "head": 1})),
        ("read_media_file", json!({"path": path("a.png")})),
        ("read_multiple_files", json!({"paths": [path("a.txt"), path("none")]})),
        ("write_file", json!({"path": path("b.txt"), "content": "b\n"})),
        ("edit_file", json!({"path": path("b.txt"), "edits": [{"oldText": "b", "newText": "c"}]})),
        ("create_directory", json!({"path": path("d/e")})),
        ("list_directory", json!({"path": path("")})),
        ("list_directory_with_sizes", json!({"path": path("")})),
        ("directory_tree", json!({"path": path("")})),
        ("move_file", json!({"source": path("b.txt"), "destination": path("d/c.txt")})),
        ("search_files", json!({"path": path(""), "pattern": "**/*.txt"})),
        ("get_file_info", json!({"path": path("a.txt")})),
        ("list_allowed_directories", json!({})),
    ];
    let mut expected: Vec<_> = args.iter().map(|(name, _)| *name).collect();
    let mut offered = names(&client).await;
    expected.sort_unstable();
    offered.sort();
    assert_eq!(offered, expected);
    let came = called(&client, &args).await;
    assert!(came.values().all(|output| !output.is_error()), "{came:?}");
    for (name, said) in [
        ("read_file", "a lion"),
        ("read_text_file", "a lion"),
        ("read_multiple_files", "a lion"),
        ("edit_file", "+c"),
        ("list_directory", "[FILE] a.txt"),
        ("list_directory_with_sizes", "a.txt"),
        ("directory_tree", "\"a.txt\""),
        ("search_files", "d/c.txt"),
        ("get_file_info", "size: 7"),
        ("list_allowed_directories", &root.display().to_string()),
    ] {
        assert!(came[name].to_text().contains(said), "{name}: {:?}", came[name]);
    }
    assert!(came["read_media_file"].content().iter().any(|part| matches!(part, Part::Image(_))));
    assert_eq!(std::fs::read_to_string(root.join("d/c.txt")).expect("moved"), "c\n");
    assert!(came["read_text_file"].as_value().is_some_and(|value| value["content"] == "a lion"));
    let outside = call(&client, "read_text_file", json!({"path": "/etc/passwd"})).await.expect("a result");
    assert!(outside.is_error() && outside.to_text().contains("denied"), "{outside:?}");
    assert_eq!(tool(&client, "write_file").await.options().hints.destructive, Some(true));
    client.close().await.expect("closes");
}

#[tokio::test]
#[ignore = "needs a server of others"]
async fn every_tool_and_the_resource_of_the_memory_server() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("memory.jsonl").display().to_string();
    let server = Stdio::new(program("memory")).env("MEMORY_FILE_PATH", file);
    let client = Client::builder("memory", server).prefix("").required().build().expect("builds");
    let ada = json!({"name": "Ada", "entityType": "person", "observations": ["counts"]});
    let bob = json!({"name": "Bob", "entityType": "person", "observations": []});
    let knows = json!({"from": "Ada", "to": "Bob", "relationType": "knows"});
    let args = [
        ("create_entities", json!({"entities": [ada, bob]})),
        ("create_relations", json!({"relations": [knows]})),
        ("add_observations", json!({"observations": [{"entityName": "Ada", "contents": ["writes"]}]})),
        ("read_graph", json!({})),
        ("search_nodes", json!({"query": "writes"})),
        ("open_nodes", json!({"names": ["Bob"]})),
        ("delete_observations", json!({"deletions": [{"entityName": "Ada", "observations": ["counts"]}]})),
        ("delete_relations", json!({"relations": [knows]})),
        ("delete_entities", json!({"entityNames": ["Bob"]})),
    ];
    let mut expected: Vec<_> = args.iter().map(|(name, _)| *name).collect();
    let mut offered = names(&client).await;
    expected.sort_unstable();
    offered.sort();
    assert_eq!(offered, expected);
    let came = called(&client, &args).await;
    assert!(came.values().all(|output| !output.is_error()), "{came:?}");
    let graph = came["read_graph"].as_value().expect("a value");
    assert_eq!(
        (graph["entities"].as_array().map(Vec::len), graph["relations"].as_array().map(Vec::len)),
        (Some(2), Some(1))
    );
    assert!(came["search_nodes"].to_text().contains("Ada") && came["open_nodes"].to_text().contains("Bob"));
    let left = call(&client, "read_graph", json!({})).await.expect("read");
    let left = left.as_value().expect("a value");
    assert_eq!((&left["entities"][0]["observations"], &left["entities"][1]), (&json!(["writes"]), &Value::Null));
    let [resource] = &client.resources().await.expect("listed")[..] else { panic!("one resource") };
    let [Part::Text(text)] = &client.read_resource(&resource.uri).await.expect("read")[..] else { panic!("one text") };
    assert!(text.text.contains("Ada"));
    let wrong = call(&client, "open_nodes", json!({"names": 7})).await;
    assert!(wrong.map_or_else(|error| error.kind() == ErrorKind::Tool, |output| output.is_error()));
    client.close().await.expect("closes");
}

/// Connects a client to a server; returns the client and the file with the server's process id.
async fn at_work(builder: impl Fn(&Path) -> Client) -> (tempfile::TempDir, PathBuf, Client) {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("pid");
    let client = builder(&file);
    client.warm_up().await.expect("starts");
    (dir, file, client)
}

#[tokio::test]
#[ignore = "needs a server of others"]
async fn a_server_that_is_killed_in_a_call_is_told_of_and_started_again() {
    let build = |file: &Path| watched("everything", "", file, "").build().expect("builds");
    let (_dir, file, client) = at_work(build).await;
    let run = run(|_| {});
    let told = progress(run.cx());
    let long = call_in(run.cx(), &client, "trigger-long-running-operation", json!({"duration": 30, "steps": 60}));
    let killed = async {
        until(|| !told.lock().expect("free").is_empty()).await;
        kill(pid(&file), Signal::SIGKILL).expect("killed");
        Instant::now()
    };
    let (error, killed) = tokio::join!(long, killed);
    let error = error.expect_err("it was killed");
    assert!(killed.elapsed() < Duration::from_secs(5) && error.kind() == ErrorKind::Tool, "{error}");
    assert_eq!(
        call(&client, "get-sum", json!({"a": 1, "b": 2})).await.expect("again").to_text(),
        "The sum of 1 and 2 is 3."
    );
    client.close().await.expect("closes");
}

#[tokio::test]
#[ignore = "needs a server of others"]
async fn a_server_that_hangs_costs_a_call_its_time_and_no_more() {
    let build = |file: &Path| {
        let builder = watched("everything", "", file, "").timeout(Duration::from_secs(5));
        builder.connect_timeout(Duration::from_secs(20)).build().expect("builds")
    };
    let (_dir, file, client) = at_work(build).await;
    let (hanging, echo, run) = (pid(&file), tool(&client, "echo").await, run(|_| {}));
    kill(hanging, Signal::SIGSTOP).expect("stopped");
    let begin = Instant::now();
    let called = echo.call(request(run.cx(), &*echo, json!({"message": "a"}))).await;
    let error = called.expect_err("nothing comes");
    assert!(begin.elapsed() < Duration::from_secs(20), "{error}");
    kill(hanging, Signal::SIGCONT).expect("goes on");
    assert_eq!(call(&client, "echo", json!({"message": "b"})).await.expect("works").to_text(), "Echo: b");
    client.close().await.expect("closes");
}

#[tokio::test]
#[ignore = "needs a server of others"]
async fn what_is_no_message_between_the_messages_does_no_harm() {
    let garbage = r#"echo 'npm notice: a new version'; echo '{"half'; printf '\377\376\n';"#;
    let build = |file: &Path| watched("everything", garbage, file, "").build().expect("builds");
    let (_dir, _, client) = at_work(build).await;
    assert_eq!(call(&client, "echo", json!({"message": "a"})).await.expect("called").to_text(), "Echo: a");
    client.close().await.expect("closes");
}

#[tokio::test]
#[ignore = "needs a server of others"]
async fn ten_megabytes_come_whole_where_they_may_and_are_refused_in_words_where_not() {
    let dir = tempfile::tempdir().expect("a directory");
    let root = dir.path().canonicalize().expect("is there");
    let text: String = (0..10 << 20).map(|n: usize| if n % 80 == 79 { '\n' } else { 'a' }).collect();
    std::fs::write(root.join("big"), &text).expect("written");
    let args = || json!({"path": root.join("big").display().to_string()});
    let arg = root.display().to_string();
    let small = stdio("filesystem", &[&arg]).build().expect("builds");
    let refused = call(&small, "read_text_file", args()).await.expect_err("too large");
    assert!(refused.message().contains("bytes"), "{refused}");
    let after = call(&small, "list_allowed_directories", json!({})).await.expect("goes on");
    assert!(after.to_text().contains(&arg));
    let large = stdio("filesystem", &[&arg]).max_result(32 << 20).build().expect("builds");
    assert_eq!(call(&large, "read_text_file", args()).await.expect("read").to_text(), text);
}
