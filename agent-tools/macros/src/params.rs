//! Parameters of the function: those that the model supplies, and injected ones.

use std::collections::BTreeMap;

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::{
    Attribute, Error, Expr, FnArg, GenericArgument, Ident, Pat, PathArguments, Result, Token, Type, ext::IdentExt,
    parse_quote, punctuated::Punctuated, spanned::Spanned,
};

use crate::{docs, options::StateParam};

/// Reserved names in a call's arguments.
const RESERVED: [&str; 4] = ["agent_state", "ctx", "global_storage", "raw_arguments"];

/// Parameter of the function.
pub(crate) struct Param {
    pub(crate) name: Ident,
    source: Source,
    by_reference: bool,
}

/// Source of a parameter's value.
enum Source {
    Model(Model),
    RunCx,
    ToolRequest,
    State,
    GlobalStorage,
    Resource(Box<Type>),
}

/// Parameter that the model supplies.
struct Model {
    ty: Box<Type>,
    description: String,
    absent: Absent,
    /// True if the state supplies the value when the model omits it.
    from_state: bool,
}

/// Value of a parameter that the model omits.
enum Absent {
    /// None: the parameter is required.
    Error,
    /// `None`.
    None,
    /// Default value; it is part of the schema.
    Value(Box<Expr>),
}

/// Declarations about the parameters outside the parameter list.
pub(crate) struct Said<'a> {
    /// The section `# Arguments` of the doc comment.
    pub(crate) descriptions: &'a BTreeMap<String, String>,
    /// The option `reads`.
    pub(crate) reads: &'a [StateParam],
}

/// Reads the parameters, and removes the attributes that rustc would reject.
pub(crate) fn read(inputs: &mut Punctuated<FnArg, Token![,]>, said: &Said<'_>) -> Result<Vec<Param>> {
    inputs.iter_mut().map(|input| param(input, said)).collect()
}

fn param(input: &mut FnArg, said: &Said<'_>) -> Result<Param> {
    let FnArg::Typed(input) = input else {
        return Err(Error::new(input.span(), "a tool is a function without `self`"));
    };
    let Pat::Ident(pattern) = &*input.pat else {
        return Err(Error::new(input.pat.span(), "a tool's parameter needs a plain name: the model calls it by that"));
    };
    let name = pattern.ident.clone();
    let attrs = std::mem::take(&mut input.attrs);
    let (own, others): (Vec<_>, Vec<_>) =
        attrs.into_iter().partition(|a| a.path().is_ident("doc") || a.path().is_ident("tool"));
    input.attrs = others;

    let (ty, by_reference) = match &*input.ty {
        Type::Reference(reference) => (&*reference.elem, true),
        other => (other, false),
    };
    let source = match injected(ty)? {
        Some(source) => {
            if let Some(attr) = own.iter().find(|a| a.path().is_ident("tool")) {
                return Err(Error::new(attr.span(), "this parameter is filled in: the model never gives it"));
            }
            source
        }
        None => Source::Model(model_param(&name, &input.ty, &own, said)?),
    };
    Ok(Param { name, source, by_reference })
}

fn model_param(name: &Ident, ty: &Type, attrs: &[Attribute], said: &Said<'_>) -> Result<Model> {
    let text = name.unraw().to_string();
    if RESERVED.contains(&text.as_str()) {
        return Err(Error::new(name.span(), format!("`{text}` is reserved: choose another name for the parameter")));
    }
    if let Type::Reference(reference) = ty {
        return Err(Error::new(
            reference.span(),
            "a parameter of the model is owned: use `String` for `&str`, `Vec<T>` for `&[T]`",
        ));
    }
    let mut description = docs::text(attrs);
    if description.is_empty() {
        description = said.descriptions.get(&text).cloned().unwrap_or_default();
    }
    let absent = match own_default(attrs)? {
        Some(value) => Absent::Value(value),
        None if generic(ty).is_some_and(|(name, _)| name == "Option") => Absent::None,
        None => Absent::Error,
    };
    let from_state = said.reads.iter().any(|read| read.param == *name);
    Ok(Model { ty: Box::new(ty.clone()), description, absent, from_state })
}

