//! The sessions of a store, by user.

use std::sync::Arc;

use agent_core::{
    Budget, Caps, ErrorKind, ExitReason, Journal, MemoryJournal, RunRequest, Window,
    testing::{ScriptedModel, Turn},
};
use agent_exec::{Agent, SessionId, Sessions};
use proptest::prelude::*;
use tokio::sync::Notify;

use super::{agent, built, waiting};
use crate::common::finished;

/// Texts that try to look like the names of other sessions.
fn part() -> impl Strategy<Value = String> {
    prop_oneof!["[ab%/2F5~]{0,6}", Just(String::new()), Just("%2F".to_owned()), any::<String>(),]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2048))]

    #[test]
    fn no_two_sessions_have_one_name_and_none_begins_as_anothers(
        (user, session, other, theirs) in (part(), part(), part(), part()),
    ) {
        let (id, crafted) = (SessionId::new(&*user, &*session), SessionId::new(&*other, &*theirs));
        let (name, crafted_name) = (id.to_string(), crafted.to_string());
        prop_assert_eq!(id == crafted, name == crafted_name);
        prop_assert_eq!(SessionId::parse(&name), Some(id));
        let beginning = SessionId::new(&*other, "").to_string();
        prop_assert_eq!(name.starts_with(&beginning), user == other);
        // An arbitrary text is a user's session only if it is exactly that session's name.
        if let Some(parsed) = SessionId::parse(&session) {
            prop_assert_eq!(parsed.to_string(), session);
        }
    }
}

#[tokio::test]
async fn a_user_sees_and_continues_no_session_of_another_whatever_the_id() {
    let journal = MemoryJournal::default();
    let said = |n: usize| ScriptedModel::new((0..n).map(|_| Turn::text("noted")));
    let mine = SessionId::new("ada", "x/y");
    let model = said(1);
    finished(built(agent(&model, &journal)).start(RunRequest::user("my secret").session(&mine)).await);
    let crafted =
        [("ada/x", "y"), ("ada%2Fx", "y"), ("", "ada/x/y"), ("ada/", "x/y"), ("ad", "a/x/y"), ("eve", "ada/x/y")];
    for (user, session) in crafted {
        let model = said(1);
        let id = SessionId::new(user, session);
        finished(built(agent(&model, &journal)).start(RunRequest::user("what was said?").session(&id)).await);
        assert_eq!(model.requests()[0].texts(), ["what was said?"], "{user} {session}");
    }
    let sessions = Sessions::new(journal);
    assert_eq!(sessions.list("ada", None, 99).await.expect("lists"), [mine]);
    for user in ["", "a", "ada/x", "ada/"] {
        let ids = sessions.list(user, None, 99).await.expect("lists");
        assert!(ids.iter().all(|id| id.user() == user), "{user}: {ids:?}");
    }
}

#[tokio::test]
async fn sessions_are_listed_in_pages_described_and_deleted() {
    let journal = MemoryJournal::default();
    let model = ScriptedModel::new((0..6).map(|_| Turn::text("hello")));
    let agent = built(agent(&model, &journal));
    for session in ["3", "1", "2", "2"] {
        finished(agent.start(RunRequest::user("hi").session(SessionId::new("ada", session))).await);
    }
    finished(agent.start(RunRequest::user("hi").session("ada")).await);
    let foreign = journal.open("ada/2%", "a").await.expect("free");
    foreign.append(vec![]).await.expect("appends");
    drop(foreign);

    let sessions = agent.sessions().expect("a store");
    let id = |session: &str| SessionId::new("ada", session);
    assert_eq!(sessions.list("ada", None, 2).await.expect("lists"), [id("1"), id("2")]);
    assert_eq!(sessions.list("ada", Some(&id("2")), 2).await.expect("lists"), [id("3")]);
    assert!(sessions.list("ada", Some(&id("3")), 2).await.expect("lists").is_empty());
    assert!(sessions.list("ada", None, 0).await.expect("lists").is_empty());

    sessions.set_title(&id("2"), "first title").await.expect("writes");
    sessions.set_title(&id("2"), "Greetings").await.expect("writes");
    let info = sessions.info(&id("2")).await.expect("reads").expect("it is there");
    assert_eq!((info.title.as_deref(), info.runs, &*info.agents), (Some("Greetings"), 2, &["a".into()][..]));
    assert!(info.created > 0 && info.created <= info.updated && info.entries > 8, "{info:?}");
    assert_eq!(sessions.session(&id("2"), "a").history().await.expect("folds").len(), 4, "a title says nothing");

    assert!(sessions.delete(&id("2")).await.expect("deletes"));
    assert!(!sessions.delete(&id("2")).await.expect("deletes"));
    assert_eq!(sessions.info(&id("2")).await.expect("reads"), None);
    assert_eq!(sessions.list("ada", None, 9).await.expect("lists"), [id("1"), id("3")]);
}

#[tokio::test]
async fn a_session_gets_its_title_while_a_run_is_under_way_and_is_not_deleted_then() {
    let journal = MemoryJournal::default();
    let (here, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let model = ScriptedModel::new([Turn::call("1", "waiting", serde_json::json!({})), Turn::text("done")]);
    let agent = built(agent(&model, &journal).tool(waiting(&here, &go)));
    let id = SessionId::new("ada", "1");
    let run = tokio::spawn(agent.start(RunRequest::user("go").session(&id)));
    here.notified().await;
    let sessions = agent.sessions().expect("a store");
    sessions.set_title(&id, "Going").await.expect("writes");
    assert_eq!(sessions.delete(&id).await.expect_err("in use").kind(), ErrorKind::Busy);
    go.notify_one();
    assert_eq!(finished(run.await.expect("no panic")).answer, "done");
    assert_eq!(sessions.info(&id).await.expect("reads").expect("there").title.as_deref(), Some("Going"));
}

#[tokio::test]
async fn a_deleted_sessions_account_is_deleted_too() {
    let caps = Caps::default().model_calls(1);
    let budget = Budget::builder().window(Window::Session, caps).build().expect("builds");
    let model = ScriptedModel::new([Turn::text("1"), Turn::text("2")]);
    let agent = Agent::builder("a", model).store(MemoryJournal::default()).budget(budget).build().expect("builds");
    let id = SessionId::new("ada", "garden");
    let run = async || finished(agent.start(RunRequest::user("go").session(id.clone())).await).reason;
    assert_eq!((run().await, run().await), (ExitReason::Text, ExitReason::Budget));
    assert!(agent.sessions().expect("has a store").delete(&id).await.expect("deletes"));
    assert_eq!(run().await, ExitReason::Text);
}
