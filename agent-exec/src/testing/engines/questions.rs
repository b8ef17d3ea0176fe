//! Runs that wait for answers.

use std::{marker::PhantomData, pin::pin, time::Duration};

use agent_core::{
    Ask, Middleware, Question, Result, ToolOutput, ToolRequest, async_trait, middleware::ToolNext, testing::Processes,
};
use futures::future::{Either, select};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::{
    EngineWorld,
    deeds::{Call, Does, Script, call},
    drive::{AGENT, Death, Witness, drive, drive_unanswered, first_job, in_worlds, nobody, one_death},
    is_once, nap,
};
use crate::{Agent, AgentBuilder};

/// Builds an agent that makes these calls concurrently and then ends. The tool `act` asks the
/// question `ask`, and returns the answer.
fn asks(calls: &[Call], ask: impl Fn(&ToolRequest) -> Ask + Send + Sync + 'static) -> AgentBuilder {
    let act = Does::new("act", move |req| {
        let ask = ask(&req);
        async move { Ok(ToolOutput::text(text(&req.ask_with(ask)?.value))) }
    });
    Agent::builder(AGENT, Script::new([calls.to_vec()])).tool(act)
}

fn text(answer: &Value) -> String {
    answer.as_str().map_or_else(|| answer.to_string(), str::to_owned)
}

/// Checks that an answer that does not match the question's schema is refused, and that the run
/// waits for another one.
///
/// # Panics
/// If the claim does not hold.
pub async fn an_answer_that_does_not_fit_is_asked_for_again<W: EngineWorld>() {
    let Some(world) = W::new().await else { return };
    let witness = Witness::default();
    let sure = |_: &_| Ask::new("sure", json!(null)).schema(json!({"type": "boolean"}));
    let agent = || witness.sees(asks(&[call("c1", "act")], sure));
    let answer = |_: &_, times| Some(if times == 0 { json!("perhaps") } else { json!(true) });
    let driven = drive(&world, &Processes::default(), agent, &first_job(), &[], answer).await;
    assert_eq!(driven.asked.into_iter().collect::<Vec<_>>(), [("c1/sure".to_owned(), 2)]);
    assert_eq!(witness.results(), ["true"]);
}

/// Checks that an expired question takes its default.
///
/// # Panics
/// If the claim does not hold.
pub async fn a_question_that_nobody_answers_in_time_has_its_default<W: EngineWorld>() {
    let Some(world) = W::new().await else { return };
    let witness = Witness::default();
    let agent = || witness.sees(asks(&[call("c1", "act")], |_| in_time::<W>()));
    let began = Instant::now();
    drive(&world, &Processes::default(), agent, &first_job(), &[], nobody).await;
    let took = began.elapsed();
    assert_eq!(witness.results(), ["nobody was there"]);
    assert!(open::<W>() <= took && is_once::<W>(took, open::<W>()), "{took:?}");
}

/// Returns a question with an expiry and a default.
fn in_time<W: EngineWorld>() -> Ask {
    Ask::new("sure", json!(null)).within(open::<W>()).or("nobody was there")
}

/// Returns the time until a question expires; it must be seen and answered in this time.
fn open<W: EngineWorld>() -> Duration {
    nap::<W>() * 2
}

/// Returns the open questions, ordered by call.
async fn asked<W: EngineWorld>(world: &W, count: usize) -> Vec<Question> {
    let mut asked = world.asked(&first_job().at, count).await;
    asked.sort_by(|one, other| one.id.cmp(&other.id));
    asked
}

/// Order in which the questions of a run are answered.
#[derive(Clone, Copy, Debug)]
enum Order {
    Together,
    SecondFirst,
    /// The first question alone, after the other one has expired.
    FirstAlone,
}

