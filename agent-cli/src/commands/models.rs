//! `agent models`.

use agent::{
    Result,
    llm::{
        Catalogue,
        models::{ModelEntry, Price},
    },
};
use serde_json::json;

use crate::{
    cli::{Global, Models},
    output::{End, count, print, print_json, table},
};

/// Lists what is known of models.
pub(crate) fn models(wanted: &Models, global: &Global) -> Result<End> {
    let catalogue = Catalogue::builtin();
    let fits = |name: &str, entry: &ModelEntry| {
        wanted.part.as_deref().is_none_or(|part| name.contains(part))
            && wanted.provider.as_deref().is_none_or(|provider| entry.provider == provider)
    };
    let mut found: Vec<_> = catalogue.iter().filter(|(name, entry)| fits(name, entry)).collect();
    found.sort_by(|one, two| (&one.1.provider, one.0).cmp(&(&two.1.provider, two.0)));
    if found.is_empty() {
        eprintln!("agent: the catalogue has no such model; it may be there all the same, and then has no price here");
        return Ok(End::Failed);
    }
    if global.json {
        for (name, entry) in found {
            print_json(&json!({"name": name, "model": entry}))?;
        }
        return Ok(End::Finished);
    }
    let mut rows = vec![
        ["provider:model", "window", "output", "in $", "cached $", "out $", "abilities"].map(str::to_owned).to_vec(),
    ];
    rows.extend(found.into_iter().map(|(name, entry)| row(name, entry)));
    print(&table(&rows))?;
    Ok(End::Finished)
}

fn row(name: &str, entry: &ModelEntry) -> Vec<String> {
    let tokens = |tokens: Option<u64>| tokens.map_or_else(|| "?".into(), count);
    let dollars = |price: Option<Price>| price.map_or_else(|| "?".into(), |p| (p.micros() as f64 / 1e6).to_string());
    let price = entry.price.as_ref();
    vec![
        format!("{}:{name}", entry.provider),
        tokens(entry.max_context),
        tokens(entry.max_output),
        dollars(price.map(|price| price.input)),
        dollars(price.and_then(|price| price.cached)),
        dollars(price.map(|price| price.output)),
        abilities(entry),
    ]
}

fn abilities(entry: &ModelEntry) -> String {
    let mut words = Vec::new();
    for (has, word) in [(entry.tools, "tools"), (entry.json_schema, "json-schema"), (entry.reasoning, "reasoning")] {
        if has == Some(true) {
            words.push(word.to_owned());
        }
    }
    let modality = |modality| serde_json::to_value(modality).ok().and_then(|word| Some(word.as_str()?.to_owned()));
    words.extend(entry.input.iter().filter_map(modality).filter(|word| word != "text"));
    words.extend(entry.dimensions.map(|dimensions| format!("vectors of {dimensions}")));
    words.join(" ")
}
