//! `agent serve`, as a process that is killed and begun again.

use crate::support;

use std::{
    fs::Permissions,
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    os::unix::fs::PermissionsExt,
    process::Stdio,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use support::{
    Gate, Model, Reply, agent, agent_on, end,
    served::{Server, allow, start},
};

/// The ids of the durable events in a stream's text.
fn durable(text: &str) -> Vec<u64> {
    let ids = text.lines().filter_map(|line| line.strip_prefix("id: ")?.strip_suffix(".0"));
    ids.map(|id| id.parse().unwrap()).collect()
}

#[test]
fn a_server_that_is_killed_under_runs_goes_on_with_them_when_it_begins_again() {
    let dir = tempfile::tempdir().unwrap();
    let gate = Gate::default();
    std::fs::write(dir.path().join("notes.txt"), "Bees hum.").unwrap();
    let replies = [
        Reply::Call("read_file", json!({"path": "notes.txt"})),
        Reply::Held("never ", gate.clone(), "said"),
        Reply::Text("Bees do."),
    ];
    let model = Model::new(replies);
    let args = ["--dir", ".", "--lease", "1"];
    let server = Server::begin(dir.path(), &model, &args);
    let run = start(&server, &json!({"input": "What hums?", "session": "garden"}));
    // The tool's result is in the journal, and the second answer has begun.
    let late = Instant::now() + Duration::from_secs(60);
    let is_durable = || server.get("/api/sessions/garden/entries").to_string().contains("turn_ended");
    while model.asked.lock().unwrap().len() < 2 || !is_durable() {
        assert!(Instant::now() < late, "the model is asked");
        std::thread::sleep(Duration::from_millis(20));
    }
    server.kill();
    gate.open();

    let server = Server::begin(dir.path(), &model, &args);
    let ended = server.until(&run, "finished");
    assert_eq!(ended["answer"], "Bees do.");
    assert_eq!(model.asked.lock().unwrap().len(), 3, "no finished step is made again");
    let (_, events) = server.ask("GET", &format!("/api/runs/{run}/events"), &Value::Null);
    let ids = durable(&events);
    assert!(ids.len() > 6 && ids.is_sorted_by(|one, two| one < two), "{ids:?}");
    assert_eq!(events.matches("\"tool_started\"").count(), 1, "{events}");
    assert_eq!(events.matches("\"run_resumed\"").count(), 1, "{events}");
    server.kill();
}

#[test]
fn a_question_outlives_a_server_that_is_killed() {
    let dir = tempfile::tempdir().unwrap();
    let call = Reply::Call("write_file", json!({"path": "a.txt", "content": "hello"}));
    let model = Model::new([call, Reply::Text("Written.")]);
    let args = ["--dir", ".", "--lease", "1"];
    let server = Server::begin(dir.path(), &model, &args);
    let run = start(&server, &json!({"input": "Write a file.", "session": "garden"}));
    server.until(&run, "waiting");
    server.kill();

    let server = Server::begin(dir.path(), &model, &args);
    let waiting = server.get("/api/questions");
    let question = &waiting["questions"][0]["question"];
    assert_eq!(question["payload"]["tool"], "write_file", "{waiting}");
    let answers = json!({"answers": [{"question": question["id"], "digest": question["digest"], "allow": true}]});
    // The server that was killed may not have given back its lease, which lasts a second.
    let late = Instant::now() + Duration::from_secs(60);
    loop {
        match server.ask("POST", &format!("/api/runs/{run}/answers"), &answers) {
            (202, _) => break,
            refused => assert!(Instant::now() < late, "{refused:?}"),
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(server.until(&run, "finished")["answer"], "Written.");
    assert_eq!(std::fs::read_to_string(dir.path().join("a.txt")).unwrap(), "hello");
    server.kill();
}

#[test]
fn runs_that_begin_after_a_file_changed_have_the_new_agent_and_one_that_waits_keeps_the_old() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("notes.txt"), "Bees hum.").unwrap();
    let file = |system: &str, tool: &str| {
        let tools =
            format!("tools: [{{workspace: {{root: ., tools: [{tool}], change: {{{tool}: {{permission: ask}}}}}}}}]");
        format!("name: agent\nmodel: openai:scripted@chat\nsystem: {system}\n{tools}\n")
    };
    let path = dir.path().join("keeper.yaml");
    std::fs::write(&path, file("You are the old one.", "read_file")).unwrap();
    let read = Reply::Call("read_file", json!({"path": "notes.txt"}));
    let model =
        Model::new([read, Reply::Text("The new one."), Reply::Text("Bees do."), Reply::Text("Still the new one.")]);
    let server = Server::begin(dir.path(), &model, &["keeper.yaml"]);
    let waits = start(&server, &json!({"input": "What hums?"}));
    server.until(&waits, "waiting");

    std::fs::write(&path, file("You are the new one.", "list_files")).unwrap();
    server.says("keeper.yaml changed; ");
    let fresh = start(&server, &json!({"input": "Who are you?"}));
    assert_eq!(server.until(&fresh, "finished")["answer"], "The new one.");
    allow(&server, &waits);
    assert_eq!(server.until(&waits, "finished")["answer"], "Bees do.");
    let told = |at: usize| model.asked.lock().unwrap()[at].to_string();
    assert!(told(1).contains("the new one") && told(1).contains("list_files"), "{}", told(1));
    assert!(told(2).contains("the old one") && told(2).contains("Bees hum.") && !told(2).contains("list_files"));

    std::fs::write(&path, "name: agent\nmodle: openai:scripted@chat\n").unwrap();
    server.says("keeper.yaml:2:1: unknown key 'modle'");
    let fresh = start(&server, &json!({"input": "And you?"}));
    assert_eq!(server.until(&fresh, "finished")["answer"], "Still the new one.");
    assert!(told(3).contains("the new one"), "{}", told(3));
    std::fs::write(&path, file("You are the newest.", "read_file").replace("name: agent", "name: other")).unwrap();
    let said = server.says("keeps its name");
    assert_eq!(said.matches("unknown key").count(), 1, "each change is told once: {said}");
    server.kill();
}

#[test]
fn a_key_is_made_once_and_only_its_hash_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let (code, secret, said) = end(&mut agent(dir.path()), &["serve", "--new-key", "ada", "--keys", "keys.json"]);
    assert_eq!(code, 0, "{said}");
    let secret = secret.trim();
    let kept = std::fs::read_to_string(dir.path().join("keys.json")).unwrap();
    assert!(secret.starts_with("agent_key_") && !kept.contains(secret), "{kept}");
    let mode = || std::fs::metadata(dir.path().join("keys.json")).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(), 0o600);
    std::fs::set_permissions(dir.path().join("keys.json"), Permissions::from_mode(0o640)).unwrap();
    let (code, _, _) = end(&mut agent(dir.path()), &["serve", "--new-key", "bob", "--keys", "keys.json"]);
    assert_eq!((code, mode()), (0, 0o640), "a server that is another user reads the file still");

    let model = Model::new([]);
    let server = Server::begin(dir.path(), &model, &["--keys", "keys.json"]);
    let ask = |key: &str| {
        let mut stream = TcpStream::connect(&server.address).unwrap();
        write!(stream, "GET /api/agents HTTP/1.0\r\nhost: any\r\nauthorization: Bearer {key}\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text.split(' ').nth(1).unwrap().to_owned()
    };
    assert_eq!((ask(secret).as_str(), ask("agent_key_none").as_str()), ("200", "401"));
    server.kill();
}

