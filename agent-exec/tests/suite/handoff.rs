//! Agents that hand a conversation over to each other.

use agent_core::{
    ErrorKind, EventKind, History, Journal, MemoryJournal, RunRequest,
    testing::{MortalJournal, ScriptedModel, Turn},
};
use agent_exec::{
    Agent,
    handoff::{Handoff, Handoffs, HandoffsBuilder, without_tools},
};
use futures::StreamExt;
use serde_json::json;

use crate::{
    children::{Shop, Thinks, asks, calls, told},
    common::{finished, roles},
};

/// Transfers each task about money, answers everything else.
fn triage_model() -> Thinks {
    crate::children::thinks(|seen| match seen.task.contains("pay") {
        true => calls([("t1", "transfer_to_billing", json!({"reason": "money"}))]),
        false => "hello".into(),
    })
}

/// Pays, then says so.
fn billing_model() -> Thinks {
    crate::children::thinks(|seen| match seen.results.iter().any(|(id, _)| id == "p1") {
        true => "paid".into(),
        false => calls([("p1", "pay", json!({"for": "ada"}))]),
    })
}

fn desk(journal: impl Journal, shop: &Shop) -> Handoffs {
    let triage = Agent::builder("triage", triage_model()).store(journal).build().expect("builds");
    let billing = Agent::builder("billing", billing_model()).tool(shop.tool()).build().expect("builds");
    Handoffs::builder(triage).agent(Handoff::to(billing, "Payments.")).build().expect("builds")
}

fn group(first: ScriptedModel, second: ScriptedModel) -> HandoffsBuilder {
    let first = Agent::builder("first", first).store(MemoryJournal::default()).build().expect("builds");
    let second = Agent::builder("second", second).build().expect("builds");
    Handoffs::builder(first).agent(Handoff::to(second, "Second."))
}

fn to_second() -> Turn {
    Turn::call("t", "transfer_to_second", json!({"reason": "r"}))
}

#[tokio::test]
async fn the_next_agent_answers_with_the_whole_conversation_and_keeps_it_over_messages() {
    let first = ScriptedModel::new([to_second()]);
    let second = ScriptedModel::new([Turn::text("I am the second."), Turn::text("Still me.")]);
    let group = group(first.clone(), second.clone()).build().expect("builds");
    assert_eq!(group.active("s").await.expect("reads"), "first");

    let end = finished(group.run(RunRequest::user("Hi").session("s")).await);
    assert_eq!((end.answer.as_str(), &*end.ids.agent), ("I am the second.", "second"));
    assert_eq!(roles(&end.history), ["user", "assistant", "tool", "assistant"], "one history");
    assert_eq!(second.requests()[0].roles(), ["user", "assistant", "tool"]);
    assert_eq!(group.active("s").await.expect("reads"), "second");

    let end = finished(group.run(RunRequest::user("And now?").session("s")).await);
    assert_eq!(end.answer, "Still me.");
    first.assert_finished();
    second.assert_finished();
}

#[tokio::test]
async fn a_conversation_goes_back_to_the_first_agent_if_the_group_allows_it() {
    let first = ScriptedModel::new([to_second(), Turn::text("Back again.")]);
    let second = ScriptedModel::new([Turn::call("b", "transfer_to_first", json!({}))]);
    let one_way = group(first.clone(), second.clone()).build().expect("builds");
    let tools = |group: &Handoffs, name| group.agent(name).expect("known").tools().len();
    assert_eq!((tools(&one_way, "first"), tools(&one_way, "second")), (1, 0));
    let group = group(first, second).back_to_first("Everything else.").build().expect("builds");
    let end = finished(group.run(RunRequest::user("Hi").session("s")).await);
    assert_eq!((end.answer.as_str(), &*end.ids.agent), ("Back again.", "first"));
}

#[tokio::test]
async fn one_transfer_of_a_message_wins() {
    let model = ScriptedModel::new([Turn::calls([
        ("a", "transfer_to_second", json!({})),
        ("b", "transfer_to_third", json!({})),
    ])]);
    let (second, third) = (ScriptedModel::new([Turn::text("second")]), ScriptedModel::new([]));
    let third = Agent::builder("third", third).build().expect("builds");
    let group = group(model, second).agent(Handoff::to(third, "Third.")).build().expect("builds");
    let end = finished(group.run(RunRequest::user("Hi").session("s")).await);
    assert_eq!(end.answer, "second");
    let told = told(&end.history);
    assert_eq!(told[1], "Ignored: another transfer of this message came first.");
    assert_eq!(group.active("s").await.expect("reads"), "second");
}

