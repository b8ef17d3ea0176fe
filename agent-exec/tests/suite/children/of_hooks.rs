//! Sub-agents of hooks.

use agent_core::{
    Flow, MemoryJournal, Message, Middleware, ModelRequest, ModelResponse, Result, RunCx, RunEnd, RunRequest,
    ToolOutput, ToolRequest, async_trait,
    testing::{ScriptedModel, Turn},
};
use agent_exec::{Agent, AgentBuilder};
use serde_json::Value;

use super::*;

/// Has a sub-agent keep the books before the run's first model call.
struct Books(Shop);

#[async_trait]
impl Middleware for Books {
    fn name(&self) -> &str {
        "books"
    }

    async fn before_model(&self, cx: &RunCx, _: &mut ModelRequest) -> Result<Flow<ModelResponse>> {
        if cx.history().len() == 1 {
            cx.call_sub_agent("bookkeeper", "the books").await?;
            self.0.hook_is_over();
        }
        Ok(Flow::Continue)
    }
}

fn boss(shop: &Shop, bookkeeper: Agent) -> AgentBuilder {
    let agent = Agent::builder("boss", calls_in_turn(["look"])).tool(gives("look", "looked"));
    let agent = agent.middleware(Books(shop.clone()));
    agent.sub_agent("bookkeeper", "Keeps the books.", bookkeeper)
}

