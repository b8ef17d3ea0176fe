//! Sub-agents that tools, hooks and retries start at once, or one within another.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

use agent_core::{
    Effect, Error, Exit, Flow, Journal, MemoryJournal, Middleware, Result, Retry, RunCx, RunEnd, RunRequest, Tool,
    ToolBatch, ToolNext, ToolOptions, ToolOutput, ToolRequest, ToolSpec, Verdict, async_trait,
    journal::{EntryBody, RunStatus},
    tool::Reconciled,
};
use agent_exec::{Agent, AgentBuilder};
use agent_middleware::Delegation;
use serde_json::json;

use super::*;

// --- several sub-agents of one call ---

/// A tool that has two tasks done at once, and does nothing else.
fn both_at_once() -> FnTool {
    let survey = tool("survey", async |req: ToolRequest| {
        let (one, two) =
            futures::join!(req.call_sub_agent("researcher", "one"), req.call_sub_agent("researcher", "two"));
        Ok(ToolOutput::text(format!("one: {}; two: {}", one?.answer, two?.answer)))
    });
    survey.delegates()
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_calls_a_sub_agent_twice_at_once_gets_the_right_ones_back_after_a_question() {
    let shop = Shop::default();
    let agent = Agent::builder("boss", calls_in_turn(["survey"])).tool(both_at_once());
    let agent = agent.sub_agent("researcher", "Finds out.", researcher(&shop, |task| task == "two"));
    let agent = agent.build().expect("builds");
    let mut end = agent.run("go").await;
    for _ in 0..3 {
        let Ok(RunEnd::Interrupted(checkpoint)) = end else { break };
        let answers = checkpoint.questions.iter().map(|q| (q.id.clone(), shop.answer(q))).collect::<Vec<_>>();
        end = agent.start(RunRequest::resume(*checkpoint, answers)).await;
    }
    assert_eq!(not_as(&finished(end), &shop, &["one: found one; two: found two"], &["one", "two"]), None);
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_calls_a_sub_agent_twice_at_once_gets_the_right_ones_back_wherever_its_process_died() {
    let build = |journal, shop: &Shop| {
        let agent = Agent::builder("boss", calls_in_turn(["survey"])).tool(both_at_once());
        let agent = agent.sub_agent("researcher", "Finds out.", researcher(shop, |_| false));
        agent.store(journal).build().expect("builds")
    };
    let right = |end: &_, shop: &Shop| not_as(end, shop, &["one: found one; two: found two"], &["one", "two"]);
    let wrong = after_each_death(build, right).await;
    assert!(wrong.is_empty(), "{} deaths went wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// Has each call of `survey` checked by a sub-agent before it runs, as that call.
struct Checks;

#[async_trait]
impl Middleware for Checks {
    async fn before_tool(&self, _: &RunCx, req: &mut ToolRequest) -> Result<Flow<ToolOutput>> {
        if &*req.call.name == "survey" {
            req.call_sub_agent("checker", "may it?").await?;
        }
        Ok(Flow::Continue)
    }
}

#[tokio::test(start_paused = true)]
async fn a_tool_hook_and_its_tool_that_call_a_sub_agent_each_get_their_own_back_wherever_the_process_died() {
    let build = |journal, shop: &Shop| {
        let checker = Agent::builder("checker", paying(|_| false)).tool(shop.tool()).build().expect("builds");
        let survey = tool("survey", async |req: ToolRequest| {
            Ok(ToolOutput::text(req.call_sub_agent("researcher", "one").await?.answer))
        });
        let agent = Agent::builder("boss", calls_in_turn(["survey"])).tool(survey.delegates()).middleware(Checks);
        let agent = agent.sub_agent("researcher", "Finds out.", researcher(shop, |_| false));
        agent.sub_agent("checker", "Checks.", checker).store(journal).build().expect("builds")
    };
    let right = |end: &_, shop: &Shop| not_as(end, shop, &["found one"], &["may it?", "one"]);
    let wrong = after_each_death(build, right).await;
    assert!(wrong.is_empty(), "{} deaths went wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// Tries a call again that failed for now.
struct Again;

#[async_trait]
impl Middleware for Again {
    async fn wrap_tool_call(&self, req: ToolRequest, next: ToolNext<'_>) -> Result<ToolOutput> {
        match next.run(req.clone()).await {
            Err(e) if matches!(e.retry(), Retry::Temporary(_)) => next.run(req).await,
            answered => answered,
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_retry_of_a_tool_that_is_gone_on_with_does_not_resume_the_same_sub_agent_twice() {
    let (shop, journal, tries) = (Shop::default(), MemoryJournal::default(), Arc::new(AtomicU32::new(0)));
    let survey = tool("survey", move |req: ToolRequest| {
        let tries = tries.clone();
        async move {
            let found = req.call_sub_agent("researcher", "one").await?.answer;
            match tries.fetch_add(1, Ordering::SeqCst) {
                0 => Err(Error::tool("the printer is busy").with_retry(Retry::Temporary(None))),
                _ => Ok(ToolOutput::text(found)),
            }
        }
    });
    let agent = Agent::builder("boss", calls_in_turn(["survey"])).tool(survey.delegates()).middleware(Again);
    let agent = agent.sub_agent("researcher", "Finds out.", researcher(&shop, |_| true));
    let agent = agent.store(journal.clone()).build().expect("builds");
    assert_eq!(stopped(agent.start(RunRequest::user("go").session("s")).await).0, "interrupted");
    let end = drive_to_its_end(&agent, &shop).await.expect("it finishes");
    let mut ends = BTreeMap::<_, u32>::new();
    for entry in journal.read("s", 0, usize::MAX).await.expect("reads") {
        if matches!(entry.body, EntryBody::RunEnded { status: RunStatus::Finished(_), .. }) {
            *ends.entry(entry.run.clone()).or_default() += 1;
        }
    }
    assert!(
        ends.values().all(|n| *n == 1),
        "{ends:?} times finished; {:?}, paid {:?}",
        told(&end.history),
        shop.paid()
    );
}

#[tokio::test(start_paused = true)]
async fn a_sub_agents_tool_that_calls_a_sub_agent_twice_gets_the_right_ones_back_after_a_question() {
    let shop = Shop::default();
    let survey = tool("survey", async |req: ToolRequest| {
        let one = req.call_sub_agent("researcher", "one").await?.answer;
        let two = req.call_sub_agent("researcher", "two").await?.answer;
        Ok(ToolOutput::text(format!("one: {one}; two: {two}")))
    });
    let lead = thinks(|seen| match seen.results.first() {
        None => call("s", "survey"),
        Some((_, found)) => found.as_str().into(),
    });
    let lead = Agent::builder("lead", lead).tool(survey.delegates());
    let lead =
        lead.sub_agent("researcher", "Finds out.", researcher(&shop, |task| task == "two")).build().expect("builds");
    let boss = thinks(|seen| match seen.results.len() {
        0 => calls([("d", "delegate", json!({"agent": "lead", "message": "go"}))]),
        _ => "done".into(),
    });
    let agent =
        Agent::builder("boss", boss).middleware(Delegation::new().to("lead", "Leads.", lead)).build().expect("builds");
    let (how, checkpoint) = stopped(agent.run("go").await);
    assert_eq!(how, "interrupted");
    let answers = checkpoint.questions.iter().map(|q| (q.id.clone(), shop.answer(q))).collect::<Vec<_>>();
    let end = finished(agent.start(RunRequest::resume(checkpoint, answers)).await);
    assert_eq!(not_as(&end, &shop, &["one: found one; two: found two"], &["one", "two"]), None);
}

#[tokio::test(start_paused = true)]
async fn a_sub_agent_in_the_background_beside_one_that_is_waited_for_is_paid_once_wherever_the_process_died() {
    let build = |journal, shop: &Shop| {
        let delegate = |id, task, background| {
            (id, "delegate", json!({"agent": "researcher", "message": task, "background": background}))
        };
        let boss = thinks(move |seen| match (seen.results.len(), seen.task.as_str()) {
            (0, _) if seen.is_first => calls([delegate("b", "one", true), delegate("d", "two", false)]),
            _ => "done".into(),
        });
        let delegation = Delegation::new().background().to("researcher", "Finds out.", researcher(shop, |_| false));
        Agent::builder("boss", boss).middleware(delegation).store(journal).build().expect("builds")
    };
    let wrong = after_each_death(build, |_, shop| {
        // One that was lost before it began is reported as that, and not begun again by this boss.
        let paid = shop.paid();
        (paid != ["one", "two"] && paid != ["two"]).then(|| format!("paid {paid:?}, doubts {:?}", shop.doubts()))
    });
    let wrong = wrong.await;
    assert!(wrong.is_empty(), "{} deaths went wrong:\n{}", wrong.len(), wrong.join("\n"));
}

// --- the effect of a tool that had a sub-agent ---

/// A tool that can find out whether it has happened.
struct Looks(Shop, Arc<AtomicU32>);

#[async_trait]
impl Tool for Looks {
    fn spec(&self) -> ToolSpec {
        ToolSpec::new("order", "", json!({"type": "object"}))
    }

    fn options(&self) -> ToolOptions {
        ToolOptions::default().effect(Effect::Reconcilable)
    }

    async fn call(&self, req: ToolRequest) -> Result<ToolOutput> {
        let checked = req.call_sub_agent("checker", "the order").await?.answer;
        self.0.pay(&req, "the order");
        Ok(ToolOutput::text(checked))
    }

    async fn reconcile(&self, _: ToolRequest) -> Result<Reconciled> {
        self.1.fetch_add(1, Ordering::SeqCst);
        Ok(match self.0.paid().is_empty() {
            true => Reconciled::DidNot,
            false => Reconciled::Happened(ToolOutput::text("it is ordered")),
        })
    }
}

#[tokio::test(start_paused = true)]
async fn a_reconcilable_tool_with_a_sub_agent_is_asked_whether_it_happened_wherever_the_process_died() {
    let build = |journal, shop: &Shop| {
        let checker = Agent::builder("checker", thinks(|_| "fine".into())).build().expect("builds");
        let agent = Agent::builder("boss", calls_in_turn(["order"])).tool(Looks(shop.clone(), Arc::default()));
        agent.sub_agent("checker", "Checks.", checker).store(journal).build().expect("builds")
    };
    let wrong =
        after_each_death(build, |_, shop| (shop.paid() != ["the order"]).then(|| format!("paid {:?}", shop.paid())));
    let wrong = wrong.await;
    assert!(wrong.is_empty(), "{} deaths went wrong:\n{}", wrong.len(), wrong.join("\n"));
}

// --- sub-agents of other hooks ---

/// Has a sub-agent keep the books in one of the hooks.
struct At(&'static str, Shop);

impl At {
    async fn hook(&self, cx: &RunCx, hook: &str) -> Result<()> {
        if self.0 == hook {
            cx.call_sub_agent("bookkeeper", "the books").await?;
            self.1.hook_is_over();
        }
        Ok(())
    }
}

#[async_trait]
impl Middleware for At {
    async fn before_agent(&self, cx: &RunCx) -> Result<()> {
        self.hook(cx, "before_agent").await
    }

    async fn before_tools(&self, cx: &RunCx, _: &mut ToolBatch) -> Result<()> {
        self.hook(cx, "before_tools").await
    }

    async fn after_tool(&self, cx: &RunCx, _: &ToolRequest, _: &mut ToolOutput) -> Result<()> {
        self.hook(cx, "after_tool").await
    }

    async fn on_exit(&self, cx: &RunCx, _: &mut Exit) -> Result<Verdict> {
        self.hook(cx, "on_exit").await.map(|()| Verdict::Proceed)
    }
}

const HOOKS: [&str; 4] = ["before_agent", "before_tools", "after_tool", "on_exit"];

fn with_books(hook: &'static str, shop: &Shop, bookkeeper: Agent) -> AgentBuilder {
    let agent = Agent::builder("boss", calls_in_turn(["look"])).tool(gives("look", "looked"));
    let agent = agent.middleware(At(hook, shop.clone()));
    agent.sub_agent("bookkeeper", "Keeps the books.", bookkeeper)
}

#[tokio::test(start_paused = true)]
async fn what_a_sub_agent_of_any_hook_asks_can_be_answered() {
    let mut wrong = Vec::new();
    for hook in HOOKS {
        let shop = Shop::default();
        let agent = with_books(hook, &shop, researcher(&shop, |_| true)).build().expect("builds");
        let (mut end, mut rounds) = (agent.run("go").await, 0);
        while let Ok(RunEnd::Interrupted(checkpoint)) = end {
            rounds += 1;
            let answers = checkpoint.questions.iter().map(|q| (q.id.clone(), shop.answer(q))).collect::<Vec<_>>();
            let answered = agent.start(RunRequest::resume((*checkpoint).clone(), answers)).await;
            end = if rounds < 4 { answered } else { Err(Error::tool("asks for ever")) };
        }
        let refused = rounds == 0 && end.is_err();
        if !refused && (end.is_err() || shop.paid() != ["the books"]) {
            wrong.push(format!(
                "{hook}: {rounds} rounds, paid {:?}, {}",
                shop.paid(),
                end.map_or_else(|e| e.to_string(), |e| e.as_str().into())
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test(start_paused = true)]
async fn what_a_sub_agent_of_any_hook_paid_is_not_paid_again_wherever_the_process_died() {
    let mut all = Vec::new();
    for hook in HOOKS {
        let build = |journal, shop: &Shop| {
            with_books(hook, shop, researcher(shop, |_| false)).store(journal).build().expect("builds")
        };
        let wrong = after_each_death(build, |end, shop| not_as(end, shop, &["looked"], &["the books"])).await;
        all.extend(wrong.into_iter().map(|wrong| format!("{hook}: {wrong}")));
    }
    assert!(all.is_empty(), "{} deaths went wrong:\n{}", all.len(), all.join("\n"));
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_paused_while_a_sub_agent_of_any_hook_works_goes_on_with_it() {
    let mut wrong = Vec::new();
    for hook in HOOKS {
        let shop = Shop::default();
        let (paying, once) = (shop.clone(), AtomicU32::new(0));
        let pay = tool("pay", move |req: ToolRequest| {
            paying.pay(&req, "the books");
            if once.fetch_add(1, Ordering::SeqCst) == 0 {
                req.cx.pause();
            }
            async move { Ok(ToolOutput::text("paid")) }
        });
        let bookkeeper = Agent::builder("bookkeeper", super::paying(|_| false)).tool(pay).build().expect("builds");
        let agent = with_books(hook, &shop, bookkeeper).build().expect("builds");
        let mut end = agent.run("go").await;
        let how = end.as_ref().map_or("fails", RunEnd::as_str);
        for _ in 0..3 {
            let Some(checkpoint) = end.as_ref().ok().and_then(RunEnd::checkpoint).cloned() else { break };
            end = agent.start(RunRequest::resume(checkpoint, [])).await;
        }
        let over = end.as_ref().map_or("fails", RunEnd::as_str);
        if (how, over) != ("paused", "finished") || shop.paid() != ["the books"] {
            wrong.push(format!("{hook}: {how} at first, then {over}, paid {:?}", shop.paid()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
