//! Signatures of hooks: one form for the compiler, one for rustdoc.

/// Declares the hooks of [`Middleware`](super::Middleware): `async fn`s whose default does nothing,
/// or calls `next` if the body does.
///
/// `#[async_trait]` on the trait would allocate for each hook, including those that a middleware
/// does not override. Here a hook has the signature that `#[async_trait]` generates from an
/// author's `async fn`, and a default that allocates nothing.
#[cfg(not(doc))]
macro_rules! hooks {
    ($(
        $(#[$doc:meta])*
        async fn $name:ident(&self, $($params:tt)*) -> $out:ty $(;)? $({ $next:ident.run($req:ident).await })?
    )*) => {$(
        hooks! { @params [$($params)*,] [] [] ['a 'b 'c] { $(#[$doc])* $name $out, $(boxed(|| $next.run($req)))? } }
    )*};

    // Each reference takes the next lifetime. Arguments: parameters left to read, parameters read,
    // lifetimes used, lifetimes left, the hook.
    (@params [$arg:ident: &mut $ty:ty, $($left:tt)*] [$($read:tt)*] [$($used:tt)*] [$l:lifetime $($free:tt)*] $hook:tt) => {
        hooks! { @params [$($left)*] [$($read)* $arg: &$l mut $ty,] [$($used)* $l] [$($free)*] $hook }
    };
    (@params [$arg:ident: &$ty:ty, $($left:tt)*] [$($read:tt)*] [$($used:tt)*] [$l:lifetime $($free:tt)*] $hook:tt) => {
        hooks! { @params [$($left)*] [$($read)* $arg: &$l $ty,] [$($used)* $l] [$($free)*] $hook }
    };
    (@params [$arg:ident: $ty:ident<'_>, $($left:tt)*] [$($read:tt)*] [$($used:tt)*] [$l:lifetime $($free:tt)*] $hook:tt) => {
        hooks! { @params [$($left)*] [$($read)* $arg: $ty<$l>,] [$($used)* $l] [$($free)*] $hook }
    };
    (@params [$arg:ident: $ty:ty, $($left:tt)*] [$($read:tt)*] $used:tt $free:tt $hook:tt) => {
        hooks! { @params [$($left)*] [$($read)* $arg: $ty,] $used $free $hook }
    };

    (@params [] [$($param:tt)*] [$($l:lifetime)*] $free:tt { $(#[$doc:meta])* $name:ident $out:ty, $($default:tt)* }) => {
        $(#[$doc])*
        #[allow(unused_variables)] // most defaults ignore their parameters
        fn $name<'me, $($l,)* 'hook>(&'me self, $($param)*) -> BoxFuture<'hook, $out>
        where
            'me: 'hook,
            $($l: 'hook,)*
            Self: 'hook,
        {
            hooks! { @default $($default)* }
        }
    };
    (@default) => { nothing() };
    (@default $($default:tt)+) => { $($default)+ };
}

/// Declares the hooks in the form that authors write. Since a hook requires `Sized` here, rustdoc
/// still accepts `dyn Middleware`.
#[cfg(doc)]
macro_rules! hooks {
    ($($(#[$doc:meta])* async fn $name:ident(&self, $($params:tt)*) -> $out:ty $(;)? $({ $($default:tt)* })?)*) => {$(
        $(#[$doc])*
        async fn $name(&self, $($params)*) -> $out
        where
            Self: Sized,
        {
            unreachable!("this is only read")
        }
    )*};
}
