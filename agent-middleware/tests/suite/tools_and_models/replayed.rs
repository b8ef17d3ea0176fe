//! Replayed runs, and runs whose process died: no decision is made again.

use agent_core::{
    Budget, Caps, ExitReason, MemoryJournal, RunRequest, Window,
    testing::{ScriptedModel, Turn},
};
use agent_exec::{Agent, AgentBuilder};
use agent_middleware::{ChatHistory, Judge, LongTermMemory, ToolEmulator, ToolSearch, ToolSelector};
use agent_retrieval::memory::{ChatMessageStore, MemoryQuery, MemoryStore};
use agent_store::{InMemoryChatMessageStore, InMemoryMemoryStore};
use serde_json::json;

use super::{asks, finished, offered, results, says, tool};

fn request() -> RunRequest {
    RunRequest::user("Go.").session("s").on_behalf_of("ada")
}

fn builder(model: &ScriptedModel, journal: &MemoryJournal) -> AgentBuilder {
    Agent::builder("a", model.clone())
        .tool(tool("look", ""))
        .tool(tool("mail_send", ""))
        .tool(asks("wait"))
        .store(journal.clone())
}

/// Runs once, then replays the run: it ends in the same way, and neither the agent's model nor
/// `aside` is called again.
async fn is_replayed(turns: Vec<Turn>, aside: &ScriptedModel, with: impl Fn(AgentBuilder) -> AgentBuilder) {
    let (journal, model) = (MemoryJournal::default(), ScriptedModel::new(turns));
    let agent = || with(builder(&model, &journal)).build().expect("builds");
    let first = finished(agent().start(request()).await);
    model.assert_finished();
    aside.assert_finished();
    let again = finished(agent().start(RunRequest::replay("s")).await);
    assert_eq!((again.answer, again.history, again.usage), (first.answer, first.history, first.usage));
    model.assert_finished();
    aside.assert_finished();
}

fn looks() -> Vec<Turn> {
    vec![Turn::call("c1", "look", json!({})), Turn::text("so")]
}

#[tokio::test]
async fn a_replay_asks_no_judge_critic_selector_or_stand_in_again() {
    let judge = says(&[r#"{"verdict": "continue", "feedback": "More."}"#, "STOP"]);
    is_replayed(vec![Turn::text("1"), Turn::text("2")], &judge, |b| b.middleware(Judge::new(judge.clone()))).await;
    let critic = says(&["Longer."]);
    let drafts = vec![Turn::text("1"), Turn::text("2")];
    is_replayed(drafts, &critic, |b| b.middleware(Judge::critic(critic.clone()))).await;
    let small = says(&[r#"["look"]"#, r#"["look"]"#]);
    is_replayed(looks(), &small, |b| b.middleware(ToolSelector::new(small.clone()).max_tools(1))).await;
    let stand_in = says(&["nothing"]);
    let emulator = || ToolEmulator::new().emulate("look").with_model(stand_in.clone());
    is_replayed(looks(), &stand_in, |b| b.middleware(emulator())).await;
}

#[tokio::test]
async fn a_replay_keeps_and_looks_up_nothing() {
    let memories = InMemoryMemoryStore::default();
    let facts = says(&[r#"["Ada says Go."]"#]);
    let memory = || LongTermMemory::new(memories.clone()).facts_with(facts.clone());
    is_replayed(looks(), &facts, |b| b.middleware(memory())).await;
    let kept = memories.search("ada", &MemoryQuery::new("")).await.expect("searches");
    assert_eq!(kept.len(), 1);

    let (chats, none) = (InMemoryChatMessageStore::default(), says(&[]));
    is_replayed(looks(), &none, |b| b.middleware(ChatHistory::new(chats.clone()))).await;
    assert_eq!(chats.count("s").await.expect("counts"), 4);
}

#[tokio::test]
async fn a_replay_finds_the_tools_that_the_run_found() {
    let search = Turn::call("c1", "search_tools", json!({"query": "mail"}));
    let turns = vec![search, Turn::call("c2", "mail_send", json!({})), Turn::text("so")];
    is_replayed(turns, &says(&[]), |b| b.middleware(ToolSearch::new().defer("mail_*"))).await;
}

#[tokio::test]
async fn a_run_that_is_recovered_from_its_journal_still_knows_what_it_found() {
    let journal = MemoryJournal::default();
    let model = ScriptedModel::new([
        Turn::call("c1", "search_tools", json!({"query": "mail"})),
        Turn::calls([("c2", "wait", json!({})), ("c3", "mail_send", json!({}))]),
        Turn::text("so"),
    ]);
    let agent = || builder(&model, &journal).middleware(ToolSearch::new().defer("mail_send")).build().expect("builds");
    let end = agent().start(request()).await.expect("runs");
    let question = end.checkpoint().expect("waits").questions[0].id.clone();
    finished(agent().start(RunRequest::recover("s", [(question, json!("well"))])).await);
    assert_eq!(offered(&model)[2], ["look", "wait", "search_tools", "mail_send"]);
    assert_eq!(results(&model)[1..], ["well", "mail_send"]);
}

#[tokio::test]
async fn a_run_that_goes_on_has_the_user_and_the_users_budget_that_it_began_with() {
    let model = ScriptedModel::new([Turn::call("c1", "wait", json!({})), Turn::text("so")]);
    let memories = InMemoryMemoryStore::default();
    let one_call = Budget::builder().window(Window::User, Caps::default().model_calls(1)).build().expect("builds");
    let agent = || {
        builder(&model, &MemoryJournal::default())
            .budget(one_call.clone())
            .middleware(LongTermMemory::new(memories.clone()))
            .build()
            .expect("builds")
    };
    let end = agent().start(request()).await.expect("runs");
    let checkpoint = end.checkpoint().expect("waits").clone();
    let answer = (checkpoint.questions[0].id.clone(), json!("well"));
    let end = finished(agent().start(RunRequest::resume(checkpoint, [answer])).await);
    assert_eq!((end.ids.user.as_deref(), end.reason), (Some("ada"), ExitReason::Budget));
    assert_eq!(model.calls(), 1, "ada has no second call");
}