#[tokio::test]
async fn a_filter_changes_what_the_next_model_sees_and_not_what_is_stored() {
    let first = ScriptedModel::new([to_second()]);
    let second = ScriptedModel::new([Turn::text("one"), Turn::text("two")]);
    let first = Agent::builder("first", first).store(MemoryJournal::default()).build().expect("builds");
    let agent = Agent::builder("second", second.clone()).build().expect("builds");
    let handoff = Handoff::to(agent, "Second.").filter(without_tools);
    let group = Handoffs::builder(first).agent(handoff).build().expect("builds");
    finished(group.run(RunRequest::user("Hi").session("s")).await);
    let end = finished(group.run(RunRequest::user("More").session("s")).await);
    assert_eq!(second.requests()[0].roles(), ["user"]);
    assert_eq!(second.requests()[1].roles(), ["user", "assistant", "user"]);
    assert_eq!(roles(&end.history), ["user", "assistant", "tool", "assistant", "user", "assistant"]);
}

#[tokio::test]
async fn the_events_of_all_agents_are_one_stream_that_names_the_transfer() {
    let group = group(ScriptedModel::new([to_second()]), ScriptedModel::new([Turn::text("done")]));
    let group = group.build().expect("builds");
    let mut run = group.start(RunRequest::user("Hi"));
    let (mut agents, mut transfers) = (Vec::new(), Vec::new());
    while let Some(event) = run.next().await {
        if agents.last() != Some(&event.ids.agent) {
            agents.push(event.ids.agent.clone());
        }
        if let EventKind::Custom { name, value } = event.kind
            && &*name == "handoff"
        {
            transfers.push(value);
        }
    }
    assert_eq!(agents.iter().map(|name| &**name).collect::<Vec<_>>(), ["first", "second"]);
    assert_eq!(transfers, [json!({"from": "first", "to": "second", "reason": "r"})]);
    assert_eq!(finished(run.await).answer, "done");
}

#[tokio::test]
async fn a_question_of_the_next_agent_is_answered_there() {
    let journal = MemoryJournal::default();
    let build = || {
        let triage = Agent::builder("triage", triage_model()).store(journal.clone()).build().expect("builds");
        let model = crate::children::thinks(|seen| match seen.results.iter().find(|(id, _)| id == "q1") {
            Some((_, answer)) => format!("it is {answer}").as_str().into(),
            None => calls([("q1", "ask", json!({}))]),
        });
        let billing = Agent::builder("billing", model).tool(asks("ask")).build().expect("builds");
        Handoffs::builder(triage).agent(Handoff::to(billing, "Payments.")).build().expect("builds")
    };
    let checkpoint = build().run(RunRequest::user("pay").session("s")).await.expect("waits");
    let checkpoint = checkpoint.checkpoint().expect("a checkpoint").clone();
    assert_eq!((&*checkpoint.ids.agent, checkpoint.questions.len()), ("billing", 1));
    let answers = [(checkpoint.questions[0].id.clone(), json!(true))];
    let by_checkpoint = build().run(RunRequest::resume(checkpoint, answers.clone())).await;
    assert_eq!(finished(by_checkpoint).answer, "it is true");
}

