//! Time to build an agent of 30 tools, 8 middlewares and 5 sub-agents from its files, once the schema of files
//! is made: reading, references, checks, parts, schemas of arguments, stacks.
//!
//! It ends with an error if the median is over 20 ms.
//!
//! `cargo bench -p agent --bench files`

use std::{
    fmt::Write,
    fs,
    process::ExitCode,
    time::{Duration, Instant},
};

use agent::{
    ToolRequest,
    config::{Loader, Registry},
    testing::ScriptedModel,
    tools::from_schema,
};
use serde_json::{Value, json};

const TOOLS: usize = 30;
const BAR: Duration = Duration::from_millis(20);
const LOADS: usize = 200;

const MIDDLEWARE: &str = "middleware:
  - logging
  - limits: {model_calls: 50, wall_time: 600}
  - pii
  - todo_list
  - delegation
  - tool_search: {tools: ['tool_2*']}
  - context_compaction
  - prompt_caching
";

fn main() -> ExitCode {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).expect("writes");
    let mut text =
        format!("name: desk\ndescription: Everything.\nmodel: small\nvariables: {{city: Bern}}\n{MIDDLEWARE}");
    text.push_str("system: You are in ${variables.city}.\ntools:\n");
    for n in 0..TOOLS {
        writeln!(
            text,
            "  - tool_{n}: {{description: Does the thing of number {n}., timeout: 30, fixed: {{tenant: acme}}}}"
        )
        .expect("writes");
    }
    text.push_str("sub_agents:\n");
    for n in 0..5 {
        writeln!(text, "  helper_{n}: helper_{n}.yaml").expect("writes");
        let helper = format!(
            "name: helper_{n}\ndescription: Helps with {n}.\nmodel: small\nsystem: Help.\ntools: [tool_{n}, ask_user]\nmiddleware:\n  - limits: {{model_calls: 9}}\n  - reminders: {{}}\n"
        );
        write(&format!("helper_{n}.yaml"), &helper);
    }
    write("desk.yaml", &text);

    let parameters = json!({
        "type": "object",
        "properties": {
            "tenant": {"type": "string"},
            "query": {"type": "string", "minLength": 1},
            "limit": {"type": "integer", "minimum": 1, "maximum": 100},
            "sort": {"enum": ["newest", "oldest", "best"]},
        },
        "required": ["tenant", "query"],
        "additionalProperties": false,
    });
    let tool = |n| {
        from_schema(format!("tool_{n}"), "Does a thing.", parameters.clone(), async |args: Value, _: ToolRequest| {
            args.to_string()
        })
    };
    let registry = (0..TOOLS)
        .fold(Registry::builtin().model("small", ScriptedModel::new([])), |registry, n| registry.tool(tool(n)));
    let loader = Loader::new().registry(registry);
    let begun = Instant::now();
    loader.schema();
    println!("the schema of files, once    {:>8.2} ms", begun.elapsed().as_secs_f64() * 1e3);

    let path = folder.path().join("desk.yaml");
    let mut times: Vec<_> = (0..LOADS)
        .map(|_| {
            let begun = Instant::now();
            let agent = loader.load(&path).unwrap_or_else(|e| panic!("{e}")).into_builder().build().expect("builds");
            assert_eq!(agent.definition().expect("data").sub_agents.len(), 5);
            begun.elapsed()
        })
        .collect();
    times.sort_unstable();
    let [median, tenth] = [times[LOADS / 2], times[LOADS * 9 / 10]];
    println!(
        "30 tools, 8 middlewares, 5 sub-agents: median {:.2} ms, nine of ten within {:.2} ms",
        median.as_secs_f64() * 1e3,
        tenth.as_secs_f64() * 1e3
    );
    if median > BAR {
        eprintln!("the bar is {} ms", BAR.as_millis());
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}
