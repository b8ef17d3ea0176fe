//! The options of `#[tool(..)]`.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote};
use syn::{Ident, LitBool, LitInt, LitStr, Path, Result, Token, ext::IdentExt, meta::ParseNestedMeta, parse::Parse};

/// Parsed options of `#[tool(..)]`.
#[derive(Default)]
pub(crate) struct Options {
    pub(crate) name: Option<LitStr>,
    pub(crate) description: Option<LitStr>,
    pub(crate) crate_path: Option<Path>,
    pub(crate) blocking: Option<Span>,
    pub(crate) reads: Vec<StateParam>,
    effect: Option<Ident>,
    serial: Option<Span>,
    timeout_ms: Option<u64>,
    concurrency: Option<LitInt>,
    destructive: Option<LitBool>,
    open_world: Option<LitBool>,
    writes: Vec<(String, Option<LitStr>)>,
}

/// A parameter that is filled from the state.
pub(crate) struct StateParam {
    pub(crate) param: Ident,
    pub(crate) key: LitStr,
}

const KNOWN: &str = "name, description, effect, destructive, open_world, serial, blocking, timeout, timeout_ms, concurrency, reads, writes, crate";

impl Options {
    pub(crate) fn read(&mut self, meta: &ParseNestedMeta<'_>) -> Result<()> {
        let unknown = || meta.error(format!("unknown option; known: {KNOWN}"));
        let option = meta.path.get_ident().ok_or_else(unknown)?;
        match option.to_string().as_str() {
            "name" => set(&mut self.name, tool_name(value(meta)?)?, meta),
            "description" => set(&mut self.description, value(meta)?, meta),
            "crate" => set(&mut self.crate_path, value::<LitStr>(meta)?.parse()?, meta),
            "effect" => set(&mut self.effect, effect(&value(meta)?)?, meta),
            "destructive" => set(&mut self.destructive, value(meta)?, meta),
            "open_world" => set(&mut self.open_world, value(meta)?, meta),
            "serial" => set(&mut self.serial, option.span(), meta),
            "blocking" => set(&mut self.blocking, option.span(), meta),
            "timeout" => set(&mut self.timeout_ms, milliseconds(&value(meta)?)?, meta),
            "timeout_ms" => set(&mut self.timeout_ms, value::<LitInt>(meta)?.base10_parse()?, meta),
            "concurrency" => set(&mut self.concurrency, at_least_one(value(meta)?)?, meta),
            "reads" => meta.parse_nested_meta(|pair| {
                let param = pair.path.require_ident()?.clone();
                self.reads.push(StateParam { param, key: value(&pair)? });
                Ok(())
            }),
            "writes" => meta.parse_nested_meta(|pair| {
                let key = pair.path.require_ident()?.unraw().to_string();
                let field = pair.input.peek(Token![=]).then(|| value(&pair)).transpose()?;
                self.writes.push((key, field));
                Ok(())
            }),
            _ => Err(unknown()),
        }
    }

    /// Generates the calls that set the options on a `ToolOptions`.
    pub(crate) fn setters(&self, private: &TokenStream) -> TokenStream {
        let effect = self.effect.iter().map(|e| quote!(.effect(#private::Effect::#e)));
        let destructive = self.destructive.iter().map(|is| quote!(.destructive(#is)));
        let open_world = self.open_world.iter().map(|is| quote!(.open_world(#is)));
        let serial = self.serial.iter().map(|_| quote!(.serial()));
        let timeout = self.timeout_ms.iter().map(|ms| quote!(.timeout(::core::time::Duration::from_millis(#ms))));
        let concurrency = self.concurrency.iter().map(|most| quote!(.concurrency(#most)));
        let reads = self.reads.iter().map(|StateParam { param, key }| {
            let param = param.unraw().to_string();
            quote!(.reads(#key, #param))
        });
        let writes = self.writes.iter().map(|(key, field)| match field {
            Some(field) => quote!(.writes(#key, ::core::option::Option::Some(#field))),
            None => quote!(.writes(#key, ::core::option::Option::None)),
        });
        let mut setters = TokenStream::new();
        effect
            .chain(destructive)
            .chain(open_world)
            .chain(serial)
            .chain(timeout)
            .chain(concurrency)
            .chain(reads)
            .chain(writes)
            .for_each(|s| s.to_tokens(&mut setters));
        setters
    }
}

fn value<T: Parse>(meta: &ParseNestedMeta<'_>) -> Result<T> {
    meta.value()?.parse()
}

fn set<T>(slot: &mut Option<T>, new: T, meta: &ParseNestedMeta<'_>) -> Result<()> {
    match slot.replace(new) {
        Some(_) => Err(meta.error("this is set twice")),
        None => Ok(()),
    }
}

fn tool_name(name: LitStr) -> Result<LitStr> {
    let text = name.value();
    let named = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'_' | b'-');
    if (1..=64).contains(&text.len()) && text.bytes().all(named) {
        return Ok(name);
    }
    Err(syn::Error::new(name.span(), "a tool's name is 1 to 64 letters, digits, `_` and `-`"))
}

fn effect(name: &LitStr) -> Result<Ident> {
    let variant = match name.value().as_str() {
        "pure" => "Pure",
        "idempotent" => "Idempotent",
        "reconcilable" => "Reconcilable",
        "at_most_once" => "AtMostOnce",
        _ => {
            let known = "an effect is `pure`, `idempotent`, `reconcilable` or `at_most_once`";
            return Err(syn::Error::new(name.span(), known));
        }
    };
    Ok(Ident::new(variant, Span::call_site()))
}

fn milliseconds(text: &LitStr) -> Result<u64> {
    let value = text.value();
    let digits = value.find(|c: char| !c.is_ascii_digit()).unwrap_or(value.len());
    let (count, unit) = value.split_at(digits);
    let unit = match unit.trim() {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => 0,
    };
    let total = count.parse::<u64>().ok().and_then(|count| count.checked_mul(unit)).filter(|ms| *ms > 0);
    total.ok_or_else(|| {
        syn::Error::new(text.span(), "a timeout is a whole number and a unit, such as `500ms`, `5s` or `2m`")
    })
}

fn at_least_one(count: LitInt) -> Result<LitInt> {
    match count.base10_parse::<usize>()? {
        0 => Err(syn::Error::new(count.span(), "at least one call must be able to run")),
        _ => Ok(count),
    }
}
