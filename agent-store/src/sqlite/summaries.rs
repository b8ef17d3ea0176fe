//! Reading the projection.

use agent_core::{
    Error, ErrorKind, Question, Result,
    journal::{RunFilter, RunQuery, RunSummary, SessionQuery, SessionSummary},
};
use rusqlite::{Connection, Row, params_from_iter, types::ToSql};

use super::{
    error::store_error,
    read::{INFO, Reader, info},
};
use crate::{
    prefix::above,
    project::{Prefix, USAGE, label, usage_of},
};

/// Runs that are not finished and can be resumed: the condition of the index `run_incomplete`.
const INCOMPLETE: &str = "is_root = 1 AND undone = 0 AND superseded = 0 AND ifnull(status, '') <> 'finished'";

/// Runs that may wait for answers.
const MAY_WAIT: &str = "status IS NOT NULL AND status <> 'cancelled'";

/// Conditions of a query, with the values of their parameters, which are numbered.
#[derive(Default)]
struct Conditions {
    all: Vec<String>,
    values: Vec<Box<dyn ToSql>>,
}

impl Conditions {
    /// Adds a condition; each `?` in it takes the next value.
    fn add(&mut self, condition: &str, values: impl IntoIterator<Item = Box<dyn ToSql>>) {
        self.all.push(condition.to_owned());
        self.values.extend(values);
    }

    fn prefix(&mut self, table: &str, prefix: &str) {
        match Prefix::of(prefix) {
            Prefix::All => {}
            Prefix::Space(space) => self.add(&format!("{table}.space = ?"), [boxed(space.to_owned())]),
            Prefix::Other(prefix) => {
                let range = [boxed(prefix.to_owned()), boxed(above(prefix))];
                self.add("session.name >= ? AND session.name < CAST(? AS TEXT)", range);
            }
        }
    }

    fn rows<T>(
        &self,
        connection: &Connection,
        sql: &str,
        order: &str,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<Vec<T>> {
        let conditions = if self.all.is_empty() { "1".to_owned() } else { self.all.join(" AND ") };
        let mut statement = connection.prepare_cached(&format!("{sql} WHERE {conditions} {order}"))?;
        statement.query_map(params_from_iter(&self.values), read)?.collect()
    }
}

fn boxed(value: impl ToSql + 'static) -> Box<dyn ToSql> {
    Box::new(value)
}

fn list(names: &[String]) -> Box<dyn ToSql> {
    boxed(serde_json::to_string(names).expect("texts serialize to JSON"))
}

fn limit(most: usize) -> Box<dyn ToSql> {
    boxed(i64::try_from(most).unwrap_or(i64::MAX))
}

impl Reader {
    /// Returns the names of at most `most` sessions whose projection has to be rebuilt.
    pub(super) fn unprojected(&self, most: i64) -> Result<Vec<String>> {
        let read = || {
            let sql = "SELECT name FROM session WHERE projected <> head LIMIT ?1";
            let mut statement = self.connection.prepare_cached(sql)?;
            statement.query_map([most], |row| row.get(0))?.collect::<rusqlite::Result<Vec<_>>>()
        };
        read().map_err(|e| store_error(&self.path, &e))
    }

