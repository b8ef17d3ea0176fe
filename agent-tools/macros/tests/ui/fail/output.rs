use agent_tools::tool;

struct Weather;

#[tool]
fn weather() -> Weather {
    Weather
}

fn main() {}
