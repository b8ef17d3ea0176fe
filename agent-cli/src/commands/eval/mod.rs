//! `agent eval`: an agent is asked the cases of a file, and what comes of it is held against them.

mod cases;
mod check;
mod report;

use std::{fs, sync::Arc, time::Instant};

use agent::{
    AgentBuilder, Error, Model, Result, RunEnd, RunRequest,
    middleware::{Judge, review::OnRejected},
};
use futures::{StreamExt, stream};

use self::{
    cases::Case,
    report::{Baseline, Outcome, Tried},
};
use crate::{
    cli::{Eval, Global},
    load::{self, Assembled, assemble},
    output::{End, cannot, plain},
};

/// Asks all cases. It ends with 1 if a try failed; compared with an earlier evaluation, if a case passes less often than it did.
pub(crate) async fn eval(wanted: &Eval, global: &Global) -> Result<End> {
    let cases = cases::read(&wanted.cases)?;
    let before = wanted.baseline.as_deref().map(Baseline::read).transpose()?;
    let global = &Global { file: Some(wanted.agent_file.clone()), ..global.clone() };
    let assembled = assemble(global)?;
    let agent = assembled.build()?;
    let Assembled { builder, .. } = assembled;
    let judge = match cases.iter().any(|case| case.judge.is_some()) {
        true => Some(judge(wanted)?),
        false => None,
    };
    let outcomes = outcomes(&cases, &builder, judge.as_ref(), wanted).await?;
    match global.json {
        true => report::for_programs(&outcomes)?,
        false => report::for_people(&outcomes)?,
    }
    if let Some(file) = &wanted.junit {
        fs::write(file, report::junit(&outcomes, agent.name())).map_err(|e| cannot(file.display(), e))?;
    }
    if let Some(file) = &wanted.save {
        Baseline::of(&outcomes).write(file)?;
    }
    let is_well = match before {
        None => outcomes.iter().all(Outcome::is_passed),
        Some(before) => {
            let worse = before.worse(&outcomes);
            if !worse.is_empty() {
                eprintln!("{}", plain(&format!("agent: passes less often than before: {}", worse.join(", "))));
            }
            worse.is_empty()
        }
    };
    Ok(if is_well { End::Finished } else { End::Failed })
}

fn judge(wanted: &Eval) -> Result<Arc<dyn Model>> {
    let name = wanted.judge.as_deref();
    let name = name.ok_or_else(|| Error::config("a case says `judge`: name the model that judges with --judge"))?;
    load::model(Some(name))
}

/// Tries each case so often, so many tries at a time. The outcomes have the order of the cases.
async fn outcomes(
    cases: &[Case],
    builder: &AgentBuilder,
    judge: Option<&Arc<dyn Model>>,
    wanted: &Eval,
) -> Result<Vec<Outcome>> {
    let tries = cases.iter().flat_map(|case| std::iter::repeat_n(case, wanted.repeat as usize));
    let tried = tries.map(|case| attempt(case, builder, judge));
    let tried: Vec<_> = stream::iter(tried).buffered(wanted.at_once as usize).collect().await;
    let mut tried = tried.into_iter();
    let of_case = |case: &Case| {
        let tries = tried.by_ref().take(wanted.repeat as usize).collect::<Result<_>>()?;
        Ok(Outcome { name: case.name.clone(), tries })
    };
    cases.iter().map(of_case).collect()
}

/// One try: a run of its own, of which nothing is kept.
async fn attempt(case: &Case, builder: &AgentBuilder, judge: Option<&Arc<dyn Model>>) -> Result<Tried> {
    let mut builder = builder.clone();
    if let Some(budget) = case.budget()? {
        builder = builder.budget(budget);
    }
    if let (Some(criteria), Some(model)) = (&case.judge, judge) {
        let judge = Judge::new(model.clone()).criteria(criteria).max_rounds(0).on_rejected(OnRejected::Error);
        builder = builder.middleware(judge);
    }
    let inputs = case.inputs.iter();
    let request =
        inputs.fold(RunRequest::user(&case.input), |request, (name, value)| request.input(name, value.clone()));
    let begun = Instant::now();
    let end = builder.build()?.start(request).await;
    let usage = match &end {
        Ok(RunEnd::Finished(finished)) => finished.tree_usage,
        _ => agent::Usage::default(),
    };
    let ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
    Ok(Tried { faults: check::faults(case, &end), usage, ms })
}
