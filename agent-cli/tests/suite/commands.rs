//! The commands, through the program itself.

use crate::support;

use std::{fs, io::Write, process::Stdio};

use serde_json::{Value, json};
use support::{Gate, Model, Reply, agent, agent_on, end};

fn json_lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn only_the_answer_is_written_to_standard_output() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("bees.md"), "Bees hum.").unwrap();
    let model = Model::new([Reply::Call("read_file", json!({"path": "bees.md"})), Reply::Text("They hum.")]);
    let (code, out, err) = end(&mut agent_on(dir.path(), &model), &["run", "--dir", ".", "What do bees do?"]);
    assert_eq!((code, out.as_str()), (0, "They hum.\n"), "{err}");
    assert!(err.contains("read_file") && !err.contains('\x1b'), "{err}");
    assert!(model.last().contains("Bees hum."));
}

#[test]
fn a_file_says_what_the_agent_is_and_what_is_wrong_with_one_is_a_usage_error_with_its_place() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("bees.md"), "Bees hum.").unwrap();
    let file = "name: keeper\ndescription: Knows bees.\nmodel: offline:any\nsystem: Speak of bees.\n\
        tools:\n  - workspace: {root: ., read_only: true}\nmiddleware:\n  - limits: {model_calls: 5}\nstore: sqlite:bees.db\n";
    fs::write(dir.path().join("keeper.yaml"), file).unwrap();
    let model = Model::new([Reply::Call("read_file", json!({"path": "bees.md"})), Reply::Text("They hum.")]);
    let (code, out, err) = end(&mut agent_on(dir.path(), &model), &["run", "keeper.yaml", "What do bees do?"]);
    assert_eq!((code, out.as_str()), (0, "They hum.\n"), "{err}");
    assert!(model.last().contains("Bees hum.") && model.last().contains("Speak of bees."));

    fs::write(dir.path().join("keeper.yaml"), file.replace("tools:", "tolls:")).unwrap();
    let (code, out, err) = end(&mut agent(dir.path()), &["run", "keeper.yaml", "hi"]);
    assert_eq!((code, out.as_str()), (2, ""));
    assert!(err.contains("keeper.yaml:5:1: unknown key 'tolls'") && err.contains("did you mean 'tools'?"), "{err}");
}

#[test]
fn a_new_file_runs_as_it_is_and_its_schema_is_written() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(end(&mut agent(dir.path()), &["new", "helper"]).0, 0);
    let (code, out, err) = end(&mut agent(dir.path()), &["run", "helper.yaml", "What is 6 x 7?"]);
    assert_eq!(code, 0, "{err}");
    assert!(!out.is_empty());
    let (code, out, _) = end(&mut agent(dir.path()), &["schema"]);
    let schema: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, schema["title"].as_str()), (0, Some("Agent file")));
}

#[test]
fn a_prompt_comes_from_standard_input_and_without_one_that_is_a_usage_error() {
    let dir = tempfile::tempdir().unwrap();
    let mut child = agent(dir.path())
        .arg("run")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"What is 6 x 7?\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).contains("I cannot calculate."));
    assert!(String::from_utf8_lossy(&output.stderr).contains("offline stand-in"), "it says who answers");
    assert_eq!(end(&mut agent(dir.path()), &["run"]).0, 2);
    assert_eq!(end(&mut agent(dir.path()), &["run", "--model", "nobody:x", "hi"]).0, 2);
    assert_eq!(
        end(&mut agent(dir.path()), &["run", "--model", "anthropic:claude-opus-4-5", "hi"]).0,
        2,
        "no key is set"
    );
}

#[test]
fn events_are_json_lines_and_the_last_is_the_end() {
    let dir = tempfile::tempdir().unwrap();
    let model = Model::new([Reply::Text("Good day."), Reply::Status(400)]);
    let (code, out, _) = end(&mut agent_on(dir.path(), &model), &["run", "--json", "--session", "s", "hi"]);
    let lines = json_lines(&out);
    let last = lines.last().unwrap();
    assert_eq!(
        (code, &last["end"], &last["answer"], &last["session"]),
        (0, &json!("finished"), &json!("Good day."), &json!("s"))
    );
    assert!(lines.iter().any(|line| line["kind"]["chunk"]["text"]["delta"] == "Good "), "{out}");
    let (code, out, _) = end(&mut agent_on(dir.path(), &model), &["run", "--json", "hi"]);
    assert_eq!((code, &json_lines(&out).last().unwrap()["end"]), (1, &json!("failed")));
}

