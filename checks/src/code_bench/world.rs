//! Small shop whose records contain more than any question needs, as real records do.

use std::sync::{Arc, Mutex};

use agent::{
    AgentBuilder,
    core::{ToolOptions, tool::Effect},
    tools::{ToolExt, from_schema},
};
use serde_json::{Value, json};

/// Log of tool calls with their arguments.
pub(super) type Calls = Arc<Mutex<Vec<String>>>;

type Answer = fn(&Value) -> Value;

/// Tool: name, description, parameters with their types, and result.
type Row = (&'static str, &'static str, &'static [(&'static str, &'static str)], Answer);

const TOOLS: [Row; 11] = [
    ("list_items", "The names of all items of the shop.", &[], |_| json!(items().collect::<Vec<_>>())),
    ("item", "The record of an item.", &[("name", "string")], |args| item(text(args, "name"))),
    ("list_orders", "All orders that are open: their ids and customers.", &[], |_| {
        json!((0..20).map(head).collect::<Vec<_>>())
    }),
    ("order", "The record of an order.", &[("id", "string")], |args| order(number(text(args, "id")))),
    ("shipment", "The record of a shipment.", &[("id", "string")], |args| shipment(number(text(args, "id")))),
    ("customer", "The record of a customer.", &[("id", "string")], |args| customer(number(text(args, "id")))),
    (
        "search",
        "Searches the reviews; `next` is the cursor of the next page, if there is one.",
        &[("query", "string"), ("cursor", "integer")],
        |args| page(args["cursor"].as_u64().unwrap_or(0)),
    ),
    ("read_log", "The log of a server on a day.", &[("server", "string"), ("day", "integer")], |args| {
        log(text(args, "server"), args["day"].as_u64().unwrap_or(0)).into()
    }),
    ("forecast", "The weather in a city, so many days from now.", &[("city", "string"), ("days", "integer")], |args| {
        forecast(args["days"].as_u64().unwrap_or(0))
    }),
    (
        "convert",
        "What an amount of a currency is in cents of the euro.",
        &[("cents", "integer"), ("currency", "string")],
        |args| euros(args["cents"].as_u64().unwrap_or(0), text(args, "currency")).into(),
    ),
    ("send", "Sends a message to a customer.", &[("to", "string"), ("text", "string")], |_| "sent".into()),
];

/// Adds the tools of the shop to an agent; the cursor of `search` is optional.
pub(super) fn with_tools(agent: AgentBuilder, calls: &Calls) -> AgentBuilder {
    TOOLS.iter().fold(agent, |agent, (name, about, params, answer)| {
        let properties: serde_json::Map<_, _> =
            params.iter().map(|(name, kind)| ((*name).to_owned(), json!({"type": kind}))).collect();
        let required: Vec<_> = params.iter().map(|(name, _)| *name).filter(|name| *name != "cursor").collect();
        let schema = json!({"type": "object", "properties": properties, "required": required});
        let calls = calls.clone();
        let tool = from_schema(*name, *about, schema, move |args: Value, _| {
            calls.lock().expect("nobody panicked").push(format!("{name} {args}"));
            let answer = answer(&args);
            async move { answer }
        });
        agent.tool(tool.with_options(|options: ToolOptions| options.effect(Effect::Idempotent)))
    })
}

fn text<'a>(args: &'a Value, name: &str) -> &'a str {
    args[name].as_str().unwrap_or_default()
}

/// Returns the number in an id.
fn number(id: &str) -> u64 {
    id.split('-').next_back().and_then(|number| number.parse().ok()).unwrap_or_default()
}

pub(super) fn items() -> impl Iterator<Item = &'static str> {
    "apron basket bowl broom brush bucket candle clock cup fork glass jar kettle knife ladle lamp mat mirror mug pan \
     plate pot rack rug scale sieve spoon stool towel vase"
        .split_whitespace()
}