/// Checks that concurrent questions can be answered together, or one after the other in any order.
/// A question with an expiry expires, even if another one has none.
///
/// # Panics
/// If the claim does not hold.
pub async fn questions_that_are_open_at_once_are_answered_together_or_in_any_order<W: EngineWorld>() {
    let two = async |world: W, order: Order, deaths: Vec<Death>| {
        let (witness, processes) = (Witness::default(), Processes::default());
        let ends = matches!(order, Order::FirstAlone);
        let ask = move |req: &ToolRequest| match &*req.call.id {
            "c2" if ends => in_time::<W>(),
            _ => Ask::new("sure", json!(null)),
        };
        let agent = || witness.sees(asks(&[call("c1", "act"), call("c2", "act")], ask));
        let (began, at) = (Instant::now(), first_job().at);
        let answering = async {
            let [first, second]: [_; 2] = asked(&world, 2).await.try_into().expect("two");
            let (first, second) = ((first, json!("one")), (second, json!("two")));
            match order {
                Order::Together => world.answer(&at, vec![first, second]).await,
                Order::SecondFirst => {
                    world.answer(&at, vec![second]).await;
                    world.answer(&at, vec![first]).await;
                }
                Order::FirstAlone => {
                    sleep(open::<W>() + nap::<W>() / 8).await;
                    world.answer(&at, vec![first]).await;
                }
            }
        };
        let job = first_job();
        futures::join!(drive_unanswered(&world, &processes, agent, &job, &deaths), answering);
        let second = if ends { "nobody was there" } else { "two" };
        assert_eq!(witness.results(), ["one", second], "{order:?}, {deaths:?}");
        assert!(is_once::<W>(began.elapsed(), open::<W>()), "{order:?}, {deaths:?}");
        processes.steps().len()
    };
    for order in [Order::SecondFirst, Order::FirstAlone] {
        let Some(world) = W::new().await else { return };
        two(world, order, vec![]).await;
    }
    let Some(world) = W::new().await else { return };
    let steps = two(world, Order::Together, vec![]).await;
    in_worlds(one_death(steps), async |world, deaths| _ = two(world, Order::Together, deaths).await).await;
}

/// Asks before each call of the tool `guarded`, whose result is the answer.
struct Guard<W>(PhantomData<fn() -> W>);

#[async_trait]
impl<W: EngineWorld> Middleware for Guard<W> {
    fn name(&self) -> &str {
        "guard"
    }

    async fn wrap_tool_call(&self, req: ToolRequest, next: ToolNext<'_>) -> Result<ToolOutput> {
        if &*req.call.name != "guarded" {
            return next.run(req).await;
        }
        let answer = req.ask_with(in_time::<W>())?;
        next.run(req).await?;
        Ok(ToolOutput::text(text(&answer.value)))
    }
}

/// Checks that the decision whether an answer came in time is made once: the answer holds, and so
/// does the default of an expired question, even if the run is resumed long afterwards. Nothing
/// waits for it again.
///
/// # Panics
/// If the claim does not hold.
pub async fn an_answer_that_came_in_time_holds_however_late_the_run_goes_on<W: EngineWorld>() {
    let four = async |world: W, deaths: Vec<Death>| {
        let (witness, processes) = (Witness::default(), Processes::default());
        let calls = [call("c1", "act"), call("c2", "act"), call("c3", "guarded"), call("c4", "guarded")];
        let agent = || {
            let guarded = Does::new("guarded", |_| async { Ok(ToolOutput::text("done")) });
            let agent = asks(&calls, |_| in_time::<W>()).tool(guarded);
            witness.sees(agent.middleware(Guard::<W>(PhantomData)))
        };
        let (began, job) = (Instant::now(), first_job());
        let answering = async {
            let of_some = asked(&world, 4).await.into_iter().step_by(2);
            world.answer(&job.at, of_some.map(|question| (question, json!("in time"))).collect()).await;
            began.elapsed()
        };
        let driving = drive_unanswered(&world, &processes, agent, &job, &deaths);
        let (driven, answered) = match select(pin!(driving), pin!(answering)).await {
            Either::Left((driven, _)) => (driven, None),
            Either::Right((after, driving)) => (driving.await, Some(after)),
        };
        if W::REAL_TIME && answered.is_none_or(|after| after > open::<W>()) {
            println!("{deaths:?}: nobody could answer in time on this machine");
            return processes.steps().len();
        }
        let held = ["in time", "nobody was there", "in time", "nobody was there"];
        assert_eq!(witness.results(), held, "{deaths:?}");
        assert_eq!(driven.died, deaths.len());
        assert!(is_once::<W>(began.elapsed(), open::<W>()), "{deaths:?}");
        processes.steps().len()
    };
    let Some(world) = W::new().await else { return };
    let steps = four(world, vec![]).await;
    let deaths = one_death(steps).filter(|deaths| !W::REAL_TIME || deaths[0].1);
    in_worlds(deaths, async |world, deaths| _ = four(world, deaths).await).await;
}
