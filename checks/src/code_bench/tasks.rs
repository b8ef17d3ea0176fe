//! Ten questions about the shop, with the calls that answer them: individually, as a sensible model
//! makes them, and as a program.

use serde_json::{Value, json};

use super::world::{customer, euros, forecast, item, items, log, order, page, shipment};

/// Question with two methods to answer it.
pub(super) struct Task {
    pub(super) name: &'static str,
    pub(super) asks: &'static str,
    /// Program whose result is the answer.
    pub(super) program: &'static str,
    /// Calls of each response of a model that sees their results: in parallel where they can be
    /// known in advance.
    pub(super) turns: Vec<Vec<(&'static str, Value)>>,
    pub(super) answer: String,
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn each<T>(
    tool: &'static str,
    over: impl IntoIterator<Item = T>,
    args: impl Fn(T) -> Value,
) -> Vec<(&'static str, Value)> {
    over.into_iter().map(|of| (tool, args(of))).collect()
}

pub(super) fn all() -> Vec<Task> {
    let all_items = || vec![vec![("list_items", json!({}))], each("item", items(), |name| json!({"name": name}))];
    let records = || items().map(item);
    let cents = |record: &Value| record["cents"].as_u64().unwrap_or_default();
    let orders = || each("order", 0..20, |n| json!({"id": format!("order-{n}")}));
    let customers = || each("customer", 0..12, |n| json!({"id": format!("customer-{n}")}));
    let list_orders = || vec![("list_orders", json!({}))];

    let dearest = |supplier: &str| {
        let of_supplier = records().filter(|record| record["supplier"] == supplier);
        of_supplier.max_by_key(cents).map(|record| text(&record["name"])).unwrap_or_default()
    };
    let unpaid: Vec<_> = (0..20).map(order).filter(|order| order["paid"] == false).collect();
    let debtors: std::collections::BTreeSet<_> = unpaid.iter().map(|order| text(&order["customer"])).collect();
    let number = |id: &str| id.split('-').next_back().and_then(|n| n.parse::<u64>().ok()).unwrap_or_default();
    let newest = text(&customer(7)["newest_order"]);
    let parcel = text(&order(number(&newest))["shipment"]);
    let shipped = (0..20).map(|n| shipment(number(&text(&order(n)["shipment"]))));
    let few: Vec<_> = (0..12).map(customer).filter(|customer| customer["points"].as_u64() < Some(60)).collect();
    let owed = (0..20).map(order).map(|o| euros(o["cents"].as_u64().unwrap_or_default(), &text(&o["currency"])));
    let dry = (1..=14).filter(|day| forecast(*day)["rain_mm"].as_u64() < Some(2)).map(|day| day.to_string());
    let errors = (1..=5).map(|day| log("web", day).matches(" ERROR ").count().to_string());
    let stars = (0..6).map(page).flat_map(|page| page["hits"].as_array().cloned().unwrap_or_default());

    vec![
        Task {
            name: "one record",
            asks: "What does a kettle cost?",
            program: "(await item('kettle'))['cents']",
            turns: vec![each("item", ["kettle"], |name| json!({"name": name}))],
            answer: cents(&item("kettle")).to_string(),
        },
        Task {
            name: "a sum over all",
            asks: "What is the whole stock worth?",
            program: "import asyncio\n\
                      records = await asyncio.gather(*[item(name) for name in await list_items()])\n\
                      sum(r['cents'] * r['stock'] for r in records)",
            turns: all_items(),
            answer: records().map(|r| cents(&r) * r["stock"].as_u64().unwrap_or_default()).sum::<u64>().to_string(),
        },
        Task {
            name: "the most of each kind",
            asks: "Which is the dearest item of each supplier?",
            program: "import asyncio\n\
                      best = {}\n\
                      for r in await asyncio.gather(*[item(name) for name in await list_items()]):\n    \
                          if r['supplier'] not in best or r['cents'] > best[r['supplier']]['cents']:\n        \
                              best[r['supplier']] = r\n\
                      ', '.join(best[s]['name'] for s in sorted(best))",
            turns: all_items(),
            answer: ["Acme", "Brook", "Cole"].map(dearest).join(", "),
        },
        Task {
            name: "a chain",
            asks: "Where is the newest parcel of customer-7?",
            program: "c = await customer('customer-7')\n\
                      o = await order(c['newest_order'])\n\
                      (await shipment(o['shipment']))['state']",
            turns: vec![
                vec![("customer", json!({"id": "customer-7"}))],
                vec![("order", json!({"id": newest}))],
                vec![("shipment", json!({"id": parcel}))],
            ],
            answer: text(&shipment(number(&parcel))["state"]),
        },
        Task {
            name: "page by page",
            asks: "How many reviews of the series have one star?",
            program: "count, cursor = 0, 0\n\
                      while cursor is not None:\n    \
                          found = await search('series', cursor)\n    \
                          count += len([hit for hit in found['hits'] if hit['stars'] == 1])\n    \
                          cursor = found['next']\n\
                      count",
            turns: (0..6).map(|cursor| vec![("search", json!({"query": "series", "cursor": cursor}))]).collect(),
            answer: stars.filter(|hit| hit["stars"] == 1).count().to_string(),
        },
        Task {
            name: "a join",
            asks: "To which addresses do we write about orders that are not paid?",
            program: "import asyncio\n\
                      orders = await asyncio.gather(*[order(o['id']) for o in await list_orders()])\n\
                      ids = sorted({o['customer'] for o in orders if not o['paid']})\n\
                      people = await asyncio.gather(*[customer(who) for who in ids])\n\
                      ' '.join(p['email'] for p in people)",
            turns: vec![list_orders(), orders(), each("customer", &debtors, |id| json!({"id": id}))],
            answer: debtors.iter().map(|id| text(&customer(number(id))["email"])).collect::<Vec<_>>().join(" "),
        },
        Task {
            name: "long texts",
            asks: "How many errors did the server web log on each of the days 1 to 5?",
            program: "import asyncio\n\
                      logs = await asyncio.gather(*[read_log('web', day) for day in range(1, 6)])\n\
                      ' '.join(str(log.count(' ERROR ')) for log in logs)",
            turns: vec![each("read_log", 1..=5, |day| json!({"server": "web", "day": day}))],
            answer: errors.collect::<Vec<_>>().join(" "),
        },
        Task {
            name: "a filter",
            asks: "On which of the next 14 days will it be dry in Ely, with less than 2 mm?",
            program: "import asyncio\n\
                      days = await asyncio.gather(*[forecast('Ely', day) for day in range(1, 15)])\n\
                      ' '.join(str(d['days']) for d in days if d['rain_mm'] < 2)",
            turns: vec![each("forecast", 1..=14, |day| json!({"city": "Ely", "days": day}))],
            answer: dry.collect::<Vec<_>>().join(" "),
        },
        Task {
            name: "look, then write",
            asks: "Tell the customers 0 to 11 who have less than 60 points how many they have.",
            program: "import asyncio\n\
                      people = await asyncio.gather(*[customer(f'customer-{n}') for n in range(12)])\n\
                      few = [p for p in people if p['points'] < 60]\n\
                      await asyncio.gather(*[send(p['id'], f\"You have {p['points']} points.\") for p in few])\n\
                      ' '.join(p['name'] for p in few)",
            turns: vec![
                customers(),
                each("send", &few, |to| json!({"to": to["id"], "text": format!("You have {} points.", to["points"])})),
            ],
            answer: few.iter().map(|customer| text(&customer["name"])).collect::<Vec<_>>().join(" "),
        },
        Task {
            name: "three steps for each",
            asks: "How many parcels are held, and what are all open orders worth in cents of the euro?",
            program: "import asyncio\n\
                      async def worth(head):\n    \
                          o = await order(head['id'])\n    \
                          return await asyncio.gather(shipment(o['shipment']), convert(o['cents'], o['currency']))\n\
                      all = await asyncio.gather(*[worth(head) for head in await list_orders()])\n\
                      f\"{len([s for s, _ in all if s['state'] == 'held'])} {sum(c for _, c in all)}\"",
            turns: vec![
                list_orders(),
                orders(),
                (0..20)
                    .map(order)
                    .flat_map(|o| {
                        let convert = json!({"cents": o["cents"], "currency": o["currency"]});
                        [("shipment", json!({"id": o["shipment"]})), ("convert", convert)]
                    })
                    .collect(),
            ],
            answer: format!("{} {}", shipped.filter(|s| s["state"] == "held").count(), owed.sum::<u64>()),
        },
    ]
}
