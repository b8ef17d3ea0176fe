//! `agent queue`.

use std::time::Duration;

use agent::{
    Error, PostgresQueue, Result, RunRequest,
    dispatch::{Dispatch, Job, QueueAdmin, QueuedJob, Schedule, Wanted},
};
use serde_json::json;

use crate::{
    cli::{Global, Queue, QueueAct},
    engine::queue_at,
    output::{End, line, moment, print, print_json, table},
    store,
};

/// Looks at the queue, and after it.
pub(crate) async fn queue(wanted: Queue, global: &Global) -> Result<End> {
    if wanted.act.is_some() {
        refuse_lists(&wanted)?;
    }
    let queue = queue_at(&store::address(global, None)?)?.listen(false).connections(1).connect().await?;
    let Some(act) = &wanted.act else { return list(&queue, &wanted, global).await };
    match act {
        QueueAct::Send { agent, session, tenant, prompt } => {
            let request = session.iter().fold(RunRequest::user(prompt), |request, name| request.session(name.as_str()));
            let job = Job::new(agent.as_str(), &request)?.tenant(tenant);
            let at = job.at.clone();
            queue.dispatch(job).await?;
            match global.json {
                true => print_json(&json!(at))?,
                false => print(&format!("{}\n", at.run))?,
            }
        }
        QueueAct::Show { run } => print_json(&json!(find(&queue, run).await?))?,
        QueueAct::Retry { run } => {
            done(queue.retry(&find(&queue, run).await?.job.at).await?, "it is not given up, and not at rest")?;
        }
        QueueAct::Drop { run } => {
            done(queue.remove(&find(&queue, run).await?.job.at).await?, "a worker has it: cancel its run first")?;
        }
        QueueAct::Purge { older_than } => {
            let gone = queue.purge(Duration::from_secs(older_than.saturating_mul(3_600))).await?;
            match global.json {
                true => print_json(&json!({"purged": gone}))?,
                false => print(&format!("{gone} forgotten\n"))?,
            }
        }
        QueueAct::Schedules => schedules(&queue, global).await?,
        QueueAct::Schedule { name, cron, agent, tenant, prompt } => {
            let job = Job::new(agent.as_str(), &RunRequest::user(prompt))?.tenant(tenant);
            queue.set_schedule(&Schedule::new(name, cron, job)).await?;
        }
        QueueAct::Unschedule { name } => done(queue.remove_schedule(name).await?, "there is no such schedule")?,
    }
    Ok(End::Finished)
}

/// Refuses what chooses the jobs of a list, and would change nothing about another command.
fn refuse_lists(wanted: &Queue) -> Result<()> {
    let of_lists = [
        ("--status", wanted.standing.is_some()),
        ("--tenant", wanted.tenant.is_some()),
        ("--limit", wanted.limit.is_some()),
    ];
    match of_lists.iter().find(|(_, is_given)| *is_given) {
        Some((option, _)) => {
            Err(Error::config(format!("{option} selects the listed jobs: leave it out before a command")))
        }
        None => Ok(()),
    }
}

fn done(done: bool, otherwise: &'static str) -> Result<()> {
    if done { Ok(()) } else { Err(Error::config(otherwise)) }
}

async fn find(queue: &PostgresQueue, run: &str) -> Result<QueuedJob> {
    let found = queue.jobs(&Wanted::default().run(run).most(1)).await?.pop();
    found.ok_or_else(|| Error::config(format!("there is no run '{run}': `agent queue` lists those there are")))
}

async fn list(queue: &PostgresQueue, wanted: &Queue, global: &Global) -> Result<End> {
    let mut asked = wanted.limit.into_iter().fold(Wanted::default(), Wanted::most);
    asked.tenant.clone_from(&wanted.tenant);
    asked.standing = wanted.standing;
    let jobs = queue.jobs(&asked).await?;
    if global.json {
        jobs.iter().try_for_each(|job| print_json(&json!(job)))?;
        return Ok(End::Finished);
    }
    let mut rows = vec![
        ["run", "agent", "session", "tenant", "stands", "failures", "changed (UTC)", "error"]
            .map(str::to_owned)
            .to_vec(),
    ];
    for job in jobs {
        let (at, tenant) = (&job.job.at, &job.job.tenant);
        let stands = job.standing.kind().as_str().to_owned();
        let (failures, changed) = (job.failures.to_string(), moment(job.changed));
        let error = line(job.error.as_deref().unwrap_or_default(), 80);
        rows.push(vec![
            line(&at.run, 60),
            line(&at.agent, 30),
            line(&at.session, 40),
            line(tenant, 30),
            stands,
            failures,
            changed,
            error,
        ]);
    }
    print(&table(&rows))?;
    Ok(End::Finished)
}

async fn schedules(queue: &PostgresQueue, global: &Global) -> Result<()> {
    let schedules = queue.schedules().await?;
    if global.json {
        return schedules.iter().try_for_each(|(schedule, due)| print_json(&json!({"schedule": schedule, "due": due})));
    }
    let mut rows = vec![["schedule", "times", "agent", "due (UTC)"].map(str::to_owned).to_vec()];
    for (schedule, due) in schedules {
        rows.push(vec![line(&schedule.name, 60), schedule.cron, line(&schedule.job.at.agent, 30), moment(due)]);
    }
    print(&table(&rows))
}
