//! Tests for local and remote sub-agents.

use agent::{Deadlines, EventKind, RunEnd, RunRequest};
use futures::StreamExt;
use serde_json::json;

use super::support::*;

#[tokio::test]
async fn a_task_is_delegated_and_its_answer_comes_back_with_an_id() {
    for kind in KINDS {
        let peer = Peer::start(kind).await;
        let end = finished(boss(peer.agent(), "hello").build().expect("builds").run("go").await);
        assert!(end.answer.starts_with("you said hello\n\n[The id of this sub-agent: "), "{kind:?}: {}", end.answer);
        assert_eq!(peer.log(), ["hello"], "{kind:?}");
    }
}

#[tokio::test]
async fn a_question_of_a_peer_suspends_the_whole_tree_and_its_answer_goes_on_with_the_same_task() {
    for kind in KINDS {
        let peer = Peer::start(kind).await;
        let agent = boss(peer.agent(), "ask").build().expect("builds");
        let waits = interrupted(agent.run("go").await);
        assert_eq!(waits.questions.len(), 1, "{kind:?}");
        let given = answers(&waits, &json!("yes"));
        let end = finished(agent.start(RunRequest::resume(waits, given)).await);
        assert!(end.answer.starts_with("the answer: yes"), "{kind:?}: {}", end.answer);
        assert_eq!(peer.count("ask"), 1, "{kind:?}: it was told once");
    }
}

#[tokio::test]
async fn a_failure_of_a_peer_is_a_result_of_its_caller_and_not_its_end() {
    for kind in KINDS {
        let peer = Peer::start(kind).await;
        let end = finished(boss(peer.agent(), "fail").build().expect("builds").run("go").await);
        assert!(end.answer.starts_with("Sub-agent 'peer' failed (id "), "{kind:?}: {}", end.answer);
        assert!(end.answer.contains("no luck"), "{kind:?}: {}", end.answer);
    }
}

#[tokio::test]
async fn a_run_that_is_cancelled_cancels_what_its_peer_does() {
    for kind in KINDS {
        let peer = Peer::start(kind).await;
        let agent = boss(peer.agent(), "hang").build().expect("builds");
        let run = agent.start(RunRequest::user("go"));
        let handle = run.handle();
        let (end, ()) = tokio::join!(run, async {
            peer.noted("hang").await;
            handle.cancel();
        });
        assert!(matches!(end, Ok(RunEnd::Cancelled(_))), "{kind:?}: {end:?}");
        peer.noted("cancelled").await;
    }
}

#[tokio::test]
async fn a_peer_that_has_no_more_time_is_cancelled_and_its_caller_goes_on() {
    for kind in KINDS {
        let peer = Peer::start(kind).await;
        let limited = peer.agent().deadlines(Deadlines::new().run(ms(5000)));
        let end = finished(boss(limited, "hang").build().expect("builds").run("go").await);
        assert!(end.answer.contains("time"), "{kind:?}: {}", end.answer);
        peer.noted("cancelled").await;
    }
}

#[tokio::test]
async fn readers_of_the_callers_events_hear_what_a_peer_does_under_its_path() {
    for kind in KINDS.into_iter().filter(|kind| !matches!(kind, Kind::InProcess | Kind::A2aPolled)) {
        let peer = Peer::start(kind).await;
        let agent = boss(peer.agent(), "hello").build().expect("builds");
        let mut run = agent.start(RunRequest::user("go"));
        let mut said = String::new();
        while let Some(event) = run.next().await {
            if let EventKind::ToolProgress { progress, .. } = &event.kind {
                assert_eq!(&*event.ids.path, "boss/peer", "{kind:?}");
                said.push_str(progress["text"].as_str().unwrap_or_default());
            }
        }
        finished(run.await);
        assert_eq!(said, "you said hello", "{kind:?}");
    }
}
