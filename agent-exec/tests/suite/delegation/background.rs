//! Sub-agents that run in the background of their caller.

use agent_core::{ErrorKind, EventKind, RunRequest};
use agent_middleware::Snapshots;
use tokio::time::{Instant, sleep};

use super::*;
use crate::common::{Log, Watch, finished, hangs, ms, slow, stopped};

/// Builds a helper whose only tool call takes `millis` milliseconds, and which then answers.
fn busy(millis: u64, log: &Log) -> Agent {
    let model = thinks(|spoke, history| match spoke {
        0 => call("k", "work", json!({})),
        _ => says(format!("helped: {}", last(history))),
    });
    built(Agent::builder("helper", model).tool(slow("work", millis, log).repeatable()))
}

const BACKGROUND: fn() -> Value = || json!({"background": true});

#[tokio::test(start_paused = true)]
async fn the_call_returns_at_once_and_the_end_comes_as_a_message_before_the_run_finishes() {
    let (log, begun) = (Log::default(), Instant::now());
    let noted = log.clone();
    let model = thinks(move |spoke, _| {
        noted.note(format!("boss {spoke} at {}", begun.elapsed().as_millis()));
        match spoke {
            0 => ask("a", "help", BACKGROUND()),
            1 => "I wait.".into(),
            _ => "done".into(),
        }
    });
    let watch = Watch::default();
    let end = finished(built(boss(model, busy(100, &log)).middleware(watch.clone())).run("go").await);
    assert_eq!(log.seen(), ["boss 0 at 0", "k begins", "boss 1 at 0", "k ends", "boss 2 at 100"]);
    let started = "Sub-agent 'helper' runs in the background (id ID). You will be told when it is done; to wait for it \
                   call delegate_wait.";
    assert_eq!(without_ids(&texts(&end)[0]), started);
    let report = "[Sub-agent 'helper' (id ID), which ran in the background, is done:]\n\nhelped: k\n\n[The id of this \
                  sub-agent: ID]";
    assert_eq!(told(&end), ["go", report]);
    assert_eq!((end.answer.as_str(), end.usage.calls, end.tree_usage.calls), ("done", 3, 5));
    let reported = watch.pick(|kind| matches!(kind, EventKind::SubAgentReported { .. }).then_some(()));
    assert_eq!(reported.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_call_can_wait_for_the_end_which_is_then_not_told_again() {
    let log = Log::default();
    let model = thinks(|spoke, history| match spoke {
        0 => ask("a", "help", BACKGROUND()),
        1 => call("b", "delegate_wait", json!({"id": first_id(history), "seconds": 0.05})),
        2 => call("c", "delegate_wait", json!({})),
        3 => call("d", "delegate_wait", json!({})),
        4 => call("e", "delegate_wait", json!({"id": first_id(history)})),
        _ => "done".into(),
    });
    let end = finished(built(boss(model, busy(100, &log))).run("go").await);
    let seen: Vec<_> = texts(&end).iter().map(|text| without_ids(text)).collect();
    assert_eq!(seen[1], "Not done after 0.05 s:\n- helper (id ID): at work\n");
    assert_eq!(seen[2..], ["helped: k", "No sub-agent runs in the background.", "helped: k"]);
    assert_eq!(told(&end), ["go"]);
}

#[tokio::test(start_paused = true)]
async fn several_are_waited_for_one_after_the_other_and_who_nobody_waited_for_reports() {
    let model = thinks(|spoke, _| match spoke {
        0 => {
            let call = |id: &str, ms: u64| {
                let args = json!({"agent": "helper", "message": ms.to_string(), "background": true});
                Block::tool_call(id, "delegate", args.to_string())
            };
            AssistantMessage::new(vec![call("a", 300), call("b", 100), call("c", 200)])
        }
        1 => call("w", "delegate_wait", json!({})),
        2 => "that will do".into(),
        3 | 4 => "one more".into(),
        _ => "done".into(),
    });
    let sleeper = tool("sleep", async |req: agent_core::ToolRequest| {
        sleep(ms(req.args["ms"].as_u64().expect("a number"))).await;
        Ok(ToolOutput::text("slept"))
    });
    let helper = thinks(|spoke, history| match spoke {
        0 => call("k", "sleep", json!({"ms": last(history).parse::<u64>().expect("a number")})),
        _ => says(history.iter().next().expect("told").text()),
    });
    let helper = built(Agent::builder("helper", helper).tool(sleeper.repeatable()));
    let end = finished(built(boss(model, helper)).run("go").await);
    assert_eq!(texts(&end)[3], "100");
    let reported: Vec<_> =
        told(&end)[1..].iter().map(|text| text.split("\n\n").nth(1).expect("text").to_owned()).collect();
    assert_eq!(reported, ["200", "300"]);
}

#[tokio::test(start_paused = true)]
async fn a_sub_agent_is_steered_while_it_works_and_not_when_it_is_over() {
    let log = Log::default();
    let model = thinks(|spoke, history| match spoke {
        0 => ask("a", "help", BACKGROUND()),
        1 => call("b", "delegate_steer", json!({"id": first_id(history), "message": "in French"})),
        2 => call("c", "delegate_status", json!({})),
        3 => call("d", "delegate_wait", json!({})),
        4 => call("e", "delegate_steer", json!({"id": first_id(history), "message": "too late"})),
        5 => call("f", "delegate_status", json!({"id": first_id(history)})),
        6 => call("g", "delegate_steer", json!({"id": "nobody", "message": "x"})),
        _ => "done".into(),
    });
    let end = finished(built(boss(model, busy(100, &log))).run("go").await);
    let seen: Vec<_> = texts(&end).iter().map(|text| without_ids(text)).collect();
    let over = "Sub-agent 'helper' is over: call it again with the id ID and the message.";
    let nobody = "No sub-agent with the id 'nobody' is in the background. In the background: helper (id ID): done";
    assert_eq!(
        seen[1..],
        [
            "It is told before its next step.",
            "- helper (id ID): at work",
            "helped: in French",
            over,
            "- helper (id ID): done",
            nobody
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_sub_agent_that_is_cancelled_is_gone_and_does_not_report() {
    let log = Log::default();
    let model = thinks(|spoke, history| match spoke {
        0 => ask("a", "help", BACKGROUND()),
        1 => call("w", "delegate_wait", json!({"seconds": 0.01})),
        2 => call("b", "delegate_cancel", json!({"id": first_id(history)})),
        _ => "done".into(),
    });
    let helper = thinks(|_, _| call("k", "hang", json!({})));
    let helper = built(Agent::builder("helper", helper).tool(hangs("hang", &log)));
    let end = finished(built(boss(model, helper)).run("go").await);
    assert_eq!(without_ids(&texts(&end)[2]), "helper (id ID): cancelled");
    assert_eq!((log.seen(), told(&end).len()), (vec!["k begins".to_owned(), "k dropped".to_owned()], 1));
}

#[tokio::test(start_paused = true)]
async fn one_that_fails_reports_its_failure_with_its_id() {
    let model = thinks(|spoke, _| match spoke {
        0 => ask("a", "help", BACKGROUND()),
        _ => "done".into(),
    });
    let helper = thinks(|_, _| call("k", "fails", json!({})));
    let helper = Agent::builder("helper", helper).tool(crate::common::fails("fails", "no disk")).raise_tool_errors();
    let end = finished(built(boss(model, built(helper))).run("go").await);
    let report = "[Sub-agent 'helper' (id ID), which ran in the background, failed:]\n\nSub-agent 'helper' failed (id \
                  ID): no disk";
    assert_eq!(told(&end)[1], report);
}

#[tokio::test(start_paused = true)]
async fn cancelling_the_run_cancels_them_and_they_go_on_with_it() {
    let (log, again) = (Log::default(), Log::default());
    let model = || {
        thinks(|spoke, history| match spoke {
            0 => ask("a", "help", BACKGROUND()),
            _ if last(history).contains("is done") => "done".into(),
            _ => "I wait.".into(),
        })
    };
    let run = built(boss(model(), busy(1000, &log))).start(RunRequest::user("go"));
    let handle = run.handle();
    let cancel = async {
        sleep(ms(20)).await;
        handle.cancel();
        Instant::now()
    };
    let (end, cancelled_at) = tokio::join!(run, cancel);
    assert!(cancelled_at.elapsed() < ms(100), "{:?}", cancelled_at.elapsed());
    let (kind, checkpoint) = stopped(end);
    assert_eq!((kind, checkpoint.background.len()), ("cancelled", 1));
    assert_eq!(log.seen(), ["k begins"], "its tool was dropped");
    let end = finished(built(boss(model(), busy(10, &again))).start(RunRequest::resume(checkpoint, [])).await);
    assert_eq!((end.answer.as_str(), again.seen()), ("done", vec!["k begins".to_owned(), "k ends".to_owned()]));
    assert!(told(&end)[1].contains("helped: k"), "{:?}", told(&end));
}

#[tokio::test(start_paused = true)]
async fn dropping_the_run_drops_them() {
    let log = Log::default();
    let model = thinks(|spoke, _| if spoke == 0 { ask("a", "help", BACKGROUND()) } else { "I wait.".into() });
    let helper = thinks(|_, _| call("k", "hang", json!({})));
    let helper = built(Agent::builder("helper", helper).tool(hangs("hang", &log)));
    let run = built(boss(model, helper)).start(RunRequest::user("go"));
    assert!(tokio::time::timeout(ms(20), run).await.is_err(), "it waits for its sub-agent");
    sleep(ms(1)).await;
    assert_eq!(log.seen(), ["k begins", "k dropped"]);
}

#[tokio::test(start_paused = true)]
async fn a_pause_pauses_them_and_they_go_on_with_the_run() {
    let log = Log::default();
    let model = || {
        thinks(|spoke, history| match spoke {
            0 => ask("a", "help", BACKGROUND()),
            _ if last(history).contains("is done") => "done".into(),
            _ => "I wait.".into(),
        })
    };
    let agent = || built(boss(model(), busy(100, &log)));
    let run = agent().start(RunRequest::user("go"));
    let handle = run.handle();
    let pause = async {
        sleep(ms(20)).await;
        handle.pause();
    };
    let (kind, checkpoint) = stopped(tokio::join!(run, pause).0);
    assert_eq!((kind, log.seen()), ("paused", vec!["k begins".to_owned(), "k ends".to_owned()]));
    let end = finished(agent().start(RunRequest::resume(checkpoint, [])).await);
    assert_eq!((end.answer.as_str(), log.seen().len()), ("done", 2), "its finished call is not run again");
}

#[tokio::test(start_paused = true)]
async fn what_one_of_them_asks_comes_up_when_the_run_has_nothing_else_to_do() {
    let model = || {
        thinks(|spoke, history| match spoke {
            0 => ask("a", "help", BACKGROUND()),
            _ if last(history).contains("is done") => says(last(history)),
            _ => "I wait.".into(),
        })
    };
    let helper = || {
        let model = thinks(|spoke, history| match spoke {
            0 => call("k", "careful", json!({})),
            _ => says(format!("they said {}", last(history))),
        });
        built(Agent::builder("helper", model).tool(careful()))
    };
    let agent = || built(boss(model(), helper()));
    let (kind, checkpoint) = stopped(agent().run("go").await);
    let id = questions(&checkpoint)[0].to_owned();
    assert_eq!((kind, without_ids(&id).as_str()), ("interrupted", "ID/k/input"));
    let end = finished(agent().start(RunRequest::resume(checkpoint, [(id, json!("yes"))])).await);
    assert!(end.answer.contains("they said yes"), "{}", end.answer);
}

#[tokio::test(start_paused = true)]
async fn what_an_outer_hook_keeps_of_a_stopped_run_has_its_sub_agents_as_they_stopped() {
    let model = thinks(|spoke, _| if spoke == 0 { ask("a", "help", BACKGROUND()) } else { "I wait.".into() });
    let helper = thinks(|_, _| call("k", "careful", json!({})));
    let helper = built(Agent::builder("helper", helper).tool(careful()));
    let kept = Arc::new(std::sync::Mutex::new(None));
    let keeps = kept.clone();
    let snapshots = Snapshots::new(move |checkpoint: Checkpoint| {
        *keeps.lock().expect("a lock") = Some(checkpoint);
        async { Ok("here".to_owned()) }
    });
    let agent = Agent::builder("boss", model).middleware(snapshots).middleware(delegation(helper));
    let (_, mut checkpoint) = stopped(built(agent).run("go").await);
    assert_eq!(checkpoint.saved_as.take().as_deref(), Some("here"));
    let mut kept = kept.lock().expect("a lock").take().expect("kept");
    kept.elapsed_ms = checkpoint.elapsed_ms;
    assert_eq!((kept.questions.len(), kept.background.len()), (1, 1));
    assert_eq!(kept, checkpoint);
}

#[tokio::test(start_paused = true)]
async fn a_question_of_the_run_pauses_them_and_the_answer_lets_all_go_on() {
    let (log, asked) = (Log::default(), Log::default());
    let model = || {
        let asked = asked.clone();
        thinks(move |spoke, history| {
            asked.note("boss");
            match spoke {
                0 => ask("a", "help", BACKGROUND()),
                1 => call("b", "careful", json!({})),
                _ if last(history).contains("is done") => "done".into(),
                _ => "I wait.".into(),
            }
        })
    };
    let agent = || built(boss(model(), busy(100, &log)).tool(careful()));
    let (kind, checkpoint) = stopped(agent().run("go").await);
    assert_eq!((kind, questions(&checkpoint)), ("interrupted", vec!["b/input"]));
    let answer = ("b/input".to_owned(), json!("yes"));
    let end = finished(agent().start(RunRequest::resume(checkpoint, [answer])).await);
    assert_eq!((end.answer.as_str(), log.seen().len()), ("done", 2));
    let calls = asked.seen().len() + 2;
    assert_eq!(end.tree_usage.calls, calls as u64, "what was used before still counts, once");
}

#[tokio::test(start_paused = true)]
async fn somebody_who_steers_the_run_is_heard_while_it_waits() {
    let log = Log::default();
    let model = thinks(|spoke, history| match spoke {
        0 => ask("a", "help", BACKGROUND()),
        _ if last(history) == "stop it" => call("b", "delegate_cancel", json!({"id": first_id(history)})),
        _ if last(history).ends_with("cancelled") => "stopped".into(),
        _ => "I wait.".into(),
    });
    let run = built(boss(model, busy(60_000, &log))).start(RunRequest::user("go"));
    let (handle, begun) = (run.handle(), Instant::now());
    let steer = async {
        sleep(ms(20)).await;
        handle.steer(Message::user("stop it")).expect("under way");
    };
    let end = finished(tokio::join!(run, steer).0);
    assert_eq!(end.answer, "stopped");
    assert!(begun.elapsed() < ms(200), "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_run_that_need_not_wait_finishes_and_cancels_them() {
    let (log, begun) = (Log::default(), Instant::now());
    let config: agent_middleware::delegation::DelegationConfig =
        serde_json::from_value(json!({"background": true, "wait_at_end": false})).expect("sound");
    let model = thinks(|spoke, _| if spoke == 0 { ask("a", "help", BACKGROUND()) } else { "done".into() });
    let delegation = Delegation::from(config).to("helper", "", busy(60_000, &log));
    let end = finished(built(Agent::builder("boss", model).middleware(delegation)).run("go").await);
    assert_eq!(end.answer, "done");
    assert!(begun.elapsed() < ms(100), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn nothing_runs_beside_a_run_that_is_over() {
    let kept = Arc::new(std::sync::Mutex::new(None));
    let keep = kept.clone();
    let keeps = tool("keeps", move |req: agent_core::ToolRequest| {
        *keep.lock().expect("free") = Some(req.cx.clone());
        async { Ok(ToolOutput::text("kept")) }
    });
    let model = thinks(|spoke, _| if spoke == 0 { call("a", "keeps", json!({})) } else { "done".into() });
    finished(built(Agent::builder("boss", model).tool(keeps)).run("go").await);
    let cx = kept.lock().expect("free").take().expect("kept");
    assert_eq!(cx.spawn(async {}).expect_err("over").kind(), ErrorKind::Stopped);
}
