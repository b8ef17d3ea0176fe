//! Agents at URLs: what is theirs alone.

use agent::{
    Agent, ErrorKind, RunRequest,
    config::{self, Format, Loader, Registry},
    journal::MemoryJournal,
    testing::{ScriptedModel, Turn},
    tools::{Workspace, peers::A2aAgent},
};
use serde_json::{Value, json};

use super::support::{
    a2a::{How, Server, TOKEN},
    *,
};

fn agent(tool: A2aAgent) -> Agent {
    Agent::of_tool("clerk", tool).build().expect("builds")
}

#[tokio::test]
async fn an_agent_may_answer_at_once_without_a_task() {
    for streams in [false, true] {
        let server = Server::start(How { streams, ..How::default() }).await;
        assert_eq!(finished(agent(server.agent()).run("at once").await).answer, "at once");
    }
}

#[tokio::test]
async fn a_sub_agent_of_a_file_may_be_an_agent_elsewhere() {
    let server = Server::start(How::default()).await;
    let call = json!({"agent": "clerk", "message": "hello"});
    let model = ScriptedModel::new([Turn::calls([("1", "delegate", call)]), Turn::text("so")]);
    let loader = Loader::new().registry(Registry::builtin().model("small", model.clone())).every_model("small");
    let loader = loader.environment(|name| (name == "TOKEN").then(|| TOKEN.to_owned()));
    let peer = format!(
        "{{a2a: {{url: 'http://{}', bearer: '${{env.TOKEN}}', allow_private: ['127.0.0.1'], poll_every: 0.005}}}}",
        server.address
    );
    let file = format!("name: boss\nmodel: none\nsub_agents:\n  clerk: {{description: Helps., peer: {peer}}}\n");
    let loaded = loader.read(file, Format::Yaml).unwrap_or_else(|e| panic!("{e}"));
    for text in [loaded.to_yaml(), config::to_yaml(loaded.definition())] {
        let text = text.expect("writes");
        let again = loader.read(text.as_str(), Format::Yaml).unwrap_or_else(|e| panic!("{e}\n{text}"));
        assert_eq!(again.definition(), loaded.definition(), "{text}");
        assert!(!text.contains(TOKEN), "{text}");
    }
    finished(loaded.into_builder().build().expect("builds").run("go").await);
    assert!(model.requests()[1].results()[0].1.contains("you said hello"), "{:?}", model.requests()[1].results());

    let nothing = "name: boss\nmodel: none\nsub_agents:\n  clerk: {description: Helps.}\n";
    let told = loader.read(nothing, Format::Yaml).expect_err("is no agent").to_string();
    assert!(told.contains("agent:4:10: ") && told.contains("missing"), "{told}");
}

#[tokio::test]
async fn files_go_to_the_agent_whole_and_its_images_come_back() {
    let work = tempfile::tempdir().expect("a directory");
    std::fs::write(work.path().join("a.txt"), "lion").expect("writes");
    let server = Server::start(How::default()).await;
    let clerk = server.builder().workspace(Workspace::open(work.path()).expect("opens")).build().expect("builds");
    let call = json!({"message": "look", "files": ["a.txt"]});
    let outside = json!({"message": "look", "files": ["../a.txt"]});
    let draw = json!({"message": "draw"});
    let calls = [("1", "a2a", call), ("2", "a2a", outside), ("3", "a2a", draw)];
    let model = ScriptedModel::new([Turn::calls(calls), Turn::text("so")]);
    finished(Agent::builder("boss", model.clone()).tool(clerk).build().expect("builds").run("go").await);
    let results = model.requests()[1].results();
    assert_eq!(results[0].1, r#"{"bytes":"bGlvbg==","mimeType":"text/plain","name":"a.txt"}"#);
    assert!(results[1].1.contains("is outside"), "{results:?}");
    assert!(results[2].1.contains("drawn"), "{results:?}");
    assert!(format!("{:?}", model.requests()[1].messages).contains("aW1n"), "the image is in the result");
}

#[tokio::test]
async fn a_task_whose_stream_breaks_off_is_followed_all_the_same() {
    let server = Server::start(How { streams: true, breaks_off: true, ..How::default() }).await;
    assert_eq!(finished(agent(server.agent()).run("hello").await).answer, "you said hello");
    let polled = Server::start(How::default()).await;
    assert_eq!(finished(agent(polled.agent()).run("slow").await).answer, "slowly");
}

#[tokio::test]
async fn garbage_too_much_and_an_agent_elsewhere_fail_the_call_with_the_reason() {
    let server = Server::start(How::default()).await;
    for (task, kind) in [("garbage", ErrorKind::Protocol), ("huge", ErrorKind::Limit)] {
        let error = agent(server.agent()).run(task).await.expect_err(task);
        assert_eq!(error.kind(), kind, "{task}: {error}");
    }
    let elsewhere = Server::start(How { elsewhere: true, ..How::default() }).await;
    let error = agent(elsewhere.agent()).run("hello").await.expect_err("elsewhere");
    assert!(error.message().contains("give its own URL"), "{error}");
}

#[tokio::test]
async fn private_addresses_are_refused_unless_they_are_allowed() {
    let server = Server::start(How::default()).await;
    let url = format!("{:?}", server.agent());
    let url = url.split('"').find(|part| part.starts_with("http")).expect("a URL").to_owned();
    let error = agent(A2aAgent::builder(url).build().expect("builds")).run("hello").await.expect_err("private");
    assert!(error.message().contains("not on the public internet"), "{error}");
    assert!(server.log().is_empty());
}

#[tokio::test]
async fn the_token_is_sent_and_shown_to_nobody_even_if_the_agent_repeats_it() {
    let server = Server::start(How::default()).await;
    let error = agent(server.agent()).run("echo").await.expect_err("echo");
    assert!(error.message().contains("you sent [redacted]"), "{error}");
    let wrong = agent(server.builder().header("authorization", "Bearer wrong").build().expect("builds"));
    drop(wrong);
    assert!(!format!("{:?}", server.builder()).contains(TOKEN));
}

#[tokio::test]
async fn a_conversation_goes_on_in_the_agents_own_context() {
    let (server, journal) = (Server::start(How::default()).await, MemoryJournal::default());
    let process = || Agent::of_tool("clerk", server.agent()).store(journal.clone()).build().expect("builds");
    finished(process().start(RunRequest::user("one").session("s")).await);
    finished(process().start(RunRequest::user("two").session("s")).await);
    finished(process().start(RunRequest::user("three").session("other")).await);
    let contexts = server.contexts();
    assert_eq!((&contexts[0], &contexts[2]), (&Value::Null, &Value::Null), "a new conversation has none");
    assert_eq!(contexts[1], "context-1");
}
