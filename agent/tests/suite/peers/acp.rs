//! Agents that are programs: what is theirs alone.

use std::{fs, sync::Arc};

use agent::{
    Agent, ErrorKind, RunRequest,
    journal::MemoryJournal,
    testing::{ScriptedModel, Turn},
    tools::{
        Stdio, Workspace,
        peers::{ACP_ELICITATION, ACP_PERMISSION, AcpAgent, AcpBuilder, Permission},
        sandbox::{Exit, MemorySandbox},
    },
};
use serde_json::json;
use tempfile::TempDir;

use super::support::*;

fn home() -> TempDir {
    tempfile::tempdir().expect("a directory")
}

fn agent(builder: AcpBuilder) -> Agent {
    Agent::of_tool("coder", builder.build().expect("builds")).build().expect("builds")
}

#[tokio::test]
async fn a_program_that_dies_hangs_or_sends_garbage_or_too_much_fails_the_call_with_the_reason() {
    let home = home();
    let cases = [
        ("die", ErrorKind::Transport, "ended before it answered"),
        ("kill", ErrorKind::Transport, "ended before it answered"),
        ("garbage", ErrorKind::Protocol, "does not keep to its protocol"),
        ("huge", ErrorKind::Limit, "a message of more than"),
        ("endless", ErrorKind::Limit, "answers with more than"),
        ("hang", ErrorKind::Timeout, "gave no answer within"),
    ];
    for (task, kind, text) in cases {
        let patience = if task == "hang" { ms(3000) } else { ms(60_000) };
        let agent = agent(program(home.path()).timeout(patience));
        let error = agent.run(task).await.expect_err(task);
        assert_eq!(error.kind(), kind, "{task}: {error}");
        assert!(error.message().contains(text), "{task}: {error}");
    }
    let none = agent(AcpAgent::builder(Stdio::new("no-such-program-at-all")));
    assert!(none.run("hello").await.expect_err("not there").message().contains("no-such-program-at-all"));
}

#[tokio::test]
async fn a_program_that_is_killed_costs_its_caller_a_result_and_not_the_run() {
    let home = home();
    let peer = Agent::of_tool("coder", program(home.path()).build().expect("builds"));
    let end = finished(boss(peer, "kill").build().expect("builds").run("go").await);
    assert!(end.answer.contains("ended before it answered"), "{}", end.answer);
}

#[tokio::test]
async fn files_are_read_and_written_in_the_workspace_alone() {
    let (home, work, outside) = (home(), home(), home());
    fs::write(work.path().join("a.txt"), "one\ntwo\nthree\n").expect("writes");
    fs::write(outside.path().join("secret.txt"), "hidden").expect("writes");
    let workspace = Workspace::open(work.path()).expect("opens");
    let open = agent(program(home.path()).workspace(workspace.clone()));
    let path = |name: &str| work.path().canonicalize().expect("is there").join(name).display().to_string();
    let end = finished(open.run(format!("read {}", path("a.txt"))).await);
    assert_eq!(end.answer, "it reads: two\n", "from line 2 on, one line");
    finished(open.run(format!("write {}", path("new/b.txt"))).await);
    assert_eq!(fs::read_to_string(work.path().join("new/b.txt")).expect("is there"), "written");
    for way in [outside.path().join("secret.txt").display().to_string(), format!("{}/../secret.txt", path("new"))] {
        let end = finished(open.run(format!("read {way}")).await);
        assert!(end.answer.starts_with("refused: "), "{}", end.answer);
    }
    let end = finished(open.run("terminal now").await);
    assert_eq!(end.answer, "refused: 'terminal/create' is not offered");
    let read_only = agent(program(home.path()).workspace(workspace.read_only()));
    let end = finished(read_only.run(format!("write {}", path("c.txt"))).await);
    assert!(end.answer.starts_with("refused: ") && !work.path().join("c.txt").exists(), "{}", end.answer);
    let closed = agent(program(home.path()));
    let end = finished(closed.run(format!("read {}", path("a.txt"))).await);
    assert!(end.answer.starts_with("refused: "), "{}", end.answer);
}

