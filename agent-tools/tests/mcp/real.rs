//! Servers that others wrote, from npm. They are fetched, so these tests run by hand:
//! `cargo test -p agent-tools --features mcp --test mcp real -- --ignored --nocapture`.

use std::{path::Path, time::Duration};

use agent_core::{ErrorKind, Toolset};
use agent_tools::mcp::{Client, ClientBuilder, Http, Stdio};
use serde_json::{Value, json};

use crate::support::*;

fn npm(name: &str, package: &str, args: &[&str]) -> ClientBuilder {
    let program =
        Stdio::new("npx").arg("-y").arg(format!("@modelcontextprotocol/{package}")).args(args.iter().copied());
    Client::builder(name, program).prefix("").required().connect_timeout(Duration::from_secs(120))
}

/// Ends a program with all that it started.
struct Group(u32);

impl Drop for Group {
    fn drop(&mut self) {
        let group = nix::unistd::Pid::from_raw(i32::try_from(self.0).expect("an id"));
        let _ = nix::sys::signal::killpg(group, nix::sys::signal::Signal::SIGKILL);
    }
}

/// Calls every tool of the client with `args`, and says what came of it.
async fn call_all(client: &Client, args: impl Fn(&str) -> Value) -> Vec<(String, String)> {
    let mut came = Vec::new();
    for name in names(client).await {
        let said = match call(client, &name, args(&name)).await {
            Ok(output) => {
                format!("error={} {} parts: {:.100}", output.is_error(), output.content().len(), output.to_text())
            }
            Err(error) => format!("{:?}: {:.200}", error.kind(), error.message()),
        };
        println!("{name}: {said}");
        came.push((name, said));
    }
    came
}

#[tokio::test]
#[ignore = "fetches the server from npm"]
async fn everything() {
    let model = agent_core::testing::ScriptedModel::new([agent_core::testing::Turn::text("42")]);
    let client = npm("everything", "server-everything", &[])
        .sampling(model)
        .root("file:///tmp")
        .resource_tools()
        .timeout(Duration::from_secs(30))
        .build()
        .expect("builds");
    client.warm_up().await.expect("starts");
    println!("instructions: {:.100}", client.instructions().await.expect("told").unwrap_or_default());
    let came = call_all(&client, |name| match name {
        "echo" => json!({"message": "hello"}),
        "add" | "get-sum" => json!({"a": 40, "b": 2}),
        "longRunningOperation" | "trigger-long-running-operation" => json!({"duration": 2, "steps": 4}),
        "sampleLLM" | "trigger-sampling-request" => json!({"prompt": "6 x 7?", "maxTokens": 10}),
        "annotatedMessage" | "get-annotated-message" => json!({"messageType": "success", "includeImage": true}),
        "getResourceReference" | "get-resource-reference" => json!({"resourceType": "Text", "resourceId": 1}),
        "structuredContent" | "get-structured-content" => json!({"location": "New York"}),
        "read_resource" => json!({"uri": "demo://resource/static/document/architecture.md"}),
        _ => json!({}),
    })
    .await;
    assert!(came.iter().any(|(_, said)| said.contains("hello")));
    let resources = client.resources().await.expect("listed");
    for resource in &resources {
        let parts = client.read_resource(&resource.uri).await.expect("read");
        println!("{}: {} parts", resource.uri, parts.len());
    }
    println!(
        "templates: {:?}",
        client.resource_templates().await.expect("listed").iter().map(|t| &t.uri).collect::<Vec<_>>()
    );
    for prompt in client.prompts().await.expect("listed") {
        let args: Vec<_> = prompt.arguments.iter().map(|argument| (argument.name.as_str(), "1")).collect();
        println!("{}: {:?}", prompt.name, client.prompt(&prompt.name, args).await.map(|messages| messages.len()));
    }
    assert!(client.is_healthy().await);
    client.close().await.expect("closes");
}

