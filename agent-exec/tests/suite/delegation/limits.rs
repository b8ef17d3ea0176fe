//! Limits on the number and the depth of sub-agents.

use agent_core::{Budget, Caps, ToolRequest, engine::SubAgentCall};

use super::*;
use crate::common::{Log, finished, slow};

// NexAU 61 (B)
#[tokio::test]
async fn a_chain_of_agents_ends_at_the_depth_and_the_model_is_told_why() {
    fn nested(levels: u32) -> Agent {
        let model = thinks(|spoke, history| match spoke {
            0 => ask("a", "deeper", json!({})),
            _ => says(last(history)),
        });
        let delegation = Delegation::new().max_depth(2);
        let below = if levels == 0 { parrot() } else { nested(levels - 1) };
        built(Agent::builder("boss", model).middleware(delegation.to("helper", "", below)))
    }
    let end = finished(nested(5).run("go").await);
    let told = "Sub-agent 'helper' was not started: agents may be nested at most 2 deep. Do the task yourself.";
    assert_eq!(end.answer, told);
}

// NexAU 61 (B)
#[tokio::test]
async fn the_budgets_caps_on_depth_and_fan_out_are_told_too() {
    let twice = || {
        thinks(|spoke, _| match spoke {
            0 => ask("a", "one", json!({})),
            1 => ask("b", "two", json!({})),
            _ => "done".into(),
        })
    };
    let with = |caps: Caps| built(boss(twice(), parrot()).budget(Budget::new(caps)));
    let end = finished(with(Caps::default().fan_out(1)).run("go").await);
    let fan_out = "Not run: Sub-agent 'helper' was not started: the budget's cap on the sub-agents of one run is 1. Do the \
                   task yourself.";
    assert_eq!(texts(&end), ["one", fan_out]);
    let end = finished(with(Caps::default().depth(0)).run("go").await);
    let depth = "Not run: Sub-agent 'helper' was not started: the budget's cap on the depth of agents under agents is 0. Do \
                 the task yourself.";
    assert_eq!(texts(&end), [depth, depth]);
}

// NexAU 61 (B)
#[tokio::test(start_paused = true)]
async fn one_too_many_in_the_background_is_refused() {
    let log = Log::default();
    let helper = thinks(|spoke, _| if spoke == 0 { call("k", "work", json!({})) } else { "helped".into() });
    let helper = built(Agent::builder("helper", helper).tool(slow("work", 100, &log)));
    let model = thinks(|spoke, history| match spoke {
        0 => ask("a", "one", json!({"background": true})),
        1 => ask("b", "two", json!({"background": true})),
        2 => call("c", "delegate_wait", json!({})),
        3 => ask("d", "two", json!({"background": true})),
        4 => call("e", "delegate_wait", json!({})),
        _ => says(last(history)),
    });
    let agent = Agent::builder("boss", model).middleware(delegation(helper).max_concurrent(1));
    let end = finished(built(agent).run("go").await);
    let refusal =
        "Sub-agent 'helper' was not started: as many run already as may run at once. Wait for one of them first.";
    assert_eq!(texts(&end)[1], refusal);
    assert_eq!([&texts(&end)[2], &texts(&end)[4]], ["helped", "helped"]);
}

#[tokio::test]
async fn a_sub_agent_that_never_ran_is_not_waited_for_and_no_call_is_refused_as_at_work() {
    let tries = tool("tries", async |req: ToolRequest| {
        let dropped = req.sub_run(SubAgentCall::new("helper", "never run")).await?;
        let id = dropped.id().clone();
        drop(dropped);
        let refused = req.sub_run(SubAgentCall::new("helper", "one too many")).await.expect_err("at the cap").kind();
        let recalled =
            req.sub_run(SubAgentCall::new("helper", "again").recall(id)).await.expect_err("never ran").kind();
        Ok(ToolOutput::text(format!("{refused} {recalled}")))
    });
    let model = thinks(|spoke, history| if spoke == 0 { call("a", "tries", json!({})) } else { says(last(history)) });
    let agent = boss(model, parrot()).tool(tries).budget(Budget::new(Caps::default().fan_out(1)));
    assert_eq!(finished(built(agent).run("go").await).answer, "limit sub-agent not found");
}
