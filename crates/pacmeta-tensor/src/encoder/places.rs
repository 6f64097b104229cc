//! The tensors of a layer in its part of the flat buffer.

use super::shape::EncoderShape;

/// Declares the borrowed and the mutable view of the same fields, cut off in order.
macro_rules! views {
    ($(#[$documentation:meta])* $name:ident, $(#[$other:meta])* $name_mut:ident, $shape:ident, { $($field:ident: $len:expr,)* }) => {
        $(#[$documentation])*
        #[derive(Clone, Copy)]
        pub(super) struct $name<'a, E> { $(pub(super) $field: &'a [E],)* }

        impl<'a, E> $name<'a, E> {
            /// `values` has exactly the numbers of these tensors.
            pub(super) fn new($shape: &EncoderShape, values: &'a [E]) -> Self {
                let rest = values;
                $(let ($field, rest) = rest.split_at($len);)*
                debug_assert!(rest.is_empty());
                $name { $($field,)* }
            }
        }

        $(#[$other])*
        pub(super) struct $name_mut<'a, E> { $(pub(super) $field: &'a mut [E],)* }

        impl<'a, E> $name_mut<'a, E> {
            /// `values` has exactly the numbers of these tensors.
            pub(super) fn new($shape: &EncoderShape, values: &'a mut [E]) -> Self {
                let rest = values;
                $(let ($field, rest) = rest.split_at_mut($len);)*
                debug_assert!(rest.is_empty());
                $name_mut { $($field,)* }
            }
        }
    };
}

views! {
    /// A layer's tensors.
    Layer,
    /// Their gradients.
    LayerMut,
    shape,
    {
        query_weight: shape.hidden * shape.hidden,
        query_bias: shape.hidden,
        key_weight: shape.hidden * shape.hidden,
        key_bias: shape.hidden,
        value_weight: shape.hidden * shape.hidden,
        value_bias: shape.hidden,
        output_weight: shape.hidden * shape.hidden,
        output_bias: shape.hidden,
        attention_norm_weight: shape.hidden,
        attention_norm_bias: shape.hidden,
        up_weight: shape.intermediate * shape.hidden,
        up_bias: shape.intermediate,
        down_weight: shape.hidden * shape.intermediate,
        down_bias: shape.hidden,
        norm_weight: shape.hidden,
        norm_bias: shape.hidden,
    }
}

views! {
    /// The tensors of the embeddings.
    Embeddings,
    /// Their gradients.
    EmbeddingsMut,
    shape,
    {
        word: shape.vocabulary * shape.hidden,
        position: shape.positions * shape.hidden,
        segment: shape.segments * shape.hidden,
        norm_weight: shape.hidden,
        norm_bias: shape.hidden,
    }
}

views! {
    /// The tensors of the pooler.
    Pooler,
    /// Their gradients.
    PoolerMut,
    shape,
    {
        weight: shape.hidden * shape.hidden,
        bias: shape.hidden,
    }
}