#[test]
fn files_go_along_and_an_answer_fits_its_schema() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("a.txt"), "a text").unwrap();
    fs::write(dir.path().join("a.png"), b"\x89PNG").unwrap();
    fs::write(dir.path().join("a.bin"), b"\xff\xfe").unwrap();
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": false});
    fs::write(dir.path().join("schema.json"), schema.to_string()).unwrap();
    let model = Model::new([Reply::Text("{\"n\": 7}")]);
    let args = ["run", "-a", "a.txt", "-a", "a.png", "--output-schema", "schema.json", "How many?"];
    let (code, out, err) = end(&mut agent_on(dir.path(), &model), &args);
    assert_eq!(code, 0, "{err}");
    assert_eq!(serde_json::from_str::<Value>(&out).unwrap(), json!({"n": 7}));
    assert!(model.last().contains("a text") && model.last().contains("data:image/png;base64,"), "{}", model.last());
    let (code, _, err) = end(&mut agent_on(dir.path(), &model), &["run", "-a", "a.bin", "hi"]);
    assert!(code == 2 && err.contains("no model reads"), "{err}");
}

/// A run that waits with a call of `write_file`.
fn waiting(dir: &std::path::Path) -> Model {
    let call = Reply::Call("write_file", json!({"path": "new.md", "content": "as the model wants"}));
    let model = Model::new([call, Reply::Text("Done."), Reply::Text("Again.")]);
    let (code, out, err) = end(&mut agent_on(dir, &model), &["run", "--dir", ".", "--session", "it's", "Write."]);
    assert_eq!((code, out.as_str()), (3, ""));
    assert!(err.contains(r"approve 'it'\''s'") && err.contains("write_file"), "it says how to answer: {err}");
    assert!(!dir.join("new.md").exists());
    model
}

