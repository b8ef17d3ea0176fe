//! Sub-agents that are resumed with their history.

use agent_core::{ErrorKind, Journal, MemoryJournal, RunRequest};

use super::*;
use crate::common::finished;

// NexAU 60
#[tokio::test]
async fn a_recalled_sub_agent_knows_what_it_did_and_an_empty_id_is_a_new_one() {
    let model = thinks(|spoke, history| match spoke {
        0 => ask("a", "one", json!({})),
        1 => ask("b", "two", json!({"id": first_id(history)})),
        2 => ask("c", "three", json!({"id": ""})),
        3 => ask("d", "four", json!({"id": first_id(history)})),
        _ => "done".into(),
    });
    let end = finished(built(boss(model, parrot())).run("go").await);
    assert_eq!(texts(&end), ["one", "one, two", "three", "one, two, four"]);
}

// NexAU 60
#[tokio::test]
async fn a_sub_agent_is_recalled_in_a_later_run_of_a_session_that_is_kept() {
    let (journal, session) = (MemoryJournal::default(), "s");
    let model = || {
        thinks(|spoke, history| match spoke {
            0 => ask("a", "one", json!({})),
            2 => ask("b", "two", json!({"id": first_id(history)})),
            _ => "done".into(),
        })
    };
    let run = || built(boss(model(), parrot()).store(journal.clone())).start(RunRequest::user("go").session(session));
    assert_eq!(texts(&finished(run().await)), ["one"]);
    let end = finished(run().await);
    assert_eq!(texts(&end), ["one", "one, two"]);

    let known = journal
        .index(session)
        .await
        .expect("reads")
        .look(|index| index.sub_agents("boss").cloned().collect::<Vec<_>>());
    assert_eq!(known.len(), 1);
    assert_eq!((known[0].key.as_str(), known[0].answer.as_deref()), ("helper", Some("one, two")));
    assert!(
        journal
            .index(session)
            .await
            .expect("reads")
            .look(|index| index.sub_agents("another").cloned().collect::<Vec<_>>())
            .is_empty(),
        "they are the caller's own"
    );
}

#[tokio::test]
async fn what_was_undone_is_not_recalled() {
    let (journal, session) = (MemoryJournal::default(), "s");
    let model = thinks(|spoke, history| match (spoke, last(history).as_str()) {
        (0, _) => ask("a", "one", json!({})),
        (_, "again") => ask("b", "two", json!({"id": first_id(history)})),
        _ => "done".into(),
    });
    let agent = built(boss(model, parrot()).store(journal.clone()));
    let run = |message: &'static str| agent.start(RunRequest::user(message).session(session));
    finished(run("go").await);
    let second = finished(run("again").await);
    assert_eq!(texts(&second)[1], "one, two");
    agent_exec::Sessions::new(journal.clone()).named(session, "boss").undo(&second.ids.run_id).await.expect("undoes");
    assert_eq!(texts(&finished(run("again").await))[1], "one, two", "what the undone run told it is undone too");
}

// NexAU 60
#[tokio::test]
async fn an_unknown_id_and_one_of_another_key_are_clear_errors() {
    let model = thinks(|spoke, history| match spoke {
        0 => ask("a", "one", json!({})),
        1 => ask("b", "two", json!({"id": "nobody"})),
        2 => call("c", "delegate", json!({"agent": "other", "message": "x", "id": first_id(history)})),
        _ => "done".into(),
    });
    let agent = Agent::builder("boss", model).middleware(delegation(parrot()).to("other", "Else.", parrot()));
    let end = finished(built(agent).run("go").await);
    let id = first_id(&end.history);
    let unknown = "No sub-agent 'helper' with the id nobody was called in this conversation. Leave the id out to call a \
                   new one. Ids of 'helper' so far: ";
    let other = format!("Sub-agent {id} is 'helper', not 'other': recall it under that name.");
    assert_eq!(texts(&end)[1..], [format!("{unknown}{id}"), other]);
}

