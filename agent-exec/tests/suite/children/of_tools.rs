//! Sub-agents of tools: more than one, or one and something else.

use agent_core::{MemoryJournal, RunRequest, ToolOutput, ToolRequest};
use agent_exec::{Agent, AgentBuilder};
use serde_json::json;

use super::*;

/// A tool that has each task done by the sub-agent under its key, one after the other, and does nothing else.
fn survey(tasks: &'static [(&'static str, &'static str)]) -> FnTool {
    let survey = tool("survey", move |req: ToolRequest| async move {
        let mut found = Vec::new();
        for (key, task) in tasks {
            found.push(format!("{task}: {}", req.call_sub_agent(key, *task).await?.answer));
        }
        Ok(ToolOutput::text(found.join("; ")))
    });
    survey.delegates()
}

fn boss() -> AgentBuilder {
    Agent::builder("boss", calls_in_turn(["survey"]))
}

const TWICE: &[(&str, &str)] = &[("researcher", "one"), ("researcher", "two")];

#[tokio::test(start_paused = true)]
async fn a_tool_that_calls_a_sub_agent_twice_gets_the_right_ones_back_after_a_question() {
    let shop = Shop::default();
    let helper = researcher(&shop, |task| task == "two");
    let agent = boss().tool(survey(TWICE)).sub_agent("researcher", "Finds out.", helper).build().expect("builds");
    let (how, checkpoint) = stopped(agent.run("go").await);
    assert_eq!(
        (how, asked(&checkpoint), shop.paid()),
        ("interrupted", vec!["c1/researcher/1/q/may"], vec!["one".to_owned()])
    );
    let answers = checkpoint.questions.iter().map(|q| (q.id.clone(), shop.answer(q))).collect::<Vec<_>>();
    let end = finished(agent.start(RunRequest::resume(checkpoint, answers)).await);
    assert_eq!(not_as(&end, &shop, &["one: found one; two: found two"], &["one", "two"]), None);
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_calls_a_sub_agent_twice_gets_the_right_ones_back_in_another_process_after_a_question() {
    let (shop, journal) = (Shop::default(), MemoryJournal::default());
    let build = || {
        let helper = researcher(&shop, |task| task == "two");
        let agent = boss().tool(survey(TWICE)).sub_agent("researcher", "Finds out.", helper);
        agent.store(journal.clone()).build().expect("builds")
    };
    let (how, _) = stopped(build().start(RunRequest::user("go").session("s")).await);
    assert_eq!(how, "interrupted");
    let end = drive_to_its_end(&build(), &shop).await.expect("it finishes");
    assert_eq!(not_as(&end, &shop, &["one: found one; two: found two"], &["one", "two"]), None);
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_calls_a_sub_agent_twice_gets_the_right_ones_back_after_a_pause() {
    let shop = Shop::default();
    let model = paying(|_| false);
    let pausing = {
        let shop = shop.clone();
        tool("pay", move |req: ToolRequest| {
            let what = req.args["for"].as_str().expect("says what").to_owned();
            shop.pay(&req, &what);
            if what == "two" {
                req.cx.pause();
            }
            async move { Ok(ToolOutput::text(format!("paid {what}"))) }
        })
    };
    let helper = Agent::builder("researcher", model).tool(pausing).build().expect("builds");
    let agent = boss().tool(survey(TWICE)).sub_agent("researcher", "Finds out.", helper).build().expect("builds");
    let (how, checkpoint) = stopped(agent.run("go").await);
    assert_eq!(how, "paused");
    let end = finished(agent.start(RunRequest::resume(checkpoint, [])).await);
    assert_eq!(not_as(&end, &shop, &["one: found one; two: found two"], &["one", "two"]), None);
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_calls_a_sub_agent_twice_gets_the_right_ones_back_wherever_its_process_died() {
    let build = |journal, shop: &Shop| {
        let agent = boss().tool(survey(TWICE)).sub_agent("researcher", "Finds out.", researcher(shop, |_| false));
        agent.store(journal).build().expect("builds")
    };
    let right = |end: &_, shop: &Shop| not_as(end, shop, &["one: found one; two: found two"], &["one", "two"]);
    let wrong = after_each_death(build, right).await;
    assert!(wrong.is_empty(), "{} deaths went wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_calls_two_different_sub_agents_can_be_recovered_wherever_its_process_died() {
    const BOTH: &[(&str, &str)] = &[("researcher", "one"), ("writer", "two")];
    let build = |journal, shop: &Shop| {
        let writer = Agent::builder("writer", paying(|_| false)).tool(shop.tool()).build().expect("builds");
        let agent = boss().tool(survey(BOTH)).sub_agent("researcher", "Finds out.", researcher(shop, |_| false));
        agent.sub_agent("writer", "Writes.", writer).store(journal).build().expect("builds")
    };
    let right = |end: &_, shop: &Shop| not_as(end, shop, &["one: found one; two: found two"], &["one", "two"]);
    let wrong = after_each_death(build, right).await;
    assert!(wrong.is_empty(), "{} deaths went wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// A tool that has the order checked by a sub-agent and pays it then: at most once, as tools do that say nothing.
fn order(shop: &Shop) -> FnTool {
    let shop = shop.clone();
    tool("order", move |req: ToolRequest| {
        let shop = shop.clone();
        async move {
            let checked = req.call_sub_agent("checker", "the order").await?.answer;
            shop.pay(&req, "the order");
            Ok(ToolOutput::text(checked))
        }
    })
}

#[tokio::test(start_paused = true)]
async fn an_effect_behind_a_sub_agent_is_not_repeated_in_silence_wherever_the_process_died() {
    let build = |journal, shop: &Shop| {
        let checker = Agent::builder("checker", thinks(|_| "fine".into())).build().expect("builds");
        let agent = Agent::builder("boss", calls_in_turn(["order"])).tool(order(shop));
        agent.sub_agent("checker", "Checks.", checker).store(journal).build().expect("builds")
    };
    let wrong = after_each_death(build, |_, shop| {
        (shop.paid() != ["the order"]).then(|| format!("paid {:?}, doubts {:?}", shop.paid(), shop.doubts()))
    });
    let wrong = wrong.await;
    assert!(wrong.is_empty(), "{} deaths went wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[tokio::test(start_paused = true)]
async fn an_effect_before_a_sub_agent_is_not_repeated_in_silence_wherever_the_process_died() {
    let build = |journal, shop: &Shop| {
        let checker = Agent::builder("checker", thinks(|_| "fine".into())).build().expect("builds");
        let paying = shop.clone();
        let order = tool("order", move |req: ToolRequest| {
            let shop = paying.clone();
            async move {
                shop.pay(&req, "the order");
                Ok(ToolOutput::text(req.call_sub_agent("checker", "the order").await?.answer))
            }
        });
        let agent = Agent::builder("boss", calls_in_turn(["order"])).tool(order);
        agent.sub_agent("checker", "Checks.", checker).store(journal).build().expect("builds")
    };
    let wrong = after_each_death(build, |_, shop| {
        (shop.paid() != ["the order"]).then(|| format!("paid {:?}, doubts {:?}", shop.paid(), shop.doubts()))
    });
    let wrong = wrong.await;
    assert!(wrong.is_empty(), "{} deaths went wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[tokio::test(start_paused = true)]
async fn an_effect_without_a_sub_agent_is_not_repeated_in_silence() {
    let build = |journal, shop: &Shop| {
        let agent = Agent::builder(
            "boss",
            thinks(|seen| match seen.results.len() {
                0 => calls([("c1", "pay", json!({"for": "the order"}))]),
                _ => "done".into(),
            }),
        );
        agent.tool(shop.tool()).store(journal).build().expect("builds")
    };
    let wrong = after_each_death(build, |_, shop| {
        (shop.paid() != ["the order"]).then(|| format!("paid {:?}, doubts {:?}", shop.paid(), shop.doubts()))
    });
    let wrong = wrong.await;
    assert!(wrong.is_empty(), "{} deaths went wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_delegates_once_is_gone_on_with_wherever_its_process_died() {
    const ONCE: &[(&str, &str)] = &[("researcher", "one")];
    let build = |journal, shop: &Shop| {
        let agent = boss().tool(survey(ONCE)).sub_agent("researcher", "Finds out.", researcher(shop, |_| false));
        agent.store(journal).build().expect("builds")
    };
    let wrong = after_each_death(build, |end, shop| not_as(end, shop, &["one: found one"], &["one"])).await;
    assert!(wrong.is_empty(), "{} deaths went wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_is_cancelled_with_its_second_sub_agent_gets_both_back() {
    let (shop, journal) = (Shop::default(), MemoryJournal::default());
    let build = |hangs: bool| {
        let pays = {
            let shop = shop.clone();
            tool("pay", move |req: ToolRequest| {
                let what = req.args["for"].as_str().expect("a text").to_owned();
                let shop = shop.clone();
                async move {
                    if hangs && what == "two" {
                        std::future::pending::<()>().await;
                    }
                    shop.pay(&req, &what);
                    Ok(ToolOutput::text(format!("paid {what}")))
                }
            })
        };
        let helper = Agent::builder("researcher", paying(|_| false)).tool(pays).build().expect("builds");
        let survey = survey(TWICE).with(|mut options| {
            options.cancel_grace = ms(50);
            options
        });
        let agent = boss().tool(survey).sub_agent("researcher", "Finds out.", helper);
        agent.store(journal.clone()).build().expect("builds")
    };
    let agent = build(true);
    let run = agent.start(RunRequest::user("go").session("s"));
    let handle = run.handle();
    let (end, ()) = futures::join!(run, async {
        tokio::time::sleep(ms(100)).await;
        handle.cancel();
    });
    assert_eq!((stopped(end).0, shop.paid()), ("cancelled", vec!["one".to_owned()]));
    let end = drive_to_its_end(&build(false), &shop).await.expect("it finishes");
    assert_eq!(not_as(&end, &shop, &["one: found one; two: found two"], &["one", "two"]), None);
}