#[test]
fn a_run_that_waits_is_answered_by_another_process() {
    let dir = tempfile::tempdir().unwrap();
    let model = waiting(dir.path());
    let approve = |args: &[&str]| {
        let args = [&["approve", "--dir", ".", "it's"], args].concat();
        end(&mut agent_on(dir.path(), &model), &args)
    };
    let (code, out, _) = approve(&[]);
    assert!(code == 3 && out.contains("/approval"), "{out}");
    assert_eq!(approve(&["nothing", "--allow"]).0, 2);
    let (code, out, err) = approve(&["--edit", r#"{"path": "new.md", "content": "as I want"}"#]);
    assert_eq!((code, out.as_str()), (0, "Done.\n"), "{err}");
    assert_eq!(fs::read_to_string(dir.path().join("new.md")).unwrap(), "as I want");
    assert_eq!(approve(&["--allow"]).0, 2, "nothing is open any more");
}

#[test]
fn what_is_denied_is_told_to_the_model_with_its_reason() {
    let dir = tempfile::tempdir().unwrap();
    let model = waiting(dir.path());
    let args = ["approve", "--dir", ".", "it's", "--deny", "--reason", "not today"];
    assert_eq!(end(&mut agent_on(dir.path(), &model), &args).0, 0);
    assert!(model.last().contains("not today") && !dir.path().join("new.md").exists());
}

#[test]
fn a_store_is_checked_rebuilt_and_erased() {
    let dir = tempfile::tempdir().unwrap();
    let run = |args: &[&str]| end(&mut agent(dir.path()), args);
    assert_eq!(run(&["store", "migrate", "--check"]).0, 1, "there is no store yet");
    assert_eq!(run(&["store", "check"]).0, 2, "nor is it made");
    assert_eq!(run(&["store", "migrate"]).0, 0);
    for session in ["a", "b"] {
        assert_eq!(run(&["run", "-s", session, "What do bees do?"]).0, 0);
    }
    for act in [&["migrate", "--check"][..], &["check"], &["repair"], &["rebuild"], &["vacuum"]] {
        let (code, out, err) = run(&[&["store"], act].concat());
        assert_eq!((code, out.as_str()), (0, ""), "{act:?}: {err}");
    }
    let kept = run(&["store", "retain", "--older-than", "1"]);
    assert_eq!((kept.0, kept.1.as_str()), (0, "0 sessions and 0 jobs deleted\n"));
    let erased = run(&["store", "erase", "--session", "a"]);
    assert_eq!((erased.0, erased.1.as_str()), (0, "1 sessions erased\n"), "{}", erased.2);
    let (_, left, _) = run(&["sessions", "--json"]);
    assert!(left.contains("\"b\"") && !left.contains("\"a\""), "{left}");
    assert_eq!(run(&["store", "erase"]).0, 2, "whose data is not said");
}

/// Sends a signal to a run that is in progress; returns its exit code and standard error.
fn signalled(dir: &std::path::Path, signal: &str) -> (Option<i32>, String) {
    let model = Model::new([Reply::Held("So far ", Gate::default(), "never"), Reply::Text("Now it is whole.")]);
    let mut command = agent_on(dir, &model);
    let mut child =
        command.args(["run", "--session", "s", "hi"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut first = [0; 7];
    std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut first).unwrap();
    assert_eq!(&first, b"So far ");
    let killed = std::process::Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    let output = child.wait_with_output().unwrap();
    // The lease is released: the next process need not wait for it to expire.
    let (code, out, err) = end(&mut agent_on(dir, &model), &["resume", "s"]);
    assert_eq!((code, out.as_str()), (0, "Now it is whole.\n"), "{err}");
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn ctrl_c_cancels_and_the_run_is_resumed_later() {
    let dir = tempfile::tempdir().unwrap();
    let (code, err) = signalled(dir.path(), "-INT");
    assert_eq!(code, Some(130));
    assert!(err.contains("agent resume s"), "{err}");
}

#[test]
fn a_request_to_terminate_cancels_like_ctrl_c_and_has_its_own_exit_code() {
    let dir = tempfile::tempdir().unwrap();
    let (code, err) = signalled(dir.path(), "-TERM");
    assert_eq!(code, Some(143));
    assert!(err.contains("agent resume s"), "{err}");
    let (_, timeline, _) = end(&mut agent(dir.path()), &["inspect", "s", "--timeline"]);
    assert!(timeline.contains("cancelled"), "{timeline}");
}

#[test]
fn a_reader_that_goes_away_cancels_the_run_and_nothing_is_said_of_it() {
    let dir = tempfile::tempdir().unwrap();
    let model = Model::new([Reply::Flood(20_000, "over")]);
    let mut command = agent_on(dir.path(), &model);
    let mut child =
        command.args(["run", "--session", "s", "hi"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut first = [0; 5];
    std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut first).unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), String::from_utf8_lossy(&output.stderr).as_ref()), (Some(130), ""));
    let (_, timeline, _) = end(&mut agent(dir.path()), &["inspect", "s", "--timeline"]);
    assert!(timeline.contains("cancelled"), "{timeline}");
}

#[test]
fn sessions_are_listed_searched_inspected_exported_and_deleted() {
    let dir = tempfile::tempdir().unwrap();
    let model = Model::new([Reply::Text("Bees <script>hum</script>."), Reply::Text("Cats.")]);
    for (session, text) in [("garden", "What hums?"), ("house", "What purrs?")] {
        assert_eq!(end(&mut agent_on(dir.path(), &model), &["run", "-s", session, text]).0, 0);
    }
    let say = |args: &[&str]| end(&mut agent(dir.path()), args);
    let (_, listed, _) = say(&["sessions"]);
    assert!(listed.find("house") < listed.find("garden"), "the newest first: {listed}");
    let (_, found, _) = say(&["sessions", "search", "BEES", "--json"]);
    assert_eq!(json_lines(&found)[0]["session"], "garden");
    assert_eq!(json_lines(&found).len(), 1);

    let (code, shown, _) = say(&["inspect", "garden"]);
    assert!(
        code == 0 && shown.contains("1 of models") && shown.contains("What hums?") && shown.contains('█'),
        "{shown}"
    );
    let (_, shown, _) = say(&["inspect", "garden", "--json", "--changes", "--messages", "--flame", "--timeline"]);
    let shown: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(
        (&shown["changes"][0]["news"][0], &shown["spans"][0]["kind"]),
        (&json!("+ user: What hums?"), &json!("run"))
    );

    let (_, page, _) = say(&["export", "--format", "html"]);
    assert!(
        page.starts_with("<!doctype html>") && page.contains("&lt;script&gt;hum") && !page.contains("<script"),
        "{page}"
    );
    let (_, text, _) = say(&["export", "garden", "--format", "markdown"]);
    assert!(text.contains("**User**\n\nWhat hums?"), "{text}");
    let (_, lines, _) = say(&["export", "garden"]);
    assert!(json_lines(&lines).len() > 3);

    assert_eq!(say(&["sessions", "delete", "garden"]).0, 0);
    assert_eq!(say(&["sessions", "delete", "garden"]).0, 2);
    assert_eq!(say(&["inspect", "garden"]).0, 2);
    assert_eq!(say(&["--store", "elsewhere.db", "sessions"]).0, 2, "a store that is only read is not made");
    assert!(!dir.path().join("elsewhere.db").exists());
}

#[test]
fn a_run_is_replayed_forked_with_an_edit_and_compared() {
    let dir = tempfile::tempdir().unwrap();
    let model = Model::new([Reply::Text("Bees."), Reply::Text("Wasps.")]);
    let say = |args: &[&str]| end(&mut agent_on(dir.path(), &model), args);
    assert_eq!(say(&["run", "-s", "one", "What hums?"]).0, 0);
    let (code, out, err) = say(&["replay", "one"]);
    assert_eq!((code, out.as_str()), (0, "Bees.\n"), "{err}");
    assert_eq!(model.asked.lock().unwrap().len(), 1, "nobody is asked again");
    let (code, out, err) = say(&["fork", "one", "--into", "two", "--message", "What stings?"]);
    assert_eq!((code, out.as_str()), (0, "Wasps.\n"), "{err}");
    assert!(model.last().contains("What stings?") && !model.last().contains("What hums?"));
    let (code, out, _) = say(&["diff", "one", "two"]);
    assert!(code == 1 && out.contains("What hums?") && out.contains("What stings?"), "{out}");
    assert_eq!(say(&["diff", "one", "one"]).0, 0);
}

#[test]
fn tools_are_listed_and_called_by_hand_with_their_permissions() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("bees.md"), "Bees hum.").unwrap();
    let say = |args: &[&str]| end(&mut agent(dir.path()), args);
    let (_, listed, _) = say(&["tools", "--dir", ".", "--json"]);
    assert!(
        json_lines(&listed).iter().any(|tool| tool["name"] == "read_file" && tool["parameters"]["type"] == "object")
    );
    let (code, out, err) = say(&["tools", "--dir", ".", "call", "read_file", r#"{"path": "bees.md"}"#]);
    assert!(code == 0 && out.contains("Bees hum."), "{out}{err}");
    let write = [r#"{"path": "a.md", "content": "x"}"#];
    let call = |more: &[&str]| say(&[&["tools", "--dir", "."], more, &["call", "write_file"], &write].concat());
    assert_eq!(call(&[]).0, 3, "what changes something is asked about");
    assert!(!dir.path().join("a.md").exists());
    assert_eq!(call(&["--allow-tool", "write_*"]).0, 0);
    assert!(dir.path().join("a.md").exists());
    assert_eq!(say(&["tools", "--dir", ".", "call", "nothing"]).0, 2);
}

#[test]
fn workers_and_their_queue_need_a_database_that_processes_share() {
    let dir = tempfile::tempdir().unwrap();
    for args in [&["worker", "--store", "s.db"][..], &["queue", "--store", "memory"]] {
        let (code, _, err) = end(&mut agent(dir.path()), args);
        assert!(code == 2 && err.contains("--store postgres://"), "{args:?}: {code} {err}");
    }
}

#[test]
fn options_that_mean_nothing_with_an_engine_are_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let restate = ["--engine", "restate://127.0.0.1:1"];
    let refused = |args: &[&str], option: &str| {
        let (code, _, err) = end(&mut agent(dir.path()), args);
        assert!(code == 2 && err.contains(option), "{args:?}: {code} {err}");
    };
    for option in [&["--per-tenant", "2"][..], &["--concurrency", "4"], &["--lease", "9"]] {
        refused(&[&["worker"][..], &restate, option].concat(), option[0]);
    }
    for option in [["--per-tenant", "2"], ["--lease", "9"]] {
        refused(&[&["serve"][..], &restate, &option].concat(), option[0]);
    }
    for option in [["--listen", "127.0.0.1:1"], ["--advertise", "http://a"]] {
        refused(&[&["worker", "--store", "postgres://127.0.0.1:1/a"], &option[..]].concat(), option[0]);
    }
    refused(&["worker", "--engine", "embedded"], "'workers' or restate://");
}

#[test]
fn what_goes_on_with_a_run_of_restate_says_where_that_is_done() {
    let dir = tempfile::tempdir().unwrap();
    for command in [&["resume", "s"][..], &["approve", "s"], &["queue"], &["studio", "agent.yaml"]] {
        let args = [command, &["--store", "restate://127.0.0.1:1"]].concat();
        let (code, _, err) = end(&mut agent(dir.path()), &args);
        assert!(code == 2 && err.contains("agent serve FILE --engine restate://"), "{args:?}: {code} {err}");
    }
}

#[test]
fn a_service_that_listens_everywhere_must_say_where_it_is_reached() {
    let dir = tempfile::tempdir().unwrap();
    for listen in ["0.0.0.0:9080", "[::]:9080"] {
        let args = ["worker", "--engine", "restate://127.0.0.1:1", "--listen", listen];
        let (code, _, err) = end(&mut agent(dir.path()), &args);
        assert!(code == 2 && err.contains("--advertise http://HOST:9080"), "{listen}: {code} {err}");
    }
}

#[test]
fn tools_are_served_over_standard_input_and_output() {
    let dir = tempfile::tempdir().unwrap();
    let mut child = agent(dir.path())
        .args(["mcp", "--tools", "--dir", "."])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let params =
        json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    let mut input = child.stdin.take().unwrap();
    for message in [
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"}),
    ] {
        writeln!(input, "{message}").unwrap();
    }
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().unwrap()));
    let listed = lines.find_map(|line| line.ok().filter(|line| line.contains("\"id\":2"))).expect("an answer");
    assert!(listed.contains("read_file"), "{listed}");
    drop(input);
    assert!(child.wait().unwrap().success());
}

