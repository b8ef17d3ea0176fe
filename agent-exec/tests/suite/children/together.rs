//! Several sub-agents that one call starts together.

use agent_core::{RunRequest, engine::SubAgentCall};
use agent_exec::AgentBuilder;

use super::*;

/// A tool that has all tasks done by sub-agents, at most two at once.
fn survey(tasks: &'static [(&'static str, &'static str)]) -> FnTool {
    let survey = tool("survey", move |req: ToolRequest| async move {
        let calls = tasks.iter().map(|(key, task)| SubAgentCall::new(*key, *task));
        let ends = req.call_sub_agents(calls, 2).await?;
        let found = tasks.iter().zip(ends).map(|((_, task), end)| match end {
            Ok(end) => format!("{task}: {}", end.answer),
            Err(e) => format!("{task} failed: {}", e.message()),
        });
        Ok(ToolOutput::text(found.collect::<Vec<_>>().join("; ")))
    });
    survey.delegates()
}

fn boss(tasks: &'static [(&'static str, &'static str)]) -> AgentBuilder {
    Agent::builder("boss", calls_in_turn(["survey"])).tool(survey(tasks))
}

const THREE: &[(&str, &str)] = &[("researcher", "one"), ("researcher", "two"), ("researcher", "three")];
const FOUND: &[&str] = &["one: found one; two: found two; three: found three"];

#[tokio::test(start_paused = true)]
async fn results_come_in_the_order_of_the_calls() {
    let shop = Shop::default();
    let agent =
        boss(THREE).sub_agent("researcher", "Finds out.", researcher(&shop, |_| false)).build().expect("builds");
    let end = finished(agent.run("go").await);
    assert_eq!(not_as(&end, &shop, FOUND, &["one", "three", "two"]), None);
}

#[tokio::test(start_paused = true)]
async fn the_failure_of_one_does_not_end_the_others() {
    const TASKS: &[(&str, &str)] = &[("researcher", "one"), ("nobody", "two"), ("researcher", "three")];
    let shop = Shop::default();
    let agent =
        boss(TASKS).sub_agent("researcher", "Finds out.", researcher(&shop, |_| false)).build().expect("builds");
    let end = finished(agent.run("go").await);
    let told = told(&end.history).join("");
    assert!(told.starts_with("one: found one; two failed: ") && told.ends_with("; three: found three"), "{told}");
    assert_eq!(shop.paid(), ["one", "three"]);
}

#[tokio::test(start_paused = true)]
async fn questions_of_several_are_asked_at_once_and_each_goes_on_with_its_answer() {
    let (shop, journal) = (Shop::default(), MemoryJournal::default());
    let build = || {
        let helper = researcher(&shop, |task| task != "one");
        boss(THREE).sub_agent("researcher", "Finds out.", helper).store(journal.clone()).build().expect("builds")
    };
    let (how, checkpoint) = stopped(build().start(RunRequest::user("go").session("s")).await);
    assert_eq!(how, "interrupted");
    assert_eq!(asked(&checkpoint), ["c1/researcher/1/q/may", "c1/researcher/2/q/may"]);
    assert_eq!(shop.paid(), ["one"]);
    let end = drive_to_its_end(&build(), &shop).await.expect("goes on");
    assert_eq!(not_as(&end, &shop, FOUND, &["one", "three", "two"]), None);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_done_twice_or_left_out_when_the_process_dies_at_any_entry() {
    let wrong = after_each_death(
        |journal, shop| {
            let helper = researcher(shop, |task| task == "two");
            boss(THREE).sub_agent("researcher", "Finds out.", helper).store(journal).build().expect("builds")
        },
        |end, shop| not_as(end, shop, FOUND, &["one", "three", "two"]),
    );
    assert_eq!(wrong.await, Vec::<String>::new());
}