/// Returns the default that `#[tool(default = ..)]` on a parameter sets.
fn own_default(attrs: &[Attribute]) -> Result<Option<Box<Expr>>> {
    let mut default = None;
    for attr in attrs.iter().filter(|a| a.path().is_ident("tool")) {
        attr.parse_nested_meta(|meta| {
            if !meta.path.is_ident("default") {
                return Err(meta.error("unknown option of a parameter; known: default"));
            }
            let value = match meta.input.peek(Token![=]) {
                true => meta.value()?.parse()?,
                false => parse_quote!(::core::default::Default::default()),
            };
            default = Some(Box::new(value));
            Ok(())
        })?;
    }
    Ok(default)
}

fn injected(ty: &Type) -> Result<Option<Source>> {
    let Some((name, argument)) = generic(ty) else { return Ok(None) };
    Ok(Some(match name.to_string().as_str() {
        "RunCx" => Source::RunCx,
        "ToolRequest" => Source::ToolRequest,
        "State" => Source::State,
        "GlobalStorage" => Source::GlobalStorage,
        "Resource" => match argument {
            Some(of) => Source::Resource(Box::new(of.clone())),
            None => return Err(Error::new(ty.span(), "say which handle is meant: `Resource<T>`")),
        },
        _ => return Ok(None),
    }))
}

/// Returns the last segment of a type's path, with its first type argument.
fn generic(ty: &Type) -> Option<(&Ident, Option<&Type>)> {
    let Type::Path(path) = ty else { return None };
    let last = path.path.segments.last()?;
    let argument = match &last.arguments {
        PathArguments::AngleBracketed(list) => list.args.iter().find_map(|argument| match argument {
            GenericArgument::Type(ty) => Some(ty),
            _ => None,
        }),
        _ => None,
    };
    Some((&last.ident, argument))
}

impl Param {
    pub(crate) fn is_model(&self) -> bool {
        matches!(self.source, Source::Model(_))
    }

    pub(crate) fn is_state(&self) -> bool {
        matches!(self.source, Source::State)
    }

    /// Generates the call that adds the parameter to a `Parameters`. A parameter that the state can
    /// fill is optional.
    pub(crate) fn schema(&self, private: &TokenStream) -> Option<TokenStream> {
        let Source::Model(Model { ty, description, absent, from_state }) = &self.source else { return None };
        let name = self.name.unraw().to_string();
        let none = quote!(::core::option::Option::None);
        Some(match absent {
            Absent::Error if !*from_state => quote_spanned!(ty.span()=> .required::<#ty>(#name, #description)),
            Absent::Error | Absent::None => {
                quote_spanned!(ty.span()=> .optional::<#ty>(#name, #description, #none))
            }
            Absent::Value(value) => quote_spanned! {ty.span()=>
                .optional::<#ty>(#name, #description, #private::default_value::<#ty>(#value))
            },
        })
    }

    /// Generates the expression that reads the value from the request.
    pub(crate) fn value(&self, private: &TokenStream, req: &Ident) -> TokenStream {
        match &self.source {
            Source::RunCx => quote!(#req.cx.clone()),
            Source::ToolRequest => quote!(#req.clone()),
            Source::State => quote!(#req.cx.state().clone()),
            Source::GlobalStorage => quote!(#req.cx.globals().clone()),
            Source::Resource(ty) => quote_spanned!(ty.span()=> #private::resource::<#ty>(&#req)?),
            Source::Model(Model { ty, absent, from_state, .. }) => {
                let name = self.name.unraw().to_string();
                let argument = quote!(#private::Argument::new(#name, #from_state));
                match absent {
                    Absent::Error => quote_spanned!(ty.span()=> #argument.required::<#ty>(&#req)?),
                    Absent::None => {
                        quote_spanned!(ty.span()=> #argument.optional::<#ty>(&#req, || ::core::option::Option::None)?)
                    }
                    Absent::Value(value) => quote_spanned!(ty.span()=> #argument.optional::<#ty>(&#req, || #value)?),
                }
            }
        }
    }

    /// Generates the argument in the form that the function takes.
    pub(crate) fn argument(&self, variable: &Ident) -> TokenStream {
        if self.by_reference { quote!(&#variable) } else { quote!(#variable) }
    }
}