// NexAU 60
#[tokio::test]
async fn a_failure_has_the_id_and_the_sub_agent_goes_on_with_what_it_knew() {
    let helper = thinks(|_, history| match history.iter().map(Message::text).collect::<Vec<_>>().join(", ").as_str() {
        "one" => call("k", "fails", json!({})),
        all => says(format!("knew: {all}")),
    });
    let broken = crate::common::fails("fails", "the disk is full");
    let helper = built(Agent::builder("helper", helper).tool(broken).raise_tool_errors());
    let model = thinks(|spoke, history| match spoke {
        0 => ask("a", "one", json!({})),
        1 => ask("b", "two", json!({"id": first_id(history)})),
        _ => "done".into(),
    });
    let end = finished(built(boss(model, helper)).run("go").await);
    let texts = texts(&end);
    let failure = format!("Sub-agent 'helper' failed (id {}): the disk is full", first_id(&end.history));
    assert_eq!(texts[0], failure);
    assert!(texts[1].starts_with("knew: one, ") && texts[1].ends_with(", two"), "{texts:?}");
}

#[tokio::test]
async fn one_sub_agent_is_not_recalled_twice_at_once() {
    let model = thinks(|spoke, history| match spoke {
        0 => ask("a", "one", json!({})),
        1 => {
            let args = json!({"agent": "helper", "message": "two", "id": first_id(history)}).to_string();
            let both = ["b", "c"].map(|id| Block::tool_call(id, "delegate", args.clone()));
            AssistantMessage::new(both.to_vec())
        }
        _ => "done".into(),
    });
    let end = finished(built(boss(model, parrot())).run("go").await);
    let texts = texts(&end);
    let refused = texts.iter().filter(|text| text.contains("is at work already")).count();
    assert_eq!((refused, texts.iter().filter(|text| *text == "one, two").count()), (1, 1), "{texts:?}");
}

#[tokio::test]
async fn a_forked_sub_agent_knows_the_conversation_and_changes_nothing_of_it() {
    let model = thinks(|spoke, _| match spoke {
        0 => ask("a", "what was said?", json!({"fork": true})),
        _ => "done".into(),
    });
    let end = finished(built(boss(model, parrot())).run("go").await);
    assert_eq!((texts(&end), told(&end)), (vec!["go, what was said?".to_owned()], vec!["go".to_owned()]));
}

#[tokio::test]
async fn a_forked_sub_agent_is_recalled_with_its_copy() {
    let journal = MemoryJournal::default();
    let model = thinks(|spoke, history| match spoke {
        0 => ask("a", "first", json!({"fork": true})),
        1 => ask("b", "second", json!({"id": first_id(history)})),
        2 => ask("c", "third", json!({"id": first_id(history), "fork": true})),
        _ => "done".into(),
    });
    let agent = built(boss(model, parrot()).store(journal));
    let end = finished(agent.start(RunRequest::user("go").session("s")).await);
    let refusal = "A sub-agent that is recalled has its own conversation: it cannot begin with a copy.";
    assert_eq!(texts(&end), ["go, first", "go, first, second", refusal]);
}

#[tokio::test]
async fn the_kind_of_the_error_says_that_nobody_was_found() {
    let probe = tool("probe", async |req: agent_core::ToolRequest| {
        let call = agent_core::engine::SubAgentCall::new("helper", "x").recall("nobody");
        let e = req.sub_run(call).await.expect_err("unknown");
        assert_eq!(e.kind(), ErrorKind::SubAgentNotFound);
        Ok(ToolOutput::text("refused"))
    });
    let model = thinks(|spoke, _| if spoke == 0 { call("a", "probe", json!({})) } else { "done".into() });
    assert_eq!(texts(&finished(built(boss(model, parrot()).tool(probe)).run("go").await)), ["refused"]);
}
