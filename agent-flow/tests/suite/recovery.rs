//! Recovery of a solver's run from the journal after a crash at any entry.

use agent_core::{
    Effect, ExitReason, Finished, Journal, MemoryJournal, Model, ModelInfo, ModelRequest, ModelResponse, Result,
    RunRequest, async_trait, testing::MortalJournal,
};
use agent_flow::{Ending, Models, Output, Solution, Solver};
use agent_tools::{ToolExt, from_schema};
use serde_json::{Value, json};

const SESSION: &str = "s";

/// A model whose answers depend only on the prompt.
struct Roles;

#[async_trait]
impl Model for Roles {
    fn info(&self) -> ModelInfo {
        ModelInfo::new("roles")
    }

    async fn call(&self, req: ModelRequest) -> Result<ModelResponse> {
        let asked = req.messages.last().map(agent_core::Message::text).unwrap_or_default();
        let answers = [
            ("Say what this query needs", "two numbers"),
            ("Plan the next step", "Context: c\nSub-Goal: g\nTool Name: double"),
            ("Write the calls", r#"{"calls": [{"arguments": {"n": 1}}, {"arguments": {"n": {"$ref": "call-1"}}}]}"#),
            ("Judge whether what is known answers the query. 2 of", "Conclusion: STOP"),
            ("Judge", "Conclusion: CONTINUE"),
            ("Answer", "it is 4"),
        ];
        let answer = answers.iter().find(|(begins, _)| asked.starts_with(begins)).expect("a question of a role").1;
        Ok(ModelResponse::new(answer))
    }
}

fn solver(store: impl Journal) -> Solver {
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    let double = from_schema("double", "Doubles.", schema, |args: Value, _| async move {
        Ok::<_, std::convert::Infallible>(json!(args["n"].as_i64().unwrap_or(0) * 2))
    });
    let double = double.with_options(|options| options.effect(Effect::Pure));
    let builder = Solver::builder(Models::all(Roles)).tool(double).outputs([Output::Direct]);
    builder.agent(|agent| agent.store(store)).build().expect("builds")
}

fn course(solver: &Solver, end: &Finished) -> Solution {
    let mut solution = solver.solution(end).expect("a solver's");
    solution.execution_time = std::time::Duration::ZERO;
    solution
}

#[tokio::test(start_paused = true)]
async fn a_solver_that_died_at_any_entry_finds_the_same_solution() {
    let journal = MemoryJournal::default();
    let whole = solver(journal.clone());
    let end = whole.agent().start(whole.request("Twice two?").session(SESSION)).await.expect("runs");
    let end = end.finished().expect("finishes");
    assert_eq!((end.answer.as_str(), &end.reason), ("it is 4", &ExitReason::Text));
    let solution = course(&whole, &end);
    assert_eq!((solution.ending, solution.step_count()), (Some(Ending::Verified), 2));
    assert_eq!(solution.memory.actions[1].results[1].result, "4");
    let entries = journal.read(SESSION, 0, usize::MAX).await.expect("reads").len() as u64;
    assert!(entries > 30, "{entries}");
    for dies_at in 1..=entries {
        let journal = MemoryJournal::default();
        let process = MortalJournal::new(journal.clone()).dying_at(dies_at);
        let mortal = solver(process.clone());
        let run = mortal.agent().start(mortal.request("Twice two?").session(SESSION));
        tokio::select! {
            biased;
            () = process.died() => {}
            end = run => panic!("it lived to the end: {end:?}"),
        }
        tokio::time::sleep(std::time::Duration::from_millis(1)).await; // lets its aborted tasks end
        let again = solver(journal);
        let request = match again.agent().unfinished(SESSION).await.expect("reads") {
            Some(_) => RunRequest::recover(SESSION, []),
            None => again.request("Twice two?").session(SESSION), // the process died before the run was journalled
        };
        let end = again.agent().start(request).await.expect("runs");
        let end = end.finished().expect("finishes");
        assert_eq!(course(&again, &end), solution, "died at {dies_at}");
    }
}
