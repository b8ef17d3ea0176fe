//! A model without a provider, which knows the sample database.

use agent::{
    prelude::*,
    testing::{ScriptedModel, Turn},
};
use serde_json::json;

use crate::database::Database;

const BY_MONTH: &str = "select substr(placed, 1, 7) as month, sum(pieces * price_cents) / 100.0 as francs \
                        from orders join products on products.id = product group by month order by month";
const BY_CITY: &str = "select city, sum(pieces * price_cents) / 100.0 as francs from orders \
                       join products on products.id = product join customers on customers.id = customer \
                       group by city order by francs desc";

/// Writes the script: a query, two charts, and an answer with figures of the database.
pub(crate) async fn about_the_sample(database: &Database) -> Result<ScriptedModel> {
    let (months, cities) = (database.query(BY_MONTH).await?, database.query(BY_CITY).await?);
    let (Some(first), Some(last), Some(best)) = (months.rows.first(), months.rows.last(), cities.rows.first()) else {
        return Err(Error::config("the sample database has no orders"));
    };
    let answer = format!(
        "Revenue rose from {} francs in {} to {} in {}. {} buys most: {} francs. See the two charts.",
        first[1],
        text(&first[0]),
        last[1],
        text(&last[0]),
        text(&best[0]),
        best[1]
    );
    let chart = |title: &str, kind: &str, sql: &str| json!({"title": title, "kind": kind, "sql": sql});
    Ok(ScriptedModel::new([
        Turn::call("c1", "query", json!({"sql": BY_MONTH})),
        Turn::calls([
            ("c2", "draw_chart", chart("Revenue by month in francs", "line", BY_MONTH)),
            ("c3", "draw_chart", chart("Revenue by city in francs", "bar", BY_CITY)),
        ]),
        Turn::text(answer),
    ]))
}

fn text(value: &serde_json::Value) -> &str {
    value.as_str().unwrap_or_default()
}