#[tokio::test(start_paused = true)]
async fn what_a_hooks_sub_agent_paid_is_not_paid_again_wherever_the_process_died() {
    let build = |journal, shop: &Shop| boss(shop, researcher(shop, |_| false)).store(journal).build().expect("builds");
    let wrong = after_each_death(build, |end, shop| not_as(end, shop, &["looked"], &["the books"])).await;
    assert!(wrong.is_empty(), "{} deaths went wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[tokio::test(start_paused = true)]
async fn what_a_hooks_sub_agent_asks_can_be_answered() {
    let shop = Shop::default();
    let agent = boss(&shop, researcher(&shop, |_| true)).build().expect("builds");
    let mut end = agent.run("go").await;
    let mut rounds = Vec::new();
    while let Ok(RunEnd::Interrupted(checkpoint)) = end {
        rounds.push(asked(&checkpoint).join(", "));
        assert!(rounds.len() < 4, "it was answered each time, and asks for ever: {rounds:?}; paid {:?}", shop.paid());
        let answers = checkpoint.questions.iter().map(|q| (q.id.clone(), shop.answer(q))).collect::<Vec<_>>();
        end = agent.start(RunRequest::resume(*checkpoint, answers)).await;
    }
    let refused = rounds.is_empty() && end.is_err();
    assert!(refused || shop.paid() == ["the books"], "{rounds:?}, paid {:?}, {end:?}", shop.paid());
}

/// A bookkeeper that pauses the tree when it has paid.
fn pausing(shop: &Shop) -> Agent {
    let paying = shop.clone();
    let pay = tool("pay", move |req: ToolRequest| {
        paying.pay(&req, "the books");
        req.cx.pause();
        async move { Ok(ToolOutput::text("paid")) }
    });
    Agent::builder("bookkeeper", super::paying(|_| false)).tool(pay).build().expect("builds")
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_paused_while_a_hooks_sub_agent_works_is_paused_and_goes_on() {
    let shop = Shop::default();
    let agent = boss(&shop, pausing(&shop)).build().expect("builds");
    let (how, checkpoint) = stopped(agent.run("go").await);
    assert_eq!((how, asked(&checkpoint)), ("paused", vec![]));
    let end = agent.start(RunRequest::resume(checkpoint, [])).await;
    assert_eq!((end.expect("goes on").as_str(), shop.paid()), ("finished", vec!["the books".to_owned()]));
}

#[tokio::test(start_paused = true)]
async fn a_session_takes_messages_after_a_pause_while_a_hooks_sub_agent_worked() {
    let (shop, journal) = (Shop::default(), MemoryJournal::default());
    let agent = boss(&shop, pausing(&shop)).store(journal).build().expect("builds");
    let first = agent.start(RunRequest::user("go").session("s")).await;
    assert!(first.is_ok(), "{first:?}");
    let next = agent.start(RunRequest::user("and now?").session("s")).await;
    assert!(next.is_ok(), "the session is blocked: {}", next.expect_err("is blocked").message());
}

/// As `Books`, as a decision: once it is made, it is not made again.
struct Decides(Shop);

#[async_trait]
impl Middleware for Decides {
    async fn before_agent(&self, cx: &RunCx) -> Result<()> {
        let call = async { Ok(Value::from(cx.call_sub_agent("bookkeeper", "the books").await?.answer)) };
        cx.decide("books", call).await.map(|_| self.0.hook_is_over())
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_hooks_sub_agent_paid_within_a_decision_is_not_paid_again_wherever_the_process_died() {
    let build = |journal, shop: &Shop| {
        let agent = Agent::builder("boss", calls_in_turn(["look"])).tool(gives("look", "looked"));
        let agent = agent.middleware(Decides(shop.clone()));
        let agent = agent.sub_agent("bookkeeper", "Keeps the books.", researcher(shop, |_| false));
        agent.store(journal).build().expect("builds")
    };
    let wrong = after_each_death(build, |end, shop| not_as(end, shop, &["looked"], &["the books"])).await;
    assert!(wrong.is_empty(), "{} deaths went wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// Asks a sub-agent before each model call.
struct Rules;

#[async_trait]
impl Middleware for Rules {
    async fn before_model(&self, cx: &RunCx, req: &mut ModelRequest) -> Result<Flow<ModelResponse>> {
        let rules = cx.call_sub_agent("rules", "which rules?").await?;
        req.messages.push(Message::system(rules.answer))?;
        Ok(Flow::Continue)
    }
}

#[tokio::test(start_paused = true)]
async fn a_recorded_run_whose_hook_called_a_sub_agent_is_replayed() {
    let journal = MemoryJournal::default();
    let build = |boss: Vec<Turn>, rules: Vec<Turn>| {
        let (boss, rules) = (ScriptedModel::new(boss), ScriptedModel::new(rules));
        let helper = Agent::builder("rules", rules.clone()).build().expect("builds");
        let agent =
            Agent::builder("boss", boss.clone()).sub_agent("rules", "Knows the rules.", helper).middleware(Rules);
        (agent.store(journal.clone()).build().expect("builds"), boss, rules)
    };
    let (agent, ..) = build(vec![Turn::text("done")], vec![Turn::text("rule one")]);
    let end = finished(agent.start(RunRequest::user("go").session("s")).await);
    let (silent, boss, rules) = build(vec![], vec![]);
    let replayed = silent.start(RunRequest::replay("s")).await;
    assert_eq!((boss.calls(), rules.calls()), (0, 0), "nobody is asked");
    let replayed = replayed.expect("the recording is followed").finished().expect("it finishes");
    assert_eq!((replayed.answer, replayed.tree_usage), (end.answer, end.tree_usage));
}

#[tokio::test(start_paused = true)]
async fn a_hook_calls_a_sub_agent_that_nothing_stops() {
    let (shop, journal) = (Shop::default(), MemoryJournal::default());
    let agent = boss(&shop, researcher(&shop, |_| false)).store(journal).build().expect("builds");
    let end = finished(agent.start(RunRequest::user("go").session("s")).await);
    assert_eq!(not_as(&end, &shop, &["looked"], &["the books"]), None);
}

/// Asks a person for something of its own, in the kind that others use too.
struct AsksFor(&'static str);

#[async_trait]
impl Middleware for AsksFor {
    async fn before_model(&self, cx: &RunCx, _: &mut ModelRequest) -> Result<Flow<ModelResponse>> {
        cx.ask::<bool>("may", Value::from(self.0)).map(|_| Flow::Continue)
    }
}

#[tokio::test]
async fn two_hooks_that_ask_for_different_things_of_one_kind_each_get_their_answer() {
    let agent = Agent::builder("boss", calls_in_turn([])).middleware(AsksFor("a pen")).middleware(AsksFor("a pencil"));
    let agent = agent.build().expect("builds");
    let (mut end, mut rounds) = (agent.run("go").await, Vec::new());
    while let Ok(RunEnd::Interrupted(checkpoint)) = end {
        rounds.push(checkpoint.questions[0].payload.clone());
        assert!(rounds.len() < 4, "each is answered, and is asked for again: {rounds:?}");
        let answers = checkpoint.questions.iter().map(|q| (q.id.clone(), Value::from(true))).collect::<Vec<_>>();
        end = agent.start(RunRequest::resume(*checkpoint, answers)).await;
    }
    assert_eq!((finished(end).answer.as_str(), rounds), ("done", vec!["a pen".into(), Value::from("a pencil")]));
}

/// Calls a sub-agent when the run is over.
struct Late;

#[async_trait]
impl Middleware for Late {
    async fn after_agent(&self, cx: &RunCx, _: &mut Result<RunEnd>) -> Result<()> {
        cx.call_sub_agent("bookkeeper", "the books").await.map(drop)
    }
}

#[tokio::test]
async fn a_sub_agent_that_asks_in_after_agent_fails_the_run_with_an_error_that_names_the_hook() {
    let shop = Shop::default();
    let agent = Agent::builder("boss", calls_in_turn([])).middleware(Late);
    let agent = agent.sub_agent("bookkeeper", "Keeps the books.", researcher(&shop, |_| true));
    let e = agent.build().expect("builds").run("go").await.expect_err("it cannot wait");
    assert_eq!(e.kind(), agent_core::ErrorKind::Middleware);
    assert!(e.message().contains("after_agent"), "{e}");
}

/// Has a sub-agent keep the books before anything else.
struct First;

#[async_trait]
impl Middleware for First {
    async fn before_agent(&self, cx: &RunCx) -> Result<()> {
        cx.call_sub_agent("bookkeeper", "the books").await.map(drop)
    }
}

#[tokio::test(start_paused = true)]
async fn a_sub_agent_of_before_agent_acts_once_in_a_run_wherever_the_process_died() {
    let build = |journal, shop: &Shop| {
        let agent = Agent::builder("boss", calls_in_turn(["look", "look"])).tool(gives("look", "looked"));
        let agent = agent.middleware(First).middleware(Lingers);
        agent
            .sub_agent("bookkeeper", "Keeps the books.", researcher(shop, |_| false))
            .store(journal)
            .build()
            .expect("builds")
    };
    let wrong = after_each_death(build, |end, shop| not_as(end, shop, &["looked", "looked"], &["the books"])).await;
    assert!(wrong.is_empty(), "{} deaths went wrong:\n{}", wrong.len(), wrong.join("\n"));
}
