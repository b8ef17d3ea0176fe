//! Sessions that an engine persists.

use agent_core::{Message, RunRequest, testing::Processes};

use super::{
    EngineWorld,
    deeds::Script,
    drive::{AGENT, Witness, drive, in_worlds, job, nobody, one_death},
};
use crate::Agent;

/// Checks that the next run of a session sees the messages of the earlier runs exactly once,
/// whenever its process dies.
///
/// # Panics
/// If the claim does not hold.
pub async fn what_was_said_in_the_session_is_the_past_of_its_next_run<W: EngineWorld>() {
    let two_runs = async |world: W, deaths: Vec<_>| {
        let (witness, processes) = (Witness::default(), Processes::default());
        let agent = || witness.sees(Agent::builder(AGENT, Script::new([])));
        let mut before = 0;
        for (run, says, deaths) in [("r1", "first", &[][..]), ("r2", "second", &deaths)] {
            before = processes.steps().len();
            let job = job(RunRequest::user(says).run_id(run));
            drive(&world, &processes, agent, &job, deaths, nobody).await;
        }
        let said: Vec<_> = witness.finished().history.iter().map(Message::text).collect();
        assert_eq!(said, ["first", "done", "second", "done"], "{deaths:?}");
        processes.steps().len() - before
    };
    let Some(world) = W::new().await else { return };
    let steps = two_runs(world, vec![]).await;
    in_worlds(one_death(steps), async |world, deaths| _ = two_runs(world, deaths).await).await;
}
