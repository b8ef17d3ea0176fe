//! What the compiler is told of a hook, and what readers of the documentation are.

/// The hooks of [`Middleware`](super::Middleware): `async fn`s with a default, which is to do nothing, or the call of `next` that
/// stands in the body.
///
/// `#[async_trait]` on the trait would allocate for each hook, also for those that a middleware leaves as they are. Here a hook
/// gets the signature that `#[async_trait]` makes of an author's `async fn`, and a default that allocates nothing.
#[cfg(not(doc))]
macro_rules! hooks {
    ($(
        $(#[$doc:meta])*
        async fn $name:ident(&self, $($params:tt)*) -> $out:ty $(;)? $({ $next:ident.run($req:ident).await })?
    )*) => {$(
        hooks! { @params [$($params)*,] [] [] ['a 'b 'c] { $(#[$doc])* $name $out, $(boxed(|| $next.run($req)))? } }
    )*};

    // Each reference takes the next lifetime: what is left to read, what was read, the lifetimes used and those left, the rest.
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
        #[allow(unused_variables)] // most defaults look at nothing
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

/// The hooks as their authors write them. Where only a `Sized` type has a hook, rustdoc still takes `dyn Middleware` for a type.
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
