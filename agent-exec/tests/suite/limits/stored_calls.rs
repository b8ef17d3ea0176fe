//! Tool calls with a stored result, and calls that were cut off, under a budget.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use agent_core::{
    Budget, Caps, Error, Middleware, ModelRequest, Result, Retry, RunCx, RunRequest, ToolNext, ToolOutput, ToolRequest,
    Window, async_trait,
    testing::{ScriptedModel, Turn},
};
use agent_exec::{Agent, AgentBuilder};
use serde_json::json;

use crate::children::*;

/// Has a person release what `pay` gave.
struct Releases;

#[async_trait]
impl Middleware for Releases {
    async fn after_tool(&self, _: &RunCx, req: &ToolRequest, _: &mut ToolOutput) -> Result<()> {
        req.ask::<bool>("release", json!(null)).map(drop)
    }
}

fn pays(shop: &Shop, caps: Caps) -> AgentBuilder {
    let model = thinks(|seen| match seen.results.len() {
        0 => calls([("c1", "pay", json!({"for": "the order"}))]),
        _ => "done".into(),
    });
    Agent::builder("a", model)
        .tool(shop.tool())
        .budget(Budget::builder().window(Window::Run, caps).build().expect("builds"))
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_result_is_kept_is_not_charged_again_after_a_question() {
    let shop = Shop::default();
    let agent = pays(&shop, Caps::default().tool_calls(1)).middleware(Releases).build().expect("builds");
    let (how, checkpoint) = stopped(agent.run("go").await);
    assert_eq!((how, asked(&checkpoint)), ("interrupted", vec!["c1/release"]));
    let end = finished(agent.start(RunRequest::resume(checkpoint, [("c1/release".to_owned(), json!(true))])).await);
    assert_eq!(not_as(&end, &shop, &["paid the order"], &["the order"]), None);
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_result_is_kept_is_not_charged_again_wherever_the_process_died() {
    let build = |journal, shop: &Shop| {
        pays(shop, Caps::default().tool_calls(1)).middleware(Lingers).store(journal).build().expect("builds")
    };
    let wrong = after_each_death(build, |end, shop| not_as(end, shop, &["paid the order"], &["the order"])).await;
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
async fn a_call_that_ran_and_was_refused_when_it_was_tried_again_is_not_said_not_to_have_run() {
    let sent = Arc::new(AtomicU32::new(0));
    let sending = sent.clone();
    let send = tool("send", move |_| {
        sending.fetch_add(1, Ordering::SeqCst);
        async { Err(Error::tool("the mail is out, but its receipt is late").with_retry(Retry::Temporary(None))) }
    });
    let agent = Agent::builder("a", calls_in_turn(["send"])).tool(send).middleware(Again);
    let agent = agent.budget(Budget::new(Caps::default().tool_calls(1))).build().expect("builds");
    let end = finished(agent.run("go").await);
    assert_eq!(sent.load(Ordering::SeqCst), 1, "it did run");
    assert!(!told(&end.history)[0].starts_with("Not run"), "{:?}", told(&end.history));
}

#[tokio::test(start_paused = true)]
async fn a_tool_whose_model_call_is_refused_after_its_effect_is_not_said_not_to_have_run() {
    let shop = Shop::default();
    let paying = shop.clone();
    let pay = tool("pay", move |req: ToolRequest| {
        paying.pay(&req, "the order");
        async move {
            let model = ScriptedModel::new([Turn::text("thanks")]);
            let thanks = req.cx.call_model(&model, ModelRequest::new(req.cx.clone())).await?;
            Ok(ToolOutput::text(thanks.message.text()))
        }
    });
    let agent =
        Agent::builder("a", calls_in_turn(["pay"])).tool(pay).budget(Budget::new(Caps::default().model_calls(1)));
    let end = finished(agent.build().expect("builds").run("go").await);
    assert_eq!(shop.paid(), ["the order"], "it did run");
    assert!(!told(&end.history)[0].starts_with("Not run"), "{:?}", told(&end.history));
}
