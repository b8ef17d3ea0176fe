//! The offline model, driven by a small loop with tools over a few files.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use agent_core::{
    AssistantMessage, Chunk, History, Message, Model, ModelParams, ModelRequest, RunIds, ToolCall, ToolChoice,
    ToolMessage, ToolSpec, ToolSpecs, testing::detached_run_as,
};
use agent_llm::offline::OfflineModel;
use futures::FutureExt;
use proptest::prelude::*;
use regex::Regex;
use serde_json::{Value, json};

const FILES: &[(&str, &str)] = &[
    ("CHANGES.txt", "1.2: Stations have call signs.\n1.1: Retries back off.\n"),
    (
        "README.md",
        "# Courier\n\nCourier sends messages to remote stations.\n\n## Retries\n\nA message that was refused is sent again \
         three times,\nwith a pause that doubles each time.\n",
    ),
    (
        "src/retry.rs",
        "//! Sending again.\n\n/// The pause before the first retry, in milliseconds.\nconst PAUSE: u64 = 250;\n\n\
         /// Sends until it worked or `times` is reached.\npub fn with_retries(times: u32) {\n    backoff(PAUSE);\n}\n\n\
         fn backoff(pause: u64) {\n    sleep(pause * 2);\n}\n",
    ),
    (
        "src/station.rs",
        "pub struct Station {\n    name: String,\n}\n\nimpl Station {\n    pub fn call_sign(&self) {}\n}\n",
    ),
];

/// An in-memory workspace, with tools to inspect it.
struct Workspace {
    files: BTreeMap<&'static str, &'static str>,
    tools: ToolSpecs,
    /// Tasks of sub-agents.
    delegated: Mutex<Vec<String>>,
}

/// The calls of each message, and the answer.
struct Asked {
    turns: Vec<Vec<(String, String)>>,
    text: String,
}

impl Asked {
    fn tools(&self, turn: usize) -> Vec<&str> {
        self.turns[turn].iter().map(|(name, _)| name.as_str()).collect()
    }
}

fn tool(name: &str, description: &str, properties: Value, required: &[&str]) -> ToolSpec {
    let mut schema = json!({"type": "object", "required": required});
    schema["properties"] = properties;
    ToolSpec::new(name, description, schema)
}

fn file_tools() -> Vec<ToolSpec> {
    let text = || json!({"type": "string"});
    let line = || json!({"type": "integer"});
    let search = "Searches file contents by regular expression; `path:line: text` for each match.";
    let read = json!({"path": text(), "start_line": line(), "end_line": line()});
    vec![
        tool("list_files", "Lists the files of the workspace.", json!({"path": text(), "depth": line()}), &[]),
        tool("find_files", "Finds files whose path matches a glob.", json!({"glob": text()}), &["glob"]),
        tool("search_files", search, json!({"pattern": text(), "glob": text(), "max_results": line()}), &["pattern"]),
        tool("read_file", "Reads a file, or a range of its lines.", read, &["path"]),
        tool("write_file", "Writes a file.", json!({"path": text(), "content": text()}), &["path", "content"]),
    ]
}

fn with_delegation() -> Vec<ToolSpec> {
    let text = || json!({"type": "string"});
    let agents =
        "Gives a task to a sub-agent:\n- **archivist**: Knows the changes between versions.\n- **poet**: Rhymes.";
    let delegate = tool("delegate", agents, json!({"agent": text(), "message": text()}), &["agent", "message"]);
    file_tools().into_iter().chain([delegate]).collect()
}

impl Workspace {
    fn with(tools: Vec<ToolSpec>) -> Self {
        let tools = tools.into_iter().collect();
        Self { files: FILES.iter().copied().collect(), tools, delegated: Mutex::default() }
    }

    fn run(&self, call: &ToolCall) -> ToolMessage {
        let args: Value = serde_json::from_str(&call.arguments).expect("the model writes valid JSON");
        let arg = |name: &str| args[name].as_str().unwrap_or_default();
        let result = match &*call.name {
            "list_files" => {
                Ok(self.files.iter().map(|(path, text)| format!("{path} ({} bytes)\n", text.len())).collect())
            }
            "find_files" => Ok(self.find(arg("glob"))),
            "search_files" => Ok(self.search(arg("pattern"))),
            "read_file" => self.read(arg("path"), &args),
            "delegate" => {
                self.delegated.lock().expect("free").push(arg("message").to_owned());
                Ok(Self::with(file_tools()).ask_at_depth(arg("message"), 1).text)
            }
            other => panic!("the model called {other}"),
        };
        let failed = result.is_err();
        ToolMessage::text(call.id.clone(), call.name.clone(), result.unwrap_or_else(|e| e), failed)
    }

    fn find(&self, glob: &str) -> String {
        let end = glob.trim_start_matches(['*', '/']);
        let found: Vec<_> = self.files.keys().copied().filter(|path| path.ends_with(end)).collect();
        if found.is_empty() { "No files match.".to_owned() } else { found.join("\n") }
    }