#[tokio::test]
#[ignore = "fetches the server from npm"]
async fn everything_over_http_and_over_events() {
    for (form, port, path) in [("streamableHttp", "39101", "mcp"), ("sse", "39102", "sse")] {
        let mut program = tokio::process::Command::new("npx");
        program.args(["-y", "@modelcontextprotocol/server-everything", form]).env("PORT", port);
        program.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
        let _group = Group(program.process_group(0).spawn().expect("starts").id().expect("runs"));
        let http = Http::new(format!("http://127.0.0.1:{port}/{path}"));
        let client = Client::builder("e", http).prefix("").build().expect("builds");
        for _ in 0..60 {
            if !names(&client).await.is_empty() {
                break;
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        println!("{form}: {} tools", names(&client).await.len());
        let run = run(|_| {});
        let told = progress(run.cx());
        let long = json!({"duration": 2, "steps": 4});
        let long = call_in(run.cx(), &client, "trigger-long-running-operation", long).await.expect("runs");
        println!("{}, {:?}", long.to_text(), told.lock().expect("free"));
        let echo = call(&client, "echo", json!({"message": "hello"})).await.expect("called");
        assert!(echo.to_text().contains("hello"));
        println!("{} resources", client.resources().await.expect("listed").len());
        client.close().await.expect("closes");
    }
}

#[tokio::test]
#[ignore = "fetches the server from npm"]
async fn filesystem() {
    let dir = tempfile::tempdir().expect("a directory");
    std::fs::write(dir.path().join("a.txt"), "a lion").expect("written");
    let client = npm("files", "server-filesystem", &[&dir.path().display().to_string()]).build().expect("builds");
    let path = |name: &str| Path::new(dir.path()).join(name).display().to_string();
    let read = call(&client, "read_text_file", json!({"path": path("a.txt")})).await.expect("read");
    assert_eq!(read.to_text(), "a lion");
    let outside = call(&client, "read_text_file", json!({"path": "/etc/passwd"})).await.expect("a result");
    assert!(outside.is_error(), "{outside:?}");
    call(&client, "write_file", json!({"path": path("b.txt"), "content": "b"})).await.expect("written");
    call_all(&client, |name| match name {
        "move_file" => json!({"source": path("b.txt"), "destination": path("c.txt")}),
        "search_files" => json!({"path": path(""), "pattern": "*.txt"}),
        "read_multiple_files" => json!({"paths": [path("a.txt")]}),
        "write_file" => json!({"path": path("b.txt"), "content": "b"}),
        "edit_file" => json!({"path": path("b.txt"), "edits": [{"oldText": "b", "newText": "c"}]}),
        "create_directory" => json!({"path": path("d")}),
        "list_allowed_directories" => json!({}),
        "list_directory" | "list_directory_with_sizes" | "directory_tree" => json!({"path": path("")}),
        _ => json!({"path": path("a.txt")}),
    })
    .await;
    client.close().await.expect("closes");
}

#[tokio::test]
#[ignore = "fetches the server from npm"]
async fn memory() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("memory.jsonl").display().to_string();
    let program = Stdio::new("npx").args(["-y", "@modelcontextprotocol/server-memory"]).env("MEMORY_FILE_PATH", file);
    let client = Client::builder("memory", program)
        .prefix("")
        .connect_timeout(Duration::from_secs(120))
        .build()
        .expect("builds");
    let came = call_all(&client, |name| match name {
        "create_entities" => json!({"entities": [{"name": "Ada", "entityType": "person", "observations": ["counts"]}]}),
        "create_relations" => json!({"relations": [{"from": "Ada", "to": "Ada", "relationType": "knows"}]}),
        "add_observations" => json!({"observations": [{"entityName": "Ada", "contents": ["writes"]}]}),
        "delete_entities" => json!({"entityNames": ["Bob"]}),
        "delete_observations" => json!({"deletions": [{"entityName": "Ada", "observations": ["x"]}]}),
        "delete_relations" => json!({"relations": [{"from": "a", "to": "b", "relationType": "c"}]}),
        "search_nodes" => json!({"query": "Ada"}),
        "open_nodes" => json!({"names": ["Ada"]}),
        _ => json!({}),
    })
    .await;
    assert!(came.iter().all(|(_, said)| said.starts_with("error=false")), "{came:?}");
    let wrong = call(&client, "open_nodes", json!({"names": 7})).await;
    assert!(wrong.map_or_else(|error| error.kind() == ErrorKind::Tool, |output| output.is_error()));
    client.close().await.expect("closes");
}
