//! User-defined providers, and the doctor's network checks.

use crate::support;

use std::{fs, path::Path, process::Command};

use serde_json::{Value, json};

use support::{Model, Reply};

fn agent(dir: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_agent"));
    command.current_dir(dir).env_clear().env("AGENT_STORE", "memory").env("HOME", dir);
    command
}

/// Writes a file of providers with one of its own, `corp`, at this address.
fn providers(dir: &Path, url: &str) {
    let corp = json!([{"name": "corp", "wires": ["chat"], "keys": ["CORP_KEY"], "openai": {"base_url": url}}]);
    fs::write(dir.join("providers.json"), corp.to_string()).unwrap();
}

#[test]
fn models_are_named_of_the_providers_in_a_file() {
    let (dir, model) = (tempfile::tempdir().unwrap(), Model::new([Reply::Text("hello from corp")]));
    providers(dir.path(), &model.url);
    let run = |args: &[&str]| {
        let out =
            agent(dir.path()).env("CORP_KEY", "k").args(args).args(["run", "Hi", "-m", "corp:x"]).output().unwrap();
        (out.status.code(), String::from_utf8_lossy(&[out.stdout, out.stderr].concat()).into_owned())
    };
    let (code, said) = run(&["--providers", "providers.json"]);
    assert!(code == Some(0) && said.contains("hello from corp"), "{said}");
    let (code, said) = run(&[]);
    assert!(code == Some(2) && said.contains("there is no provider 'corp'"), "{said}");
    let (code, said) = run(&["--providers", "none.json"]);
    assert!(code == Some(2) && said.contains("none.json"), "{said}");
}

#[test]
fn the_doctor_goes_the_way_that_requests_go_and_says_which_part_of_it_failed() {
    let dir = tempfile::tempdir().unwrap();
    let network = |url: &str, proxy: &str| -> Value {
        providers(dir.path(), url);
        let mut command = agent(dir.path());
        command.env("CORP_KEY", "sk-very-secret").env("HTTPS_PROXY", proxy);
        let out = command.args(["--providers", "providers.json", "doctor", "--network", "--json"]).output().unwrap();
        let out = String::from_utf8(out.stdout).unwrap();
        assert!(!out.contains("secret"), "{out}");
        let lines = out.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines.rev().find(|line| line["what"] == "network").unwrap()
    };
    let server = Model::new([Reply::Status(404)]);
    assert_eq!(network(&server.url, "")["well"], true, "whatever it says, it answers");
    let behind = network("https://corp.example/v1", "http://me:secret@127.0.0.1:1");
    assert!(behind["well"] == false && behind["found"].as_str().unwrap().contains("proxy: "), "{behind}");
    assert!(behind["do"].as_str().unwrap().contains("HTTPS_PROXY"), "{behind}");
    let away = network("http://127.0.0.1:1/v1", "");
    assert!(away["found"].as_str().unwrap().contains("connection: "), "{away}");
}