#[tokio::test]
async fn a_process_may_die_at_any_entry_and_nothing_is_lost_or_done_twice() {
    let (process, shop) = (MortalJournal::new(MemoryJournal::default()), Shop::default());
    finished(desk(process.clone(), &shop).run(RunRequest::user("pay").session("s").run_id("r")).await);
    assert!(process.written() > 8, "both agents write");
    for n in 1..=process.written() {
        let (journal, shop) = (MemoryJournal::default(), Shop::default());
        let mortal = MortalJournal::new(journal.clone()).dying_at(n);
        let first = desk(mortal.clone(), &shop);
        tokio::select! {
            biased;
            () = mortal.died() => {}
            end = first.run(RunRequest::user("pay").session("s").run_id("r")) => assert!(end.is_err(), "died at {n}"),
        }
        drop(first);
        let second = desk(journal, &shop);
        let mut end = match second.run(RunRequest::user("pay").session("s").run_id("r")).await {
            Err(e) if e.kind() == ErrorKind::Stale => second.recover("s", []).await,
            end => end,
        };
        while let Some(checkpoint) = end.as_ref().ok().and_then(|end| end.checkpoint()) {
            let answers = checkpoint.questions.iter().map(|q| (q.id.clone(), shop.answer(q))).collect::<Vec<_>>();
            end = second.recover("s", answers).await;
        }
        let end = finished(end);
        assert_eq!((end.answer.as_str(), shop.paid().len()), ("paid", 1), "died at {n}");
        assert_eq!(second.active("s").await.expect("reads"), "billing", "died at {n}");
        let users = roles(&end.history).iter().filter(|role| **role == "user").count();
        assert_eq!(users, 1, "died at {n}: the message is there once");
    }
}

#[tokio::test]
async fn agents_that_only_transfer_end_with_a_limit() {
    let again = |name: &'static str| crate::children::thinks(move |_| calls([("t", name, json!({}))]));
    let first = Agent::builder("first", again("transfer_to_second")).store(MemoryJournal::default());
    let second = Agent::builder("second", again("transfer_to_first")).build().expect("builds");
    let group = Handoffs::builder(first.build().expect("builds")).agent(Handoff::to(second, "Second."));
    let group = group.back_to_first("First.").max_handoffs(3).build().expect("builds");
    let error = group.run(RunRequest::user("Hi").session("s")).await.expect_err("never answers");
    assert_eq!(error.kind(), ErrorKind::Limit);
    assert!(error.message().contains("3 times without an answer"), "{error}");
}

#[tokio::test]
async fn groups_and_requests_that_cannot_work_are_refused_with_what_to_do() {
    let plain = |name: &str| Agent::builder(name, ScriptedModel::new([])).build().expect("builds");
    let stored = |name: &str| {
        Agent::builder(name, ScriptedModel::new([])).store(MemoryJournal::default()).build().expect("builds")
    };
    let refused = |builder: HandoffsBuilder| builder.build().expect_err("refused").message().to_owned();
    let to = |name: &str| Handoff::to(plain(name), "About.");
    assert!(refused(Handoffs::builder(plain("a")).agent(to("b"))).contains("add store(..)"));
    assert!(refused(Handoffs::builder(stored("a"))).contains("add agent(..)"));
    assert!(refused(Handoffs::builder(stored("a")).agent(to("a"))).contains("two agents"));
    assert!(refused(Handoffs::builder(stored("a")).agent(to("b c"))).contains("letters, digits"));
    let group = Handoffs::builder(stored("a")).agent(to("b")).build().expect("builds");
    let error = group.run(RunRequest::replay("s")).await.expect_err("refused");
    assert!(error.message().contains("Handoffs::agent"), "{error}");
}

#[test]
fn stock_filters_return_valid_histories() {
    let (history, _) = History::import([
        agent_core::Message::user("a"),
        agent_core::Message::Assistant(calls([("c", "look", json!({}))])),
        agent_core::Message::user("b"),
    ]);
    for most in 0..=4 {
        let kept = agent_exec::handoff::last_messages(most)(&history).expect("valid");
        assert!(kept.len() <= most + 1, "{most}: {kept:?}");
    }
    assert_eq!(roles(&without_tools(&history).expect("valid")), ["user", "user"]);
}

#[tokio::test]
async fn prompts_and_tool_choices_of_a_request_are_those_of_its_first_agent() {
    let second = ScriptedModel::new([Turn::text("done")]);
    let group = group(ScriptedModel::new([to_second()]), second.clone()).build().expect("builds");
    let request = RunRequest::user("Hi").session("s").user_prompt("Be quick.").tools_named(["transfer_to_second"]);
    let end = finished(group.run(request).await);
    assert_eq!(roles(&end.history), ["user", "user", "assistant", "tool", "assistant"], "the prompt is there once");
    second.assert_finished();
}