#[test]
fn an_agent_is_asked_over_lines_of_json() {
    let dir = tempfile::tempdir().unwrap();
    let mut child = agent(dir.path()).arg("stdio").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let params = json!({"messages": "What do bees do?", "session_id": "garden"});
    writeln!(input, "{}", json!({"jsonrpc": "2.0-stream", "id": "1", "method": "agent.stream", "params": params}))
        .unwrap();
    let lines = std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().unwrap()));
    let frames: Vec<serde_json::Value> = lines
        .map(|line| serde_json::from_str(&line.unwrap()).expect("nothing else is written"))
        .take_while(|frame: &serde_json::Value| frame.get("result").is_none())
        .collect();
    assert_eq!(frames.last().unwrap()["event"]["type"], "RUN_FINISHED");
    drop(input);
    assert!(child.wait().unwrap().success());
}

#[test]
fn models_completions_the_manual_and_a_new_file_need_no_store_and_no_key() {
    let dir = tempfile::tempdir().unwrap();
    let say = |args: &[&str]| end(&mut agent(dir.path()), args);
    let (code, out, _) = say(&["models", "--provider", "anthropic"]);
    assert!(code == 0 && out.contains("anthropic:claude"), "{out}");
    assert_eq!(say(&["models", "no-such-model"]).0, 1);
    assert!(say(&["completions", "bash"]).1.contains("_agent"));
    let manual = say(&["man"]).1;
    assert!(
        manual.contains(".TH") && manual.contains("agent\\-approve") || manual.contains("agent approve"),
        "{manual}"
    );
    let (code, out, err) = say(&["new", "librarian", "--system", "Say \"where\"."]);
    assert_eq!((code, out.as_str()), (0, "librarian.yaml\n"), "{err}");
    assert!(fs::read_to_string(dir.path().join("librarian.yaml")).unwrap().contains(r#"system: "Say \"where\".""#));
    assert_eq!(say(&["new", "librarian"]).0, 2, "a file that is there is not replaced");
    assert_eq!(say(&["new", "../librarian"]).0, 2);
    assert!(!dir.path().join("sessions.db").exists());
}

#[test]
fn a_file_of_nexau_is_written_as_one_of_ours_that_says_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let say = |args: &[&str]| end(agent(dir.path()).env("OPENAI_API_KEY", "k"), args);
    let nexau = "type: agent\nname: clerk\nsystem_prompt: You count.\nmax_iterations: 7\n\
                 llm_config: {model: gpt-5, temperature: 0.5}\n";
    fs::write(dir.path().join("nexau.yaml"), nexau).unwrap();
    let (code, out, err) = say(&["new", "--from", "nexau.yaml"]);
    assert_eq!((code, out.as_str()), (0, "clerk.yaml\n"), "{err}");
    let written = fs::read_to_string(dir.path().join("clerk.yaml")).unwrap();
    assert!(written.contains("You count.") && !written.contains("llm_config"), "{written}");
    let (code, said, err) = say(&["doctor", "clerk.yaml"]);
    assert!(said.contains("agent 'clerk', read from clerk.yaml") && !said.contains("NexAU"), "{code} {said} {err}");
    assert_eq!(say(&["new", "--from", "nexau.yaml"]).0, 2, "a file that is there is not replaced");
    assert_eq!(say(&["new", "--from", "nexau.yaml", "teller"]).1, "teller.yaml\n");
}

#[test]
fn the_doctor_says_what_is_set_and_never_a_key() {
    let dir = tempfile::tempdir().unwrap();
    let mut command = agent(dir.path());
    let (_, out, _) = end(command.env("ANTHROPIC_API_KEY", "sk-very-secret"), &["doctor", "--json"]);
    assert!(!out.contains("sk-very-secret"));
    let of = |what: &str| json_lines(&out).into_iter().find(|line| line["what"] == what).unwrap_or_default();
    assert_eq!(of("key")["found"], "anthropic: ANTHROPIC_API_KEY is set");
    assert_eq!((&of("store")["well"], of("sandbox")["found"].is_string()), (&json!(true), true));
    fs::write(dir.path().join("sessions.db"), "no database, but long enough to be looked at").unwrap();
    let (code, out, _) = end(&mut agent(dir.path()), &["doctor"]);
    assert!(code == 1 && out.contains("!!  store"), "{out}");
}

#[test]
fn the_doctor_says_what_is_wrong_with_a_file_and_what_each_part_of_it_needs() {
    let dir = tempfile::tempdir().unwrap();
    let file = "name: keeper\ndescription: d\nmodel: offline:any\nstore: sqlite:kept.db\ntools:\n  - workspace: {root: ., read_only: true}\n";
    let doctor = |text: &str| {
        fs::write(dir.path().join("keeper.yaml"), text).unwrap();
        let (code, out, err) = end(agent(dir.path()).env_remove("AGENT_STORE"), &["doctor", "--json", "keeper.yaml"]);
        (code, json_lines(&out), err)
    };
    let of = |found: &[Value], what: &str| found.iter().find(|line| line["what"] == what).cloned().unwrap_or_default();
    let (code, found, err) =
        doctor(&format!("{file}sub_agents: {{helper: {{description: h, agent: {{name: h, model: 'offline:h'}}}}}}\n"));
    assert_eq!(code, 0, "{found:?} {err}");
    assert_eq!(of(&found, "sub-agents")["found"], "of keeper: helper; offered to its model");
    assert!(of(&found, "store")["found"].as_str().unwrap().contains("kept.db: not there yet"));
    assert!(of(&found, "tools")["found"].as_str().unwrap().contains("read_file"));
    let (code, found, _) = doctor(&format!("{file}  - mcp: {{name: files, command: [/no/such/program]}}\n"));
    let server = of(&found, "server");
    assert!(
        code == 1 && server["well"] == false && server["found"].as_str().unwrap().contains("/no/such/program"),
        "{server}"
    );
    let (code, found, _) = doctor(&file.replace("tools:", "tolls:").replace("offline:any", "nobody:x"));
    assert_eq!(code, 1);
    assert!(found[0]["found"].as_str().unwrap().contains("keeper.yaml:5:1: unknown key 'tolls'"), "{found:?}");
    assert!(found[0]["do"].as_str().unwrap().contains("did you mean 'tools'?"));
    let (code, found, _) = doctor(&file.replace("offline:any", "anthropic:claude-opus-4-5"));
    assert!(code == 1 && found[0]["found"].as_str().unwrap().contains("ANTHROPIC_API_KEY"), "{found:?}");
    assert_eq!(end(&mut agent(dir.path()), &["doctor", "none.yaml"]).0, 2);
    let plugin = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/plugins/library");
    let (code, out, _) = end(&mut agent(dir.path()), &["doctor", plugin]);
    assert!(code == 0 && out.contains("script find_shelf") && out.contains("digest: '"), "{out}");
}

#[test]
fn the_sessions_of_a_file_are_in_its_store_and_known_by_what_was_said_first() {
    let dir = tempfile::tempdir().unwrap();
    let say = |args: &[&str]| end(agent(dir.path()).env_remove("AGENT_STORE"), args);
    fs::write(dir.path().join("keeper.yaml"), "name: keeper\nmodel: offline:any\nstore: sqlite:kept.db\n").unwrap();
    assert_eq!(say(&["run", "keeper.yaml", "-s", "garden", "What do bees do?"]).0, 0);
    let (code, out, err) = say(&["sessions", "--file", "keeper.yaml"]);
    assert!(code == 0 && out.contains("garden") && out.contains("What do bees do?"), "{out}{err}");
    assert_eq!(say(&["inspect", "--file", "keeper.yaml", "garden"]).0, 0);
    assert_eq!(say(&["sessions"]).0, 2, "nothing is kept elsewhere");
}

#[test]
fn telemetry_of_a_file_is_sent_and_a_collector_that_is_not_there_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let (heard, hears) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, heard) = (stream.unwrap(), heard.clone());
            std::thread::spawn(move || {
                let mut bytes = [0; 1 << 16];
                let read = std::io::Read::read(&mut stream, &mut bytes).unwrap_or(0);
                let _ = heard.send(String::from_utf8_lossy(&bytes[..read]).into_owned());
                let _ = write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
            });
        }
    });
    let file = |endpoint: &str| {
        let text = format!("name: keeper\nmodel: offline:any\ntelemetry: {{endpoint: '{endpoint}', content: off}}\n");
        fs::write(dir.path().join("keeper.yaml"), text).unwrap();
        end(&mut agent(dir.path()), &["run", "keeper.yaml", "What do bees do?"])
    };
    let (code, _, err) = file(&endpoint);
    assert_eq!(code, 0, "{err}");
    let requests: Vec<_> = hears.try_iter().collect();
    assert!(requests.iter().any(|request| request.starts_with("POST /v1/traces")), "{requests:?}");
    assert!(!requests.iter().any(|request| request.contains("bees")), "no content unless the file says so");
    let (code, out, _) = file("http://127.0.0.1:1");
    assert!(code == 0 && !out.is_empty());
}

#[test]
fn a_chat_without_a_terminal_says_what_to_use() {
    let dir = tempfile::tempdir().unwrap();
    let (code, _, err) = end(&mut agent(dir.path()), &["chat"]);
    assert!(code == 2 && err.contains("agent run"), "{err}");
}
