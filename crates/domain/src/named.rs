//! Enumerations whose variants have names in text: on the wire, in the database, in metrics.

/// Counted and listed by [`Named::ALL`], shown by [`Named::name`]. [`named!`](crate::named) implements it.
pub trait Named: Copy + PartialEq + 'static {
    /// In the order of declaration.
    const ALL: &'static [Self];

    fn name(self) -> &'static str;
}

/// Declares an enumeration with `ALL`, `name` and `from_name`.
#[macro_export]
macro_rules! named {
    ($(#[$about:meta])* $vis:vis enum $kind:ident { $($(#[$one:meta])* $variant:ident = $name:literal),+ $(,)? }) => {
        $(#[$about])*
        $vis enum $kind { $($(#[$one])* $variant,)+ }

        #[allow(dead_code, reason = "not every enumeration is listed and parsed")]
        impl $kind {
            pub const ALL: [$kind; [$($name),+].len()] = [$($kind::$variant),+];

            pub const fn name(self) -> &'static str {
                match self { $($kind::$variant => $name),+ }
            }

            pub fn from_name(name: &str) -> Option<$kind> {
                match name {
                    $($name => Some($kind::$variant),)+
                    _ => None,
                }
            }
        }

        impl $crate::Named for $kind {
            const ALL: &'static [$kind] = &$kind::ALL;

            fn name(self) -> &'static str {
                $kind::name(self)
            }
        }
    };
}