#[test]
fn an_address_that_others_reach_has_a_key() {
    let dir = tempfile::tempdir().unwrap();
    let model = Model::new([]);
    let mut command = agent_on(dir.path(), &model);
    command.args(["serve", "--listen", "0.0.0.0:0"]).stderr(Stdio::piped());
    let mut process = command.spawn().unwrap();
    let mut line = String::new();
    BufReader::new(process.stderr.take().unwrap()).read_line(&mut line).unwrap();
    process.kill().unwrap();
    process.wait().unwrap();
    assert!(line.contains("need a key") && line.contains("agent_key_"), "{line}");
}

#[test]
fn keys_that_are_added_at_once_are_all_kept() {
    let dir = tempfile::tempdir().unwrap();
    let add = |n: usize| {
        let mut command = agent(dir.path());
        command.args(["serve", "--keys", "keys.json", "--new-key", &format!("key-{n}")]);
        command.stdout(Stdio::null()).spawn().unwrap()
    };
    let adding: Vec<_> = (0..8).map(add).collect();
    for mut child in adding {
        assert!(child.wait().unwrap().success());
    }
    let keys: Value = serde_json::from_slice(&std::fs::read(dir.path().join("keys.json")).unwrap()).unwrap();
    let mut names: Vec<_> = keys["keys"].as_array().unwrap().iter().map(|key| key["name"].as_str().unwrap()).collect();
    names.sort_unstable();
    assert_eq!(names, (0..8).map(|n| format!("key-{n}")).collect::<Vec<_>>());
}
