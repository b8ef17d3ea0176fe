//! SQL statement, prepared or not.

use tokio_postgres::{
    Client, Error, Row, Statement,
    types::{ToSql, Type},
};

/// Parameter value of a statement.
pub(super) type Parameter<'a> = &'a (dyn ToSql + Sync);

/// SQL statement with the types of its parameters.
///
/// A prepared statement has a name in the server's session and is planned once, which makes an
/// append four times as fast. An unprepared one is parsed and planned whenever it is sent, over any
/// session that a pooler picks.
pub(super) struct Query {
    sql: String,
    types: &'static [Type],
    prepared: Option<Statement>,
}

impl Query {
    pub(super) fn new(sql: String, types: &'static [Type]) -> Self {
        Self { sql, types, prepared: None }
    }

    pub(super) async fn prepare(&mut self, client: &Client) -> Result<(), Error> {
        self.prepared = Some(client.prepare_typed(&self.sql, self.types).await?);
        Ok(())
    }

    /// Returns the resulting rows. The statement is sent when the future is first polled.
    pub(super) async fn rows(&self, client: &Client, parameters: &[Parameter<'_>]) -> Result<Vec<Row>, Error> {
        match &self.prepared {
            Some(statement) => client.query(statement, parameters).await,
            None => {
                let typed: Vec<_> = parameters.iter().copied().zip(self.types.iter().cloned()).collect();
                client.query_typed(&self.sql, &typed).await
            }
        }
    }

    /// Returns the number in the first row, if there is one.
    pub(super) async fn number(&self, client: &Client, parameters: &[Parameter<'_>]) -> Result<Option<i64>, Error> {
        Ok(self.rows(client, parameters).await?.first().map(|row| row.get(0)))
    }
}