    fn search(&self, pattern: &str) -> String {
        let pattern = Regex::new(pattern).expect("the model writes valid expressions");
        let mut found = Vec::new();
        for (path, text) in &self.files {
            let lines = (1..).zip(text.lines()).filter(|(_, line)| pattern.is_match(line));
            found.extend(lines.map(|(n, line)| format!("{path}:{n}: {line}")));
        }
        if found.is_empty() { "No matches.".to_owned() } else { found.join("\n") }
    }

    fn read(&self, path: &str, args: &Value) -> Result<String, String> {
        let text = self.files.get(path).ok_or_else(|| format!("There is no file '{path}'."))?;
        let (first, last) = (args["start_line"].as_u64().unwrap_or(1), args["end_line"].as_u64().unwrap_or(u64::MAX));
        let lines = (1_u64..).zip(text.lines()).filter(|(n, _)| (first..=last).contains(n));
        Ok(lines.map(|(n, line)| format!("{n:>5}| {line}\n")).collect())
    }

    fn ask(&self, question: &str) -> Asked {
        self.ask_at_depth(question, 0)
    }

    /// Calls the model and runs its tool calls until it answers.
    fn ask_at_depth(&self, question: &str, depth: u32) -> Asked {
        let mut history = asked(question);
        let mut turns = Vec::new();
        loop {
            let reply = say(self.request(&history, depth));
            if !reply.has_calls() {
                return Asked { turns, text: reply.text() };
            }
            let results = reply.calls().map(|call| self.run(call)).collect();
            turns.push(reply.calls().map(|call| (call.name.to_string(), call.arguments.clone())).collect());
            assert!(turns.len() <= 3, "the model goes on and on: {turns:?}");
            history.push_turn(reply, results).expect("paired");
        }
    }

    fn request(&self, history: &History, depth: u32) -> ModelRequest {
        let mut ids = RunIds::root("test", "test");
        ids.depth = depth;
        let mut req = ModelRequest::new(detached_run_as(ids, history.clone()).cx().clone());
        req.tools = self.tools.clone();
        req
    }
}

fn asked(question: &str) -> History {
    History::from_messages([Message::user(question)]).expect("paired")
}

fn say(req: ModelRequest) -> AssistantMessage {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("starts");
    runtime.block_on(OfflineModel.call(req)).expect("replies").message
}

#[test]
fn a_question_is_searched_for_read_about_and_answered_with_quotations() {
    let asked = Workspace::with(file_tools()).ask("How does the backoff between retries work?");
    assert_eq!(asked.tools(0), ["search_files"; 5], "two words in all files and in those for people, and headings");
    assert!(asked.tools(1).len() > 1 && asked.tools(1).iter().all(|tool| *tool == "read_file"), "{:?}", asked.turns[1]);
    assert_eq!(asked.turns.len(), 2);
    assert!(asked.text.contains("1. `src/retry.rs:"), "{}", asked.text);
    assert!(asked.text.contains("   11 | fn backoff(pause: u64) {"), "{}", asked.text);
    assert!(asked.text.contains("`README.md:"), "two files say more than one: {}", asked.text);
    assert!(asked.text.contains("offline model") && asked.text.contains("OPENAI_API_KEY"), "{}", asked.text);
}

#[test]
fn a_sub_agent_that_fits_is_asked_beside_the_searches_and_quoted() {
    let workspace = Workspace::with(with_delegation());
    let asked = workspace.ask("Where is Station defined? Since which versions do stations have call signs?");
    assert_eq!(asked.tools(0).iter().filter(|tool| **tool == "delegate").count(), 1, "{:?}", asked.turns);
    assert!(asked.tools(0).contains(&"search_files"));
    let handed_over = workspace.delegated.lock().expect("free").clone();
    assert_eq!(handed_over, ["Since which versions do stations have call signs?"]);
    assert!(asked.text.contains("The sub-agent `archivist` says:"), "{}", asked.text);
    assert!(asked.text.contains(">     1 | 1.2: Stations have call signs."), "{}", asked.text);
    assert!(asked.text.contains("    1 | pub struct Station {"), "{}", asked.text);
    assert_eq!(asked.text.matches("OPENAI_API_KEY").count(), 1, "only the top says what it is: {}", asked.text);
}

#[test]
fn a_file_that_is_named_is_found_and_read() {
    let asked = Workspace::with(file_tools()).ask("What does station.rs have?");
    assert!(asked.turns[0].contains(&("find_files".into(), json!({"glob": "**/station.rs"}).to_string())));
    assert!(asked.turns[1][0].1.contains("src/station.rs"), "{:?}", asked.turns);
    assert!(asked.text.contains("`src/station.rs:"), "{}", asked.text);
}

#[test]
fn a_question_about_everything_is_answered_from_what_people_read_first() {
    let asked = Workspace::with(file_tools()).ask("What is this project about?");
    assert_eq!((asked.tools(0), asked.tools(1)), (vec!["list_files"], vec!["read_file", "read_file"]));
    assert!(asked.text.contains("Courier sends messages to remote stations."), "{}", asked.text);
}

