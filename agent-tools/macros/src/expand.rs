//! Expansion of a function into a tool.

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, format_ident, quote};
use syn::{Attribute, Error, ItemFn, LitStr, Result, ReturnType, Type, ext::IdentExt, spanned::Spanned};

use crate::{
    crate_path, docs,
    options::Options,
    params::{self, Param, Said},
};

pub(crate) fn expand(options: &Options, mut function: ItemFn) -> Result<TokenStream> {
    let docs = docs::read(&function.attrs);
    let said = Said { descriptions: &docs.params, reads: &options.reads };
    let params = params::read(&mut function.sig.inputs, &said)?;
    check(options, &function, &params, docs.params.keys())?;

    let root = options.crate_path.clone().unwrap_or_else(crate_path::find);
    let private = quote!(#root::__private);
    let tool = &function.sig.ident;
    let name = options.name.clone().unwrap_or_else(|| LitStr::new(&tool.unraw().to_string(), tool.span()));
    let description = options.description.as_ref().map_or(docs.description, LitStr::value);
    let schema = params.iter().filter_map(|param| param.schema(&private));
    let setters = options.setters(&private);
    let uses_state = params.iter().any(Param::is_state).then(|| quote!(.uses_state()));
    let call = call(options, &function, &params, &private);
    let output = output(&function).map(|ty| quote!(.with_output(<#ty as #private::IntoToolOutput>::output_schema())));

    let (docs, others): (Vec<&Attribute>, Vec<_>) = function.attrs.iter().partition(|a| a.path().is_ident("doc"));
    let (vis, block) = (&function.vis, &function.block);
    let mut signature = function.sig.clone();
    signature.ident = Ident::new("run", tool.span());

    Ok(quote! {
        #(#docs)*
        #[allow(non_camel_case_types)]
        #[derive(Clone, Copy, Debug)]
        #vis struct #tool;

        impl #tool {
            /// The function that the tool calls.
            // Arguments from the model are owned, even if the function only needs a reference.
            #[allow(clippy::needless_pass_by_value)]
            #(#others)*
            #vis #signature #block
        }

        #[#private::async_trait]
        impl #private::Tool for #tool {
            fn spec(&self) -> #private::ToolSpec {
                #private::ToolSpec::new(#name, #description, #private::Parameters::default() #(#schema)* .build())
                    #output
            }

            fn options(&self) -> #private::ToolOptions {
                #private::ToolOptions::default() #setters #uses_state
            }

            #call
        }
    })
}

/// Returns the return type of the function, unless the type has no name (`impl Trait`).
fn output(function: &ItemFn) -> Option<&Type> {
    let ReturnType::Type(_, ty) = &function.sig.output else { return None };
    let is_named = !has_impl(ty.to_token_stream());
    is_named.then_some(&**ty)
}

fn has_impl(tokens: TokenStream) -> bool {
    tokens.into_iter().any(|token| match token {
        TokenTree::Ident(word) => word == "impl",
        TokenTree::Group(group) => has_impl(group.stream()),
        _ => false,
    })
}

/// Generates the method `call`: it reads the arguments, calls the function and converts its return
/// value to an output.
fn call(options: &Options, function: &ItemFn, params: &[Param], private: &TokenStream) -> TokenStream {
    let tool = &function.sig.ident;
    let req = Ident::new("req", Span::mixed_site());
    let variables: Vec<_> = (0..params.len()).map(|i| format_ident!("arg_{i}", span = Span::mixed_site())).collect();
    let values = params.iter().map(|param| param.value(private, &req));
    let arguments = params.iter().zip(&variables).map(|(param, variable)| param.argument(variable));
    let dot_await = function.sig.asyncness.map(|_| quote!(.await));
    let returned = match &function.sig.output {
        ReturnType::Default => tool.span(),
        ReturnType::Type(_, ty) => ty.span(),
    };
    // The span makes errors about the return type point at that type.
    let output = Ident::new("output", Span::mixed_site().located_at(returned));
    let body = quote! {
        #(let #variables = #values;)*
        let #output = #tool::run(#(#arguments),*) #dot_await;
        #private::IntoToolOutput::into_tool_output(#output)
    };
    let body = if options.blocking.is_some() { quote!(#private::blocking(move || { #body }).await) } else { body };
    quote! {
        async fn call(&self, #req: #private::ToolRequest) -> #private::Result<#private::ToolOutput> {
            #body
        }
    }
}

fn check<'a>(
    options: &Options,
    function: &ItemFn,
    params: &[Param],
    described: impl Iterator<Item = &'a String>,
) -> Result<()> {
    let signature = &function.sig;
    if !signature.generics.params.is_empty() {
        let generics = signature.generics.span();
        return Err(Error::new(generics, "a tool cannot be generic: the model needs to know its types"));
    }
    if let (Some(blocking), Some(_)) = (options.blocking, signature.asyncness) {
        return Err(Error::new(blocking, "`blocking` is for functions that are not async"));
    }
    if let Some(same) = params.iter().find(|p| p.name == signature.ident) {
        return Err(Error::new(same.name.span(), "a parameter cannot have the name of its tool"));
    }
    let known = |name: &str| params.iter().any(|p| p.name.unraw() == name);
    if let Some(unknown) = described.into_iter().find(|name| !known(name)) {
        let message = format!("the section `# Arguments` describes `{unknown}`, which is not a parameter");
        return Err(Error::new(signature.ident.span(), message));
    }
    for read in &options.reads {
        if !params.iter().any(|p| p.is_model() && p.name == read.param) {
            return Err(Error::new(read.param.span(), "no parameter of the model has this name"));
        }
    }
    Ok(())
}