pub(super) fn item(name: &str) -> Value {
    let n = items().position(|item| item == name).unwrap_or_default() as u64;
    json!({
        "name": name,
        "cents": (n * n * 37 + 211) % 900 + 99,
        "stock": n * 7 % 23,
        "supplier": of(&["Acme", "Brook", "Cole"], n),
        "ean": 4_006_381_000_000 + n * 7919,
        "size": {"width_mm": 100 + n * 3, "height_mm": 80 + n * 5, "weight_g": 150 + n * 11},
        "description": format!("A {name} for every day, made by hand in a small workshop, easy to clean and with two years of \
                                warranty. It goes well with the other things of the series."),
    })
}

fn of<'a>(all: &[&'a str], n: u64) -> &'a str {
    all[n as usize % all.len()]
}

fn head(n: u64) -> Value {
    json!({"id": format!("order-{n}"), "customer": format!("customer-{}", n % 12)})
}

pub(super) fn order(n: u64) -> Value {
    json!({
        "id": format!("order-{n}"),
        "customer": format!("customer-{}", n % 12),
        "paid": n % 5 != 2,
        "cents": n * 731 % 9000 + 500,
        "currency": of(&["EUR", "USD", "SEK"], n),
        "shipment": format!("shipment-{}", n * 3 + 1),
        "lines": items().skip(n as usize % 20).take(4).map(|item| json!({"item": item, "count": n % 3 + 1})).collect::<Vec<_>>(),
    })
}

pub(super) fn shipment(n: u64) -> Value {
    let events = (0..6).map(|hour| json!({"at": format!("2026-03-{:02}T{:02}:15:00Z", n % 27 + 1, hour * 3), "what": "scanned", "where": format!("hub {}", (n + hour) % 9)}));
    json!({
        "id": format!("shipment-{n}"),
        "carrier": of(&["Post", "Swift"], n),
        "state": of(&["on its way", "delivered", "held"], n),
        "events": events.collect::<Vec<_>>(),
    })
}

pub(super) fn customer(n: u64) -> Value {
    json!({
        "id": format!("customer-{n}"),
        "name": of(&["Ada", "Bo", "Cy", "Dee", "Eli", "Flo", "Gus", "Hal", "Ida", "Jo", "Kim", "Lea"], n),
        "email": format!("person{n}@shop.example"),
        "points": n * 83 % 400,
        "newest_order": format!("order-{}", n + 4),
        "address": {"street": format!("{n} High Street"), "city": "Ely", "code": format!("CB{n}")},
        "notes": "Prefers to be written to. Has asked twice for the catalogue, and was sent it in spring.",
    })
}

/// Returns a page of the results of `search`.
pub(super) fn page(cursor: u64) -> Value {
    let hits = (cursor * 10..cursor * 10 + 10).map(|n| {
        json!({
            "title": format!("Review {n}"),
            "stars": n * 13 % 5 + 1,
            "text": format!("I have had it for {n} weeks now, and it does what it is to do. The parcel came in time."),
        })
    });
    json!({"hits": hits.collect::<Vec<_>>(), "next": if cursor < 5 { json!(cursor + 1) } else { Value::Null }})
}

pub(super) fn log(server: &str, day: u64) -> String {
    let line = |n: u64| {
        let level = if (n * 31 + day * 7).is_multiple_of(97) { "ERROR" } else { "INFO" };
        format!(
            "2026-03-{day:02}T{:02}:{:02}:00Z {level} {server} request {} took {} ms\n",
            n / 60,
            n % 60,
            n * 17,
            n % 40
        )
    };
    (0..240).map(line).collect()
}

pub(super) fn forecast(days: u64) -> Value {
    let rain = (days * 5 + 3) % 7;
    json!({"days": days, "rain_mm": rain, "wind_kmh": days * 9 % 40, "low": 4 + days % 3, "high": 11 + days % 6, "text": "Clouds and some sun."})
}

pub(super) fn euros(cents: u64, currency: &str) -> u64 {
    match currency {
        "USD" => cents * 92 / 100,
        "SEK" => cents * 9 / 100,
        _ => cents,
    }
}