    pub(super) fn recent(&self, query: &SessionQuery) -> Result<Vec<SessionSummary>> {
        let mut conditions = Conditions::default();
        conditions.prefix("session", &query.prefix);
        if let Some(agents) = &query.agents {
            let of_agents = "EXISTS (SELECT 1 FROM agent WHERE agent.session = session.id
                             AND agent.name IN (SELECT value FROM json_each(?)))";
            conditions.add(of_agents, [list(agents)]);
        }
        if let Some(user) = &query.user {
            let of_user = "EXISTS (SELECT 1 FROM run WHERE run.session = session.id AND run.seq IS NOT NULL
                           AND run.is_root = 1 AND run.is_edit = 0 AND run.user = ?)";
            conditions.add(of_user, [boxed(user.clone())]);
        }
        for pair in &query.metadata {
            conditions.add("session.id IN (SELECT session FROM label WHERE hash = ?)", [boxed(label(pair))]);
        }
        if let Some((active, name)) = &query.before {
            conditions.add("(active, name) < (?, ?)", [boxed(active.cast_signed()), boxed(name.clone())]);
        }
        conditions.values.push(limit(query.limit));
        let read = || {
            let snapshot = self.connection.unchecked_transaction()?; // consistent view of all tables
            let sql = format!("SELECT {INFO}, name FROM session");
            conditions.rows(&snapshot, &sql, "ORDER BY active DESC, name DESC LIMIT ?", |row| {
                let mut summary = SessionSummary::new(row.get::<_, String>(8)?, info(&snapshot, row)?);
                (summary.usage, summary.questions) = totals(&snapshot, row.get(0)?)?;
                Ok(summary)
            })
        };
        read().map_err(|e| store_error(&self.path, &e))
    }

    pub(super) fn runs(&self, query: &RunQuery) -> Result<Vec<RunSummary>> {
        let mut conditions = Conditions::default();
        conditions.add("run.is_root = 1 AND run.is_edit = 0 AND run.seq IS NOT NULL", []);
        conditions.prefix("run", &query.prefix);
        if let Some(session) = &query.session {
            conditions.add("run.session = (SELECT id FROM session WHERE name = ?)", [boxed(session.clone())]);
        }
        if let Some(agents) = &query.agents {
            conditions.add("run.agent IN (SELECT value FROM json_each(?))", [list(agents)]);
        }
        if let Some(user) = &query.user {
            conditions.add("run.user = ?", [boxed(user.clone())]);
        }
        let asked = "EXISTS (SELECT 1 FROM question WHERE question.run = run.id)";
        match query.state {
            RunFilter::Incomplete => conditions.add(INCOMPLETE, []),
            RunFilter::Waiting => conditions.add(&format!("{INCOMPLETE} AND {MAY_WAIT} AND {asked}"), []),
            _ => {}
        }
        if let Some((started, session, run)) = &query.before {
            let last = [boxed(started.cast_signed()), boxed(session.clone()), boxed(run.clone())];
            conditions.add("(run.started, session.name, run.name) < (?, ?, ?)", last);
        }
        conditions.values.push(limit(query.limit));
        let read = || {
            let snapshot = self.connection.unchecked_transaction()?; // consistent view of runs and questions
            let usage = USAGE.map(|column| format!("run.{column}")).join(", ");
            let sql = format!(
                "SELECT session.name, run.name, run.agent, run.started, run.user, run.outcome, run.ended, run.error, run.undone,
                     {INCOMPLETE}, {INCOMPLETE} AND {MAY_WAIT}, run.id, iif(status IS NULL, 0, steps), {usage}
                 FROM run JOIN session ON session.id = run.session"
            );
            let order = "ORDER BY run.started DESC, session.name DESC, run.name DESC LIMIT ?";
            conditions.rows(&snapshot, &sql, order, |row| Ok(run(&snapshot, row)?.map_err(damaged)))
        };
        let found = read().map_err(|e| store_error(&self.path, &e))?;
        found.into_iter().collect()
    }
}

/// Returns the usage of all runs of a session, and the number of its open questions.
fn totals(connection: &Connection, session: i64) -> rusqlite::Result<(agent_core::Usage, u64)> {
    let sums = USAGE.map(|column| format!("coalesce(sum({column}), 0)")).join(", ");
    let sql = format!("SELECT {sums} FROM run WHERE session = ?1 AND seq IS NOT NULL");
    let usage = connection.prepare_cached(&sql)?.query_row([session], |row| usage_of(|at| row.get(at)))?;
    let sql = format!(
        "SELECT count(*) FROM question JOIN run ON run.id = question.run
         WHERE question.session = ?1 AND run.seq IS NOT NULL AND is_edit = 0 AND {INCOMPLETE} AND {MAY_WAIT}"
    );
    let questions = connection.prepare_cached(&sql)?.query_row([session], |row| row.get::<_, i64>(0))?;
    Ok((usage, questions.cast_unsigned()))
}

/// Decodes a run.
fn run(connection: &Connection, row: &Row<'_>) -> rusqlite::Result<serde_json::Result<RunSummary>> {
    let (session, id): (String, String) = (row.get(0)?, row.get(1)?);
    let mut run = RunSummary::new(session, id, row.get::<_, String>(2)?, row.get::<_, i64>(3)?.cast_unsigned());
    run.user = row.get(4)?;
    let outcome = row.get::<_, Option<String>>(5)?;
    run.ended = row.get::<_, Option<i64>>(6)?.map(i64::cast_unsigned);
    (run.error, run.undone, run.incomplete) = (row.get(7)?, row.get(8)?, row.get(9)?);
    run.steps = row.get(12)?;
    run.usage = usage_of(|at| row.get(13 + at))?;
    let mut bodies = Vec::new();
    if row.get(10)? {
        let mut asked = connection.prepare_cached("SELECT body FROM question WHERE run = ?1 ORDER BY id")?;
        let asked = asked.query_map([row.get::<_, i64>(11)?], |row| row.get::<_, String>(0))?;
        bodies = asked.collect::<rusqlite::Result<Vec<_>>>()?;
    }
    let decode = || {
        run.status = outcome.map(|text| serde_json::from_str(&text)).transpose()?;
        run.questions = bodies.iter().map(|body| serde_json::from_str::<Question>(body)).collect::<Result<_, _>>()?;
        Ok(run)
    };
    Ok(decode())
}

fn damaged(e: serde_json::Error) -> Error {
    Error::new(ErrorKind::Store, "a summary cannot be decoded: rebuild the projection").with_source(e)
}
