//! Questions of members.

use agent_core::{
    Error, ErrorKind, MemoryJournal, ToolOutput, ToolRequest,
    testing::{ScriptedModel, Turn},
};
use agent_exec::Agent;
use agent_team::{MemberStatus, Team, TeamEndReason, TeamRequest};
use agent_tools::from_schema;
use serde_json::{Value, json};

use crate::common::led_by;

fn builder(turns: impl IntoIterator<Item = Turn>) -> Agent {
    let pay = from_schema("pay", "Pays.", json!({"type": "object"}), |_: Value, req: ToolRequest| async move {
        let may: bool = req.ask("may_i", json!({"amount": 3}))?;
        Ok::<_, Error>(ToolOutput::text(if may { "paid" } else { "not paid" }))
    });
    Agent::builder("builder", ScriptedModel::new(turns)).tool(pay).build().expect("builds")
}

fn team(store: &MemoryJournal) -> Team {
    let leader = [
        Turn::call("1", "spawn_teammate", json!({"role_name": "builder"})),
        Turn::call("2", "message", json!({"to_agent_id": "builder-1", "content": "pay"})),
        Turn::text("I wait."),
        Turn::call("3", "finish_team", json!({"summary": "done"})),
    ];
    let turns = [
        Turn::call("p", "pay", json!({})),
        Turn::call("m", "message", json!({"to_agent_id": "leader", "content": "settled"})).expect(|seen| {
            match seen.texts().last().map(String::as_str) {
                Some("paid") => Ok(()),
                other => Err(format!("{other:?}")),
            }
        }),
        Turn::text("It is paid."),
    ];
    led_by(leader).member("builder", builder(turns)).store(store.clone()).build().expect("builds")
}

#[tokio::test(start_paused = true)]
async fn a_question_carries_the_name_of_its_member_and_suspends_the_team_until_it_is_answered() {
    let store = MemoryJournal::default();
    let team = team(&store);
    let end = team.start(TeamRequest::user("Go.").session("s")).await.expect("is suspended");
    assert_eq!(end.reason, TeamEndReason::Waiting);
    assert_eq!((end.questions.len(), &*end.questions[0].member), (1, "builder-1"));
    assert_eq!(end.members[0].status, MemberStatus::Waiting);
    let id = end.questions[0].question.id.clone();

    let session = team.session("s");
    let wrong = session.answer("builder-1", "another", json!(true)).await.expect_err("not asked");
    assert!(wrong.message().contains("has no open question 'another'; open: p/may_i"), "{wrong}");
    let (_, forged) = end.questions[0].question.answer(true);
    let mut forged = forged;
    forged.digest = "forged".into();
    let refused = session.answer("builder-1", id.clone(), forged).await.expect_err("forged");
    assert_eq!(refused.kind(), ErrorKind::AnswerRefused);

    session.answer("builder-1", id.clone(), json!(true)).await.expect("answers");
    assert!(session.questions().await.expect("reads").is_empty());
    session.answer("builder-1", id, json!(false)).await.expect_err("the first answer counts");
    let end = team.start(TeamRequest::resume("s")).await.expect("runs");
    assert_eq!((end.reason, end.text.as_str()), (TeamEndReason::Finished, "done"));
}

#[tokio::test(start_paused = true)]
async fn a_request_that_resumes_can_bring_the_answers() {
    let store = MemoryJournal::default();
    let team = team(&store);
    let end = team.start(TeamRequest::user("Go.").session("s")).await.expect("is suspended");
    let asked = &end.questions[0];
    let request = TeamRequest::resume("s").answer(asked.member.clone(), asked.question.id.clone(), json!(true));
    let end = team.start(request).await.expect("runs");
    assert_eq!((end.reason, end.text.as_str()), (TeamEndReason::Finished, "done"));
}