#[tokio::test]
async fn commands_run_in_the_sandbox_that_is_given_and_images_and_files_go_both_ways() {
    let (home, work) = (home(), home());
    fs::write(work.path().join("a.png"), b"\x89PNG").expect("writes");
    fs::write(work.path().join("a.txt"), "text").expect("writes");
    let sandbox = MemorySandbox::new().program("sh", |command| (command.args[1].clone(), Exit::code(2)));
    let workspace = Workspace::open(work.path()).expect("opens");
    let coder = program(home.path()).workspace(workspace).terminals(Arc::new(sandbox));
    let coder = coder.mcp_server("lions", Stdio::new("lion-server").arg("-v").env("KEY", "1")).build().expect("builds");
    let open = Agent::of_tool("coder", coder.clone()).build().expect("builds");
    let end = finished(open.run("terminal make all").await);
    assert_eq!(end.answer, r#"it ran: "make all" {"exitCode":2,"signal":null}"#);
    let server =
        json!([{"name": "lions", "command": "lion-server", "args": ["-v"], "env": [{"name": "KEY", "value": "1"}]}]);
    assert_eq!(support_log(&home)[0], server.to_string());

    let call = json!({"message": "look", "files": ["a.png", "a.txt"]});
    let model = ScriptedModel::new([
        Turn::call("1", "acp", call),
        Turn::call("2", "acp", json!({"message": "draw"})),
        Turn::text("so"),
    ]);
    finished(Agent::builder("boss", model.clone()).tool(coder).build().expect("builds").run("go").await);
    let path = work.path().canonicalize().expect("is there");
    let told =
        format!(r#"you said look with "image/png" "iVBORw==" with "resource_link" "file://{}/a.txt""#, path.display());
    assert_eq!(model.requests()[1].results()[0].1, told);
    let drawn = &model.requests()[2];
    assert!(format!("{:?}", drawn.messages).contains("aW1n"), "the image is in the result");
}

#[tokio::test]
async fn permissions_are_decided_by_rules_and_the_rest_is_asked() {
    let home = home();
    let allows = agent(program(home.path()).permissions(|_| Permission::Allow));
    assert_eq!(finished(allows.run("ask").await).answer, "the answer: yes");
    let refuses = agent(program(home.path()).permissions(|request| match request.kind.as_deref() {
        Some("execute") => Permission::Reject,
        _ => Permission::Allow,
    }));
    assert_eq!(finished(refuses.run("ask").await).answer, "the answer: no");
    let asks = agent(program(home.path()));
    let waits = interrupted(asks.run("ask").await);
    let question = &waits.questions[0];
    assert_eq!((question.kind.as_str(), &question.payload["tool_call"]["title"]), (ACP_PERMISSION, &json!("Book it")));
    let wrong = answers(&waits, &json!("maybe"));
    let refused = asks.start(RunRequest::resume(waits.clone(), wrong)).await.expect_err("no option");
    assert_eq!(refused.kind(), ErrorKind::AnswerRefused);
    let given = answers(&waits, &json!("cancelled"));
    assert_eq!(finished(asks.start(RunRequest::resume(waits, given)).await).answer, "the answer: none");
}

#[tokio::test]
async fn a_program_that_was_ended_while_it_waited_leaves_the_call_in_doubt() {
    let home = home();
    let coder = program(home.path()).keep(ms(1)).build().expect("builds");
    let agent = Agent::of_tool("coder", coder).build().expect("builds");
    let waits = interrupted(agent.run("ask").await);
    let cancelled = async {
        while !support_log(&home).contains(&"cancelled".to_owned()) {
            tokio::time::sleep(ms(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, cancelled).await.expect("it is ended");
    let given = answers(&waits, &json!("yes"));
    let doubt = interrupted(agent.start(RunRequest::resume(waits, given)).await);
    assert_eq!(doubt.questions[0].kind, "in_doubt");
    let again = answers(&doubt, &json!("did_not"));
    let end = finished(agent.start(RunRequest::resume(doubt, again)).await);
    assert_eq!(end.answer, "the answer: yes", "it asks for the same once more, and is answered as before");
    assert_eq!(support_log(&home).iter().filter(|line| *line == "ask").count(), 2);
}

fn support_log(home: &TempDir) -> Vec<String> {
    super::support::acp::log(home.path())
}

#[tokio::test]
async fn a_conversation_goes_on_in_the_same_program_and_is_loaded_in_another_process() {
    let (home, journal) = (home(), MemoryJournal::default());
    let process = |builder: AcpBuilder| {
        let coder = builder.build().expect("builds");
        Agent::of_tool("coder", coder).store(journal.clone()).build().expect("builds")
    };
    let first = process(program(home.path()));
    finished(first.start(RunRequest::user("one").session("s")).await);
    finished(first.start(RunRequest::user("two").session("s")).await);
    assert_eq!(support_log(&home), ["one", "two"], "nothing is loaded");
    drop(first);
    let second = process(program(home.path()));
    let end = finished(second.start(RunRequest::user("three").session("s")).await);
    assert_eq!(end.answer, "you said three", "what a session was before is not said again");
    let log = support_log(&home);
    assert!(log[2].starts_with("loaded \"session-") && log[3] == "three", "{log:?}");
    drop(second);
    let forgetful = process(AcpAgent::builder(super::support::acp::forgetful(home.path())));
    let error = forgetful.start(RunRequest::user("four").session("s")).await.expect_err("cannot load");
    assert_eq!(error.kind(), ErrorKind::SubAgentNotFound, "{error}");
    assert!(!support_log(&home).contains(&"four".to_owned()));
}

#[tokio::test]
async fn a_form_of_a_program_is_a_question_whose_answer_continues_its_turn() {
    let home = home();
    let open = agent(program(home.path()));
    let waits = interrupted(open.run("form").await);
    let question = &waits.questions[0];
    assert_eq!((question.kind.as_str(), &question.payload["message"]), (ACP_ELICITATION, &json!("Where?")));
    assert!(question.payload["schema"]["properties"]["city"].is_object(), "{}", question.payload);
    let given = answers(&waits, &json!({"action": "accept", "content": {"city": "Bern"}}));
    let end = finished(open.start(RunRequest::resume(waits, given)).await);
    assert_eq!(end.answer, r#"the form: "accept" "Bern""#);
    assert!(!support_log(&home).contains(&"no forms".to_owned()), "the program is told that there are forms");
}

#[tokio::test]
async fn options_are_set_for_each_session_and_a_session_is_resumed_without_its_history_if_possible() {
    let (home, journal) = (home(), MemoryJournal::default());
    let process = || {
        let builder = AcpAgent::builder(super::support::acp::resuming(home.path()));
        let coder = builder.option("model", "fast").option("brave", true).build().expect("builds");
        Agent::of_tool("coder", coder).store(journal.clone()).build().expect("builds")
    };
    finished(process().start(RunRequest::user("one").session("s")).await);
    finished(process().start(RunRequest::user("two").session("s")).await);
    let log = support_log(&home);
    let count = |text: &str| log.iter().filter(|line| line.contains(text)).count();
    assert_eq!((count(r#""model" is "fast""#), count(r#""brave" is true"#)), (2, 2), "{log:?}");
    assert_eq!((count("resumed"), count("loaded")), (1, 0), "{log:?}");
}