#[test]
fn nothing_found_is_said() {
    let asked = Workspace::with(file_tools()).ask("Who built the zeppelin adapter?");
    assert!(asked.text.starts_with("I found nothing on `zeppelin`, `adapter`, `built`."), "{}", asked.text);
}

#[test]
fn what_it_cannot_do_it_declines_and_says_how_to_connect_a_model() {
    for (tools, question, answer) in [
        (Vec::new(), "Where is the backoff?", "I have no tool here"),
        (file_tools(), "Write a poem about retries.", "I cannot write or change anything."),
        (file_tools(), "What is 17 * 23?", "I cannot calculate."),
        (file_tools(), "Hello, what can you do?", "Tell me what to look for"),
    ] {
        let asked = Workspace::with(tools).ask(question);
        assert!(asked.turns.is_empty() && asked.text.starts_with(answer), "{question}: {}", asked.text);
        assert!(asked.text.contains("OPENAI_API_KEY") && asked.text.contains("--model ollama:"), "{}", asked.text);
    }
}

#[test]
fn a_search_that_is_no_file_search_is_quoted_as_it_is() {
    let find = tool("lookup", "Searches the handbook.", json!({"query": {"type": "string"}}), &["query"]);
    let workspace = Workspace::with(vec![find]);
    let mut history = asked("How many days of holiday are there?");
    let first = say(workspace.request(&history, 0));
    let call = first.calls().next().expect("searches").clone();
    assert_eq!(call.arguments, json!({"query": "holiday days"}).to_string());
    let found = "Everybody has 30 days of holiday.\n\nTravel is paid for.";
    history.push_turn(first, vec![ToolMessage::text(call.id, "lookup", found, false)]).expect("paired");
    let answer = say(workspace.request(&history, 0)).text();
    assert!(answer.contains("`lookup`\n```\nEverybody has 30 days of holiday.\n```"), "{answer}");
    assert!(!answer.contains("Travel"), "{answer}");
}

#[test]
fn tools_that_fail_are_told_about() {
    let workspace = Workspace::with(file_tools());
    let mut history = asked("Where is the backoff?");
    let mut reply = say(workspace.request(&history, 0));
    while reply.has_calls() {
        let fail = |call: &ToolCall| ToolMessage::text(call.id.clone(), call.name.clone(), "The disk is gone.", true);
        let results = reply.calls().map(fail).collect();
        history.push_turn(reply, results).expect("paired");
        reply = say(workspace.request(&history, 0));
    }
    assert!(reply.text().contains("The tool `search_files` failed: The disk is gone."), "{}", reply.text());
}

#[test]
fn the_parameters_of_the_request_are_obeyed() {
    let workspace = Workspace::with(file_tools());
    let with = |params: ModelParams| {
        let mut req = workspace.request(&asked("How does the backoff between retries work?"), 0);
        req.params = Arc::new(params);
        say(req)
    };
    let mut serial = ModelParams::default();
    serial.parallel_tool_calls = Some(false);
    assert_eq!(with(serial).calls().count(), 1);
    assert_eq!(with(ModelParams::default().tool_choice(ToolChoice::None)).calls().count(), 0);
}

#[test]
fn it_streams_word_by_word_what_it_says_and_says_the_same_each_time() {
    let workspace = Workspace::with(Vec::new());
    let streamed = Arc::new(Mutex::new(Vec::new()));
    let mut req = workspace.request(&asked("Where is the backoff?"), 0);
    let seen = streamed.clone();
    req.sink = req.sink.with_observer(move |chunk| {
        if let Chunk::Text { delta, .. } = chunk {
            seen.lock().expect("free").push(delta.clone());
        }
    });
    let text = say(req).text();
    let words = streamed.lock().expect("free").clone();
    assert!(words.len() > 20 && words.concat() == text);
    assert_eq!(say(workspace.request(&asked("Where is the backoff?"), 0)).text(), text);
}

#[test]
fn a_call_that_is_dropped_stops_between_two_words() {
    let mut req = Workspace::with(Vec::new()).request(&asked("Where is the backoff?"), 0);
    let count = Arc::new(Mutex::new(0));
    let seen = count.clone();
    req.sink = req.sink.with_observer(move |_| *seen.lock().expect("free") += 1);
    let model = OfflineModel;
    let mut call = model.call(req);
    assert!((&mut call).now_or_never().is_none(), "it gives way after each chunk");
    drop(call);
    assert_eq!(*count.lock().expect("free"), 1);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_question_is_answered_after_few_messages_with_calls(
        question in "\\PC{0,60}|([a-zA-Z_./`'?]{1,9} ){1,12}"
    ) {
        let asked = Workspace::with(with_delegation()).ask(&question);
        prop_assert!(asked.turns.len() <= 3 && !asked.text.is_empty());
    }
}
